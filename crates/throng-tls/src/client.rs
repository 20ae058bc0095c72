//! Clients of one process that are told apart: whose sessions they resume, and what they show.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

use crate::config::certified_key;
use crate::handshake::client_key;
use crate::{CertifiedPair, TlsConfigError};

/// Client of a connection.
#[derive(Clone, Debug, Default)]
pub struct TlsClient {
    /// Number of the owner of its sessions: clients with one number resume each other's sessions.
    pub owner: u64,
    /// What it shows to a server that asks for a certificate, in place of its configuration's.
    pub key: Option<ClientKey>,
}

/// Certificate of a client with its key.
#[derive(Clone)]
pub struct ClientKey(Arc<CertifiedKey>);

impl ClientKey {
    /// Reads the chain and the key, and checks that they belong together.
    ///
    /// # Errors
    /// One of the files is wrong.
    pub fn new(pair: &CertifiedPair) -> Result<Self, TlsConfigError> {
        certified_key(&pair.chain, &pair.key).map(Self)
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey")
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
