//! Why a cookie of a response is not stored.

use std::fmt;

/// The reason for which a jar does not hold a cookie after its `set-cookie` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieRefusal {
    /// The field does not begin with a name, `=` and a value.
    Syntax,
    /// The cookie has `Secure`, and the connection is plain HTTP.
    Secure,
    /// Name, value and path are longer than [`COOKIE_BYTES_MAX`](super::COOKIE_BYTES_MAX).
    TooLong,
    /// Its `Max-Age` or `Expires` is past. The jar held no cookie of this name and path.
    Expired,
    /// Its `Max-Age` or `Expires` is past: the server deletes the cookie that the jar held.
    Deleted,
    /// It is not UTF-8, and its bytes are not known any more.
    NotUtf8,
}

impl fmt::Display for CookieRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "dropped: it does not begin with name=value",
            Self::Secure => "dropped: it is Secure, and the connection is plain HTTP",
            Self::TooLong => "dropped: it is longer than 4 KiB",
            Self::Expired => "dropped: it has expired",
            Self::Deleted => "deleted: it has expired",
            Self::NotUtf8 => "dropped: it is not UTF-8",
        })
    }
}

/// Returns the name of the cookie in a `set-cookie` field; `None` if it has none.
pub fn cookie_name(set_cookie: &str) -> Option<&str> {
    let pair = set_cookie.split(';').next()?;
    let (name, _) = pair.split_once('=')?;
    Some(name.trim_ascii()).filter(|name| !name.is_empty())
}
