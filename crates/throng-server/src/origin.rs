//! `check_origin`: the pages that may open a socket.
//!
//! A browser names the site of a page in the `origin` header, and sends that site's cookies to the
//! servers that the page connects to. Clients that are not browsers send no such header and are
//! admitted.

use std::net::{Ipv4Addr, Ipv6Addr};

use throng_proto::http::Request;

/// The pages that may connect. Other pages are answered 403.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CheckOrigin {
    /// Pages of this server's own host, with any scheme and port. Default.
    ///
    /// If the server's name is configured ([`Channels::host`](crate::channels::Channels::host), or
    /// [`WebSocketOptions::host`](crate::WebSocketOptions)), its host is that name and no other.
    /// Otherwise it is the request's `host` header, if that is an IP address or `localhost`. Any
    /// other name is not trusted: its owner can make it resolve to this server after a browser has
    /// loaded a page of that name from another server (DNS rebinding), and then both headers
    /// contain that name.
    #[default]
    Host,
    /// Pages with exactly the scheme, host and port that the request was sent to. The request's own
    /// `host` header is trusted, so a proxy in front of the server must check it.
    Connection,
    /// Pages of these sites.
    List(Vec<Origin>),
    /// Pages of any site.
    Off,
}

/// A site or several: `https://example.com`, `//example.com:888`, `//*.example.com`.
///
/// Without a scheme or a port, any matches. `*.` matches the host itself and every host under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: Option<String>,
    host: String,
    subdomains: bool,
    port: Option<u16>,
}

/// The error for a text that is not an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an origin; write https://example.com, //example.com:888 or //*.example.com")]
pub struct OriginError(String);

impl CheckOrigin {
    /// Reports whether the page that sent `request`, if a page did, may connect. `host` is the
    /// configured name of the server, which speaks TLS if `is_https`.
    pub(crate) fn allows_request(
        &self,
        is_https: bool,
        host: Option<&str>,
        request: &Request<'_>,
    ) -> bool {
        self.allows(is_https, request.header("origin"), host, request.header("host"))
    }

    /// Reports whether a page of `origin` may connect. `host` is the configured name of the server;
    /// `requested` is the request's `host` header.
    fn allows(
        &self,
        is_https: bool,
        origin: Option<&str>,
        host: Option<&str>,
        requested: Option<&str>,
    ) -> bool {
        let Some(origin) = origin else { return true };
        if *self == Self::Off {
            return true;
        }
        // `null`, which sandboxed pages send, has no host.
        let Some(page) = Site::parse(origin).filter(|site| !site.host.is_empty()) else {
            return false;
        };
        match self {
            Self::Off => true,
            Self::Host => match (host, requested) {
                (Some(host), _) => is_same(host, page.host),
                (None, Some(requested)) => {
                    let (host, _) = split_port(requested);
                    is_fixed(host) && is_same(host, page.host)
                }
                (None, None) => false,
            },
            Self::Connection => requested.is_some_and(|requested| {
                let (host, port) = split_port(requested);
                let (scheme, standard) = if is_https { ("https", 443) } else { ("http", 80) };
                let same_port =
                    page.port == Some(port.and_then(|port| port.parse().ok()).unwrap_or(standard));
                page.scheme == Some(scheme) && host.eq_ignore_ascii_case(page.host) && same_port
            }),
            Self::List(list) => list.iter().any(|allowed| allowed.matches(&page)),
        }
    }
}

impl Origin {
    fn matches(&self, page: &Site<'_>) -> bool {
        let scheme = self.scheme.as_deref();
        scheme.is_none_or(|scheme| page.scheme == Some(scheme))
            && self.port.is_none_or(|port| page.port == Some(port))
            && (self.host.eq_ignore_ascii_case(page.host)
                || self.subdomains && is_under(page.host, &self.host))
    }
}

impl std::str::FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let error = || OriginError(text.to_owned());
        let site = Site::parse(text).ok_or_else(error)?;
        let subdomains = site.host.starts_with("*.");
        let host = if subdomains { &site.host[2..] } else { site.host };
        if host.is_empty() || host.contains('*') {
            return Err(error());
        }
        let scheme = site.scheme.map(str::to_owned);
        Ok(Self { scheme, host: host.to_owned(), subdomains, port: site.port })
    }
}

/// The parts of an origin.
struct Site<'a> {
    /// The scheme: `http` and `https` in lower case, others as written.
    scheme: Option<&'a str>,
    host: &'a str,
    /// The port, or the scheme's default port.
    port: Option<u16>,
}

impl<'a> Site<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("//")?;
        let scheme = match scheme.strip_suffix(':') {
            Some(scheme) if !scheme.is_empty() => Some(normalized_scheme(scheme)),
            None if scheme.is_empty() => None,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        let (host, port) = split_port(authority);
        let port = match port {
            Some(port) => Some(port.parse().ok()?),
            None => match scheme {
                Some("http") => Some(80),
                Some("https") => Some(443),
                _ => None,
            },
        };
        Some(Self { scheme, host, port })
    }
}

/// Returns the scheme with `http` and `https` in lower case.
fn normalized_scheme(scheme: &str) -> &str {
    ["http", "https"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme)).unwrap_or(scheme)
}

/// Splits `host:port`, where the host may be `[::1]`.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Reports whether no DNS server decides where a host leads: it is an address or `localhost`.
fn is_fixed(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok()
        || host.starts_with('[') && bare(host).parse::<Ipv6Addr>().is_ok()
}

fn is_same(one: &str, other: &str) -> bool {
    bare(one).eq_ignore_ascii_case(bare(other))
}

/// Returns a host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn is_under(host: &str, domain: &str) -> bool {
    let Some(dot) = host.len().checked_sub(domain.len() + 1) else { return false };
    host.as_bytes()[dot] == b'.'
        && host.as_bytes()[dot + 1..].eq_ignore_ascii_case(domain.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(origins: &[&str]) -> CheckOrigin {
        CheckOrigin::List(origins.iter().map(|origin| origin.parse().unwrap()).collect())
    }

    #[track_caller]
    fn check(rule: &CheckOrigin, origin: Option<&str>, allowed: bool) {
        let (host, requested) = (Some("example.com"), Some("example.com:4000"));
        assert_eq!(rule.allows(false, origin, host, requested), allowed, "{rule:?} and {origin:?}");
    }

    #[test]
    fn a_request_without_origin_is_allowed() {
        for rule in
            [CheckOrigin::Host, CheckOrigin::Connection, list(&["//other.com"]), CheckOrigin::Off]
        {
            check(&rule, None, true);
        }
    }

    #[test]
    fn an_origin_without_host_is_refused_unless_nothing_is_checked() {
        for origin in ["null", "file://", "", "example.com", "http:example.com", "://example.com"] {
            for rule in [CheckOrigin::Host, CheckOrigin::Connection, list(&["//example.com"])] {
                check(&rule, Some(origin), false);
            }
            check(&CheckOrigin::Off, Some(origin), true);
        }
    }

    #[test]
    fn a_configured_host_is_the_servers_only_one_whatever_scheme_and_port() {
        let named = |origin, host| {
            // What the request itself calls the server means nothing then.
            let verdicts = [Some("10.0.0.1"), Some("evil.example"), Some("example.com:4000"), None]
                .map(|requested| {
                    CheckOrigin::Host.allows(false, Some(origin), Some(host), requested)
                });
            assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]));
            verdicts[0]
        };
        for (origin, allowed) in [
            ("http://example.com", true),
            ("https://example.com:888", true),
            ("http://EXAMPLE.com:4000", true),
            ("http://www.example.com", false),
            ("http://example.com.evil.org", false),
            ("http://10.0.0.1", false),
            ("http://localhost", false),
        ] {
            assert_eq!(named(origin, "example.com"), allowed, "{origin}");
        }
        assert!(named("http://[fd00::7]:80", "fd00::7") && named("http://[fd00::7]", "[FD00::7]"));
    }

    #[test]
    fn without_one_it_is_an_address_or_localhost_and_no_other_name() {
        let allows = |origin: &str, requested: Option<&str>| {
            CheckOrigin::Host.allows(false, Some(origin), None, requested)
        };
        for (host, other) in [
            ("127.0.0.1", "127.0.0.2"),
            ("10.0.0.7", "localhost"),
            ("localhost", "127.0.0.1"),
            ("LocalHost", "localhost.evil.example"),
            ("[::1]", "[::2]"),
            ("[fd00::7]", "[::1]"),
        ] {
            for port in ["", ":80", ":4000"] {
                let requested = format!("{host}{port}");
                assert!(allows(&format!("http://{host}:5555"), Some(&requested)), "{requested}");
                assert!(allows(&format!("https://{host}"), Some(&requested)), "{requested}");
                assert!(!allows(&format!("http://{other}"), Some(&requested)), "{requested}");
            }
        }
        // Both headers of a page under a rebound name.
        for name in ["evil.example", "localhost.evil.example", "localhost.", "1.2.3.4.nip.io"] {
            assert!(!allows(&format!("http://{name}"), Some(name)), "{name}");
            assert!(!allows(&format!("http://{name}:80"), Some(&format!("{name}:80"))), "{name}");
        }
        // What is no address the way a browser writes one.
        for name in ["127.1", "0x7f.0.0.1", "[::1", "::1", "[127.0.0.1]", "[localhost]"] {
            assert!(!allows(&format!("http://{name}"), Some(name)), "{name}");
        }
        assert!(!allows("http://[::1]", None));
    }

    #[test]
    fn the_connection_has_scheme_host_and_port() {
        for (origin, allowed) in [
            ("http://example.com:4000", true),
            ("HTTP://example.com:4000", true),
            ("https://example.com:4000", false),
            ("http://example.com", false),
            ("http://example.org:4000", false),
        ] {
            check(&CheckOrigin::Connection, Some(origin), allowed);
        }
        assert!(CheckOrigin::Connection.allows(
            false,
            Some("http://example.com"),
            None,
            Some("example.com")
        ));
    }

    #[test]
    fn the_connection_to_a_server_with_tls_has_https_and_its_port() {
        let allows = |origin, requested| {
            CheckOrigin::Connection.allows(true, Some(origin), None, Some(requested))
        };
        assert!(allows("https://example.com", "example.com"));
        assert!(allows("https://example.com:4000", "example.com:4000"));
        assert!(!allows("http://example.com", "example.com"));
        assert!(!allows("https://example.com:80", "example.com"));
    }

    #[test]
    fn what_an_entry_leaves_out_may_be_anything() {
        for (entry, origin, allowed) in [
            ("//example.com", "http://example.com", true),
            ("//example.com", "https://example.com:888", true),
            ("//example.com", "https://www.example.com", false),
            ("//example.com:888", "https://example.com:888", true),
            ("//example.com:888", "https://example.com", false),
            ("https://example.com", "https://example.com", true),
            ("https://example.com", "https://example.com:443", true),
            ("https://example.com", "http://example.com", false),
            ("https://example.com", "https://example.com:444", false),
            ("http://example.com:8080", "http://example.com:8080", true),
            ("//*.other.com", "http://other.com", true),
            ("//*.other.com", "https://a.other.com:1", true),
            ("//*.other.com", "https://a.b.other.com", true),
            ("//*.other.com", "https://another.com", false),
            ("//*.other.com", "https://other.com.evil.org", false),
            ("https://*.other.com", "http://a.other.com", false),
        ] {
            check(&list(&["//first.com", entry]), Some(origin), allowed);
        }
    }

    #[test]
    fn what_is_no_origin_is_refused_with_examples() {
        for text in [
            "",
            "example.com",
            "//",
            "https://",
            "//*",
            "//a.*.com",
            "//example.com:x",
            "*://a.com:99999",
        ] {
            let error = text.parse::<Origin>().unwrap_err();
            assert!(error.to_string().contains("//*.example.com"), "{text}");
        }
    }
}
