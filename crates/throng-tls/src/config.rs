//! Configurations of both roles, from files in PEM.
//!
//! Each core has configurations of its own: rustls clones their pointers in each handshake, which
//! would move one cache line between all cores.

mod certificate;
mod client;
pub(crate) mod client_key;
mod error;
mod pem;
#[cfg(feature = "self-signed")]
pub(crate) mod self_signed;
mod server;
pub(crate) mod server_verifier;
mod validity;
mod versions;
pub(crate) mod x509;

pub use client::{TlsClientConfig, TlsClientOptions, TrustAnchors};
pub use error::TlsConfigError;
pub use pem::PemFile;
pub use server::{CertifiedPair, TlsServerConfig, TlsServerOptions};
pub(crate) use validity::validity;
pub(crate) use versions::suite_of;
