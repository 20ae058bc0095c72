//! The certificates of clients, and the way of rustls to them.

use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

use super::TlsConfigError;
use super::certificate::certified_key;
use super::server::CertifiedPair;
use crate::client::ClientKey;
use crate::handshake::client_key;

impl ClientKey {
    /// Reads the chain and the key, and checks that they belong together.
    ///
    /// # Errors
    /// One of the files is wrong.
    pub fn new(pair: &CertifiedPair) -> Result<Self, TlsConfigError> {
        certified_key(&pair.chain, &pair.key).map(Self)
    }
}

/// Way of rustls to the key of the client whose handshake it makes.
#[derive(Debug)]
pub(crate) struct StepKey {
    /// Key of a client that has none of its own.
    pub of_all: Option<ClientKey>,
}

impl ResolvesClientCert for StepKey {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        client_key().or_else(|| self.of_all.clone()).map(|key| key.0)
    }

    /// Without a key, rustls does not keep what a signature would be over.
    fn has_certs(&self) -> bool {
        client_key().is_some() || self.of_all.is_some()
    }
}
