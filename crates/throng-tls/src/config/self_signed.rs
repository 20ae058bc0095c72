//! A certificate that no authority issued, for labs.

use rcgen::{CertificateParams, KeyPair};
use ring::digest::{SHA256, digest};

use super::{CertifiedPair, PemFile, TlsConfigError};

/// Certificate that is its own authority, and its key.
#[derive(Clone)]
pub struct SelfSigned {
    /// The certificate and its key.
    pub pair: CertifiedPair,
    /// SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` shows it.
    pub fingerprint: String,
}

impl SelfSigned {
    /// Creates a certificate for these host names and addresses, with a key for ECDSA P-256.
    ///
    /// # Errors
    /// A name is none.
    pub fn new(names: &[String]) -> Result<Self, TlsConfigError> {
        let refused = |error: rcgen::Error| TlsConfigError::Refused(error.to_string());
        let params = CertificateParams::new(names.to_vec()).map_err(refused)?;
        let key = KeyPair::generate().map_err(refused)?;
        let certificate = params.self_signed(&key).map_err(refused)?;
        let hash = digest(&SHA256, certificate.der());
        let fingerprint: Vec<_> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let pair = CertifiedPair {
            chain: PemFile::new("the self-signed certificate", certificate.pem()),
            key: PemFile::new("the key of the self-signed certificate", key.serialize_pem()),
        };
        Ok(Self { pair, fingerprint: fingerprint.join(":") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{TlsServerConfig, TlsServerOptions};

    #[test]
    fn a_self_signed_certificate_serves_and_has_a_fingerprint() {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let signed = SelfSigned::new(&names).unwrap();
        assert_eq!(signed.fingerprint.len(), 32 * 3 - 1);
        assert!(TlsServerConfig::new(&TlsServerOptions::new(vec![signed.pair]), 0).is_ok());
        assert!(SelfSigned::new(&["ä".to_owned()]).is_err());
    }
}
