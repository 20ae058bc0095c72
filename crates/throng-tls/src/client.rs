//! Clients of one process that are told apart: whose sessions they resume, and what they show.

use std::fmt;
use std::sync::Arc;

use rustls::sign::CertifiedKey;

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
pub struct ClientKey(pub(crate) Arc<CertifiedKey>);

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey")
    }
}
