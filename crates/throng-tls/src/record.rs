//! Records (RFC 8446 section 5, RFC 5246 section 6.2): their header, sealing and opening, and the
//! one that arrived in part.

pub(crate) mod header;
pub(crate) mod open;
pub(crate) mod reader;
pub(crate) mod seal;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
pub(crate) mod vectors;

pub(crate) use header::{ContentType, Phase};
pub use header::{PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX};
pub(crate) use open::Opener;
pub(crate) use reader::Records;
pub(crate) use seal::{KEY_UPDATE, Sealer};
