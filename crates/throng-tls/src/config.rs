//! Configurations of both roles, from files in PEM.
//!
//! Each core has configurations of its own: rustls clones their pointers in each handshake, which
//! would move one cache line between all cores.

mod certificate;
mod client;
mod client_key;
mod error;
mod named_certificate;
mod pem;
#[cfg(feature = "self-signed")]
pub(crate) mod self_signed;
mod server;
mod validity;
mod verify_none;
mod versions;

pub use client::{TlsClientConfig, TlsClientOptions, TrustAnchors};
pub use error::TlsConfigError;
pub use pem::PemFile;
pub use server::{CertifiedPair, TlsServerConfig, TlsServerOptions};
pub(crate) use validity::validity;
pub(crate) use versions::suite_of;
