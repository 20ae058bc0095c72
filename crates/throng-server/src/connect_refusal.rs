//! The answer to a client that may not connect.

/// The HTTP answer to a client that may not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRefusal {
    /// The HTTP status, such as 401 or 403.
    pub(crate) status: u16,
    /// Text for the client.
    pub(crate) body: String,
}

impl ConnectRefusal {
    /// Makes an answer with this HTTP status, 429 for example.
    pub fn status(status: u16) -> Self {
        Self { status, body: String::new() }
    }

    /// Sets the body.
    pub fn with_body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }
}

/// Status 403 without a body.
impl Default for ConnectRefusal {
    fn default() -> Self {
        Self::status(403)
    }
}
