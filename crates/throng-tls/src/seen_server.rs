//! What the handshakes of a client show of its server, for a diagnosis.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use throng_measure::{CertificateFacts, TargetTls, TlsAgreement, TlsFailure, TlsOffer};

use crate::config::client_key::StepKey;
use crate::config::server_verifier::ServerVerifier;
use crate::config::x509::X509;
use crate::{HandshakeReport, TlsError};

/// What the connections to one server have shown of it first: its chain of certificates, what was
/// agreed, the first failure. Clones share it, so the configurations of all cores note it once.
#[derive(Clone, Default)]
pub struct SeenServer(Arc<FirstHandshakes>);

#[derive(Default)]
struct FirstHandshakes {
    chain: OnceLock<CertificateFacts>,
    agreed: OnceLock<HandshakeReport>,
    failure: OnceLock<TlsError>,
    asks_for_certificate: AtomicBool,
}

impl SeenServer {
    /// Returns what was seen so far, without what the client offers; `None` if nothing was.
    pub fn facts(&self) -> Option<TargetTls> {
        let seen = &*self.0;
        let facts = TargetTls {
            certificate: seen.chain.get().cloned(),
            agreed: seen.agreed.get().map(agreement),
            asks_for_certificate: seen.asks_for_certificate.load(Relaxed),
            offer: TlsOffer::default(),
            failure: seen.failure.get().map(failure),
        };
        (facts != TargetTls::default()).then_some(facts)
    }

    /// Notes a complete handshake.
    pub(crate) fn note_agreed(&self, report: &HandshakeReport) {
        self.0.agreed.get_or_init(|| report.clone());
    }

    /// Notes a failure.
    pub(crate) fn note_failure(&self, error: &TlsError) {
        self.0.failure.get_or_init(|| error.clone());
    }

    fn note_chain(&self, first: &[u8], others: &[CertificateDer<'_>], now: UnixTime) {
        self.0.chain.get_or_init(|| {
            let last = others.last().map_or(first, |last| last.as_ref());
            certificate(first, last, 1 + others.len() as u64, now).unwrap_or_default()
        });
    }
}

/// Returns the facts of a chain with its first and its last certificate.
fn certificate(first: &[u8], last: &[u8], chain: u64, now: UnixTime) -> Option<CertificateFacts> {
    let (first, last) = (X509::parse(first)?, X509::parse(last)?);
    Some(CertificateFacts {
        subject: first.subject,
        issuer: first.issuer,
        names: first.names,
        key: first.key,
        valid_from_s: first.valid_from_s,
        valid_until_s: first.valid_until_s,
        seen_at_s: now.as_secs(),
        chain,
        last_issuer: last.issuer,
        is_rooted: last.is_own_issuer,
    })
}

fn agreement(report: &HandshakeReport) -> TlsAgreement {
    let alpn = report.alpn.as_deref();
    TlsAgreement {
        version: report.suite.version().name().to_owned(),
        cipher: report.suite.cipher_name().to_owned(),
        alpn: alpn.map(|name| name.escape_ascii().to_string()),
    }
}

fn failure(error: &TlsError) -> TlsFailure {
    let alert = match error {
        TlsError::AlertReceived(alert) => Some(alert),
        TlsError::Handshake(failure) => failure.alert.as_ref(),
        _ => None,
    };
    let first_bytes = match error {
        TlsError::NotTls(bytes) => Some(bytes.escape_ascii().to_string()),
        _ => None,
    };
    TlsFailure {
        cause: error.name().to_owned(),
        alert: alert.map(|alert| alert.name().to_owned()),
        first_bytes,
    }
}

/// Verifier of another one that notes the chain.
#[derive(Debug)]
pub(crate) struct NotingVerifier {
    pub verifier: ServerVerifier,
    pub seen: SeenServer,
}

impl ServerCertVerifier for NotingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.seen.note_chain(end_entity, intermediates, now);
        self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Choice of a client's certificate by another one. It notes that the server asks for one.
#[derive(Debug)]
pub(crate) struct NotingResolver {
    pub resolver: StepKey,
    pub seen: SeenServer,
}

impl ResolvesClientCert for NotingResolver {
    fn resolve(
        &self,
        root_hint_subjects: &[&[u8]],
        sigschemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.seen.0.asks_for_certificate.store(true, Relaxed);
        self.resolver.resolve(root_hint_subjects, sigschemes)
    }

    fn has_certs(&self) -> bool {
        self.resolver.has_certs()
    }
}

impl std::fmt::Debug for SeenServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SeenServer")
    }
}
