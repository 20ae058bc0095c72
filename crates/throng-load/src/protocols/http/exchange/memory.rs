//! What a user remembers of its HTTP requests. Only users with cookies have any, and those that
//! must be able to send a request again.

use throng_base::{Instant, Prng};
use throng_proto::http::CookieJar;

/// Memory of HTTP requests.
#[derive(Debug, Default)]
pub(crate) struct HttpMemory {
    pub(crate) cookies: CookieJar,
    /// The user's counter and random numbers before the last request was rendered: rendering it
    /// again gives the same bytes.
    pub(crate) before: Option<(u32, Prng)>,
    /// The moment from which the time-out of the request counts whose connect is not the first one.
    pub(crate) asked_at: Option<Instant>,
    /// The moment at which that connect began.
    pub(crate) dialed_at: Option<Instant>,
}
