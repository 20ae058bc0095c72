//! The session of HTTP requests: that of `throng-proto`.

use throng_proto::http::HttpClient;

use crate::user::UserSession;

pub(crate) type Session = HttpClient;

impl UserSession {
    /// Creates a session of HTTP requests.
    pub(crate) fn http_client() -> Self {
        Self::Http(HttpClient::new())
    }

    /// Returns the HTTP client, if this is one.
    pub(crate) fn http(&mut self) -> Option<&mut HttpClient> {
        match self {
            Self::Http(client) => Some(client),
            _ => None,
        }
    }
}
