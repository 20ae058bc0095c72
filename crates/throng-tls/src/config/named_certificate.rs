//! A server's own certificate in the client's file of authorities.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::validity;

/// Verifier that trusts authorities, and the certificates of their file themselves.
///
/// `openssl req -x509` makes a certificate that is its own authority. A chain may not end with one
/// (RFC 5280 section 4.2.1.9), but a user who names it in a file trusts it. Its name and its time
/// are checked as always.
#[derive(Debug)]
pub(super) struct NamedCertificates {
    pub authorities: Arc<WebPkiServerVerifier>,
    pub named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(_) if self.named.contains(end_entity) => verify_named(end_entity, server_name, now),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Checks the name and the time of a certificate that is trusted itself.
fn verify_named(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let (from, until) = validity(certificate).ok_or(CertificateError::BadEncoding)?;
    if now.as_secs() < from {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > until {
        return Err(CertificateError::Expired.into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
    Ok(ServerCertVerified::assertion())
}
