//! TLS 1.3 and 1.2 of both roles, without a socket, a clock or a thread.
//!
//! rustls makes the handshake. Then its state is dropped, and a record layer of our own does the
//! rest with [`CONN_BYTES`] a connection: keys, secrets and sequence numbers, no buffer.
//!
//! A core has one [`TlsTable`], to the engine a [`TlsTransport`]. The entry of a connection has a
//! key of four bytes. Bytes that arrived become plaintext in place ([`TlsTable::open`]), plaintext
//! becomes records that are appended to the caller's buffer ([`TlsTable::seal`]).

mod alert;
mod cipher;
mod client;
mod config;
mod counters;
mod error;
mod handshake;
mod key_schedule;
mod keys;
mod open;
mod places;
mod post_handshake;
mod record;
mod seen_server;
mod slot;
mod suite;
mod table;
mod tickets;
mod transport;
#[cfg(test)]
mod wycheproof;

pub use alert::Alert;
pub use cipher::Cipher;
pub use client::{ClientKey, TlsClient};
#[cfg(feature = "self-signed")]
pub use config::self_signed::SelfSigned;
pub use config::{
    CertifiedPair, PemFile, TlsClientConfig, TlsClientOptions, TlsConfigError, TlsServerConfig,
    TlsServerOptions, TrustAnchors,
};
pub use counters::TlsCounters;
pub use error::{TlsError, TlsFault};
pub use handshake::{
    CLIENT_FULL_US, CLIENT_RESUMED_US, HandshakeFailure, HandshakeReport, KeyLogSink,
    TlsHandshakeKind,
};
pub use keys::CONN_BYTES;
pub use open::OpenOutcome;
pub use record::{PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX};
pub use seen_server::SeenServer;
pub use suite::{Suite, TlsVersion};
pub use table::{TlsKey, TlsStatus, TlsTable};
pub use tickets::{TicketKeys, TicketPool};
pub use transport::{ClientKeySource, TlsTransport};
