//! The opening handshake (RFC 6455 section 4).

use crate::http::Request;

/// A request that asks for the upgrade, and may have it.
#[derive(Clone, Copy, Debug)]
pub struct Upgrade {
    pub(crate) _accept: [u8; 28],
}

/// Why a request cannot be upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status to answer with: 400, 405 or 426.
    pub status: u16,
    /// What is wrong, a sentence with the RFC section; it may be the body of the answer.
    pub what: &'static str,
}

/// The subprotocols that a request offers, most wanted first.
pub fn offered_subprotocols<'a>(request: &Request<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let _ = request;
    std::iter::empty()
}
