//! Decides which requests are answered.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, Uri};

/// What a request needs to be answered: the token, this server as its host, and no foreign origin.
#[derive(Debug)]
pub(super) struct Access {
    addr: SocketAddr,
    token: String,
}

impl Access {
    pub(super) fn new(addr: SocketAddr, token: String) -> Self {
        Self { addr, token }
    }

    /// Checks a request.
    ///
    /// # Errors
    /// The reason for the refusal, for the user who sent the request.
    pub(super) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), &'static str> {
        // A page elsewhere may have a name that resolves to this machine (DNS rebinding). Its
        // browser sends that name.
        let host = only(headers, HOST).filter(|host| self.is_own(host)).ok_or(FOREIGN_HOST)?;
        if uri.authority().is_some_and(|authority| authority.as_str() != host) {
            return Err(FOREIGN_HOST);
        }
        let is_same = |origin: &str| origin.strip_prefix("http://") == Some(host);
        match (headers.contains_key(ORIGIN), only(headers, ORIGIN)) {
            (false, _) if method == Method::GET || method == Method::HEAD => {}
            (true, Some(origin)) if is_same(origin) => {}
            _ => return Err(FOREIGN_ORIGIN),
        }
        let bearer = only(headers, AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let query = || uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="));
        let token = bearer.or_else(query).unwrap_or_default();
        if is_equal(token.as_bytes(), self.token.as_bytes()) { Ok(()) } else { Err(NO_TOKEN) }
    }

    /// Reports whether a `Host` header names this server: by an address, or as `localhost`. An
    /// address cannot be rebound, so a server at all addresses accepts each.
    fn is_own(&self, host: &str) -> bool {
        let any = self.addr.ip().is_unspecified();
        let is_ours = |ip: IpAddr| any || ip == self.addr.ip();
        let port = self.addr.port();
        if let Ok(named) = host.parse::<SocketAddr>() {
            return named.port() == port && is_ours(named.ip());
        }
        let name = match host.strip_suffix(&format!(":{port}")) {
            Some(name) => name,
            None if port == 80 => host,
            None => return false,
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(ip) => is_ours(ip),
            Err(_) => name == "localhost" && (any || self.addr.ip().is_loopback()),
        }
    }
}

/// Returns the value of a header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Compares in a time that does not depend on where the two differ.
fn is_equal(one: &[u8], two: &[u8]) -> bool {
    let differing = one.iter().zip(two).fold(0, |bits, (a, b)| bits | (a ^ b));
    one.len() == two.len() && std::hint::black_box(differing) == 0
}

const NO_TOKEN: &str = "the token is missing or wrong: open the link that throng printed";
const FOREIGN_HOST: &str =
    "this host name is not that of the dashboard: open the link that throng printed";
const FOREIGN_ORIGIN: &str = "a page from elsewhere may not ask: open the link that throng printed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_server_are_accepted() {
        let check = |listens: &str, host: &str, expected| {
            let access = Access::new(listens.parse().unwrap(), String::new());
            assert_eq!(access.is_own(host), expected, "{host} at {listens}");
        };
        check("127.0.0.1:9", "127.0.0.1:9", true);
        check("127.0.0.1:9", "localhost:9", true);
        check("127.0.0.1:9", "localhost:8", false);
        check("127.0.0.1:9", "localhost", false);
        check("127.0.0.1:9", "127.0.0.2:9", false);
        check("127.0.0.1:9", "rebound.example:9", false);
        check("127.0.0.1:9", "localhost.rebound.example:9", false);
        check("127.0.0.1:80", "127.0.0.1", true);
        check("127.0.0.1:80", "localhost", true);
        check("[::1]:9", "[::1]:9", true);
        check("0.0.0.0:9", "10.1.2.3:9", true);
        check("0.0.0.0:9", "localhost:9", true);
        check("0.0.0.0:9", "rebound.example:9", false);
        check("10.1.2.3:9", "localhost:9", false);
        check("10.1.2.3:9", "10.1.2.3:9", true);
    }

    #[test]
    fn tokens_are_equal_or_not() {
        assert!(is_equal(b"abc", b"abc"));
        for other in ["", "ab", "abd", "abcd"] {
            assert!(!is_equal(other.as_bytes(), b"abc"), "{other}");
        }
    }
}
