//! The check of a server's certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::{TlsConfigError, validity};

/// Verifier of servers. Whatever it believes, the server must have the key of its certificate.
#[derive(Debug)]
pub(crate) struct ServerVerifier {
    provider: Arc<CryptoProvider>,
    /// None believes any certificate, for labs.
    trusted: Option<Trusted>,
}

/// Authorities that are trusted, and the certificates of their file themselves.
///
/// `openssl req -x509` makes a certificate that is its own authority. A chain may not end with one
/// (RFC 5280 section 4.2.1.9), but a user who names it in a file trusts it. Its name and its time
/// are checked as always.
#[derive(Debug)]
struct Trusted {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerVerifier {
    /// Creates a verifier that believes any certificate.
    pub(super) const fn believing_all(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, trusted: None }
    }

    /// Creates a verifier that trusts authorities and `named` certificates.
    pub(super) fn new(
        provider: Arc<CryptoProvider>,
        roots: Arc<RootCertStore>,
        named: Vec<CertificateDer<'static>>,
    ) -> Result<Self, TlsConfigError> {
        let authorities = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(|error| TlsConfigError::Refused(error.to_string()))?;
        Ok(Self { provider, trusted: Some(Trusted { authorities, named }) })
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Trusted { authorities, named }) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(_) if named.contains(end_entity) => verify_named(end_entity, name, now),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
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
