//! What the steps of a handshake cost, for the budget of a turn: the core does nothing else
//! meanwhile. Microseconds of one core of an AMD EPYC with `ring`.

/// Step of a server that signs with ECDSA or Ed25519.
pub(crate) const ECDSA_FLIGHT_US: u32 = 160;

/// Step of a server that signs with RSA.
pub(crate) const RSA_FLIGHT_US: u32 = 1_000;

/// Steps of a client: the one that checks a chain of certificates, and what may follow.
pub(crate) const CLIENT_US: [u32; 2] = [300, RECORD_US];

/// Last step of a server that checks a chain of certificates.
pub(crate) const CLIENT_CERTIFICATE_US: u32 = 180;

/// Step that reads a record and makes no flight.
pub(crate) const RECORD_US: u32 = 10;

/// Whole full handshake of a client: a key share, a chain of two certificates with ECDSA, a
/// signature. For plans.
pub const CLIENT_FULL_US: u32 = 305;

/// Whole handshake of a client that resumes a session of TLS 1.3, which still agrees a key. For
/// plans.
pub const CLIENT_RESUMED_US: u32 = 107;
