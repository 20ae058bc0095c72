//! The limits of a response that a client reads.

/// The longest head of a response, and of all its trailers.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// The longest body that a client keeps as a whole.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// The bytes that a client keeps of a body that its caller does not need.
pub const BODY_EXCERPT_BYTES_MAX: usize = 1 << 10;
/// The most interim responses (1xx) before a response.
pub const INTERIM_RESPONSES_MAX: u32 = 64;
