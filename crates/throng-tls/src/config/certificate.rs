//! A chain of certificates with its key, and the choice among several.

use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureAlgorithm};

use super::{PemFile, TlsConfigError};

/// Reads a chain and its key, and checks that they belong together.
pub(super) fn certified_key(
    chain: &PemFile,
    key: &PemFile,
) -> Result<Arc<CertifiedKey>, TlsConfigError> {
    let certificates = chain.certificates()?;
    for (at, certificate) in certificates.iter().enumerate() {
        parse(chain, at, certificate)?;
    }
    let bad_key = |error: Error| TlsConfigError::BadKey {
        file: key.name().to_owned(),
        problem: error.to_string(),
    };
    let signing = rustls::crypto::ring::sign::any_supported_type(&key.key()?).map_err(bad_key)?;
    let certified = CertifiedKey::new(certificates, signing);
    match certified.keys_match() {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Arc::new(certified)),
        Err(_) => Err(TlsConfigError::KeyOfOther {
            chain: chain.name().to_owned(),
            key: key.name().to_owned(),
        }),
    }
}

/// Checks that a certificate can be read.
pub(super) fn parse(
    file: &PemFile,
    at: usize,
    certificate: &CertificateDer<'_>,
) -> Result<(), TlsConfigError> {
    let parsed = ParsedCertificate::try_from(certificate);
    parsed.map(drop).map_err(|error| TlsConfigError::BadCertificate {
        file: file.name().to_owned(),
        number: at + 1,
        problem: error.to_string(),
    })
}

/// Reports whether a key signs with RSA, which costs a server four times as much as ECDSA.
pub(super) fn is_rsa(key: &CertifiedKey) -> bool {
    key.key.algorithm() == SignatureAlgorithm::RSA
}

/// Certificates of a server. The first one that is for the name the client asks for, and that the
/// client can verify, is shown; if there is none, the first one that it can verify, else the first.
#[derive(Debug)]
pub(super) struct PairResolver(pub Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for PairResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let [only] = &self.0[..] {
            return Some(only.clone());
        }
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let fits =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        let of_name = |key: &&Arc<CertifiedKey>| {
            let certificate = key.end_entity_cert().and_then(ParsedCertificate::try_from);
            let (Some(name), Ok(certificate)) = (&name, certificate) else { return false };
            verify_server_name(&certificate, name).is_ok()
        };
        let mut usable = self.0.iter().filter(fits);
        let of_this_name = usable.clone().find(of_name);
        of_this_name.or_else(|| usable.next()).or_else(|| self.0.first()).cloned()
    }
}
