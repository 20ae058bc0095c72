//! The target of a load.

use std::fmt;
use std::net::Ipv6Addr;
use std::ops::Range;
use std::str::FromStr;

use super::credentials::Credentials;
use crate::protocols::{PathPlace, Protocol, Scheme, SchemeRules};

/// A server's address as written; the host may be an unresolved name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Scheme of the URL.
    pub scheme: Scheme,
    /// True if it is reached over TLS: `wss`, `https`, `tls`.
    pub is_secure: bool,
    /// User and password of HTTP and of WebSockets.
    pub credentials: Option<Credentials>,
    /// A name, an IPv4 address, or an IPv6 address without its brackets, which may have a zone
    /// (`fe80::1%eth0`); several names and IPv4 addresses stand between commas.
    pub host: String,
    /// Port, 1 to 65535.
    pub port: u16,
    /// Path and query of a WebSocket, `/socket/websocket?room=1`; empty if none was written.
    pub path: String,
}

/// Error in a target, with the bytes at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct TargetError {
    /// Bytes at fault.
    pub span: Range<usize>,
    /// Description of the error.
    pub problem: String,
}

impl Target {
    /// Parses `tcp://host:port`, `ws://host:port/path?query` or `http://host:port`, or over TLS
    /// `tls://host:port`, `wss://host/path` or `https://host`. The host is a name, an IPv4 address
    /// or an IPv6 address in brackets, or several names and IPv4 addresses between commas. Before
    /// it, user and password may stand: `http://user:password@host`.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        check_variables(text)?;
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong(
                0..text.len(),
                "the scheme is missing: write tcp://, ws:// or http:// before it",
            ));
        };
        let begin = scheme.len() + 3;
        let (scheme, is_secure) = parse_scheme(scheme)?;
        let rules = scheme.rules();
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) if rules.path != PathPlace::Nowhere => rest.split_at(at),
            _ => (rest, ""),
        };
        let end = begin + authority.len();
        check_password(authority, path, end)?;
        let (credentials, authority, begin) = split_userinfo(authority, begin, scheme)?;
        let path = match rules.path {
            PathPlace::Request if !matches!(path, "" | "/") => {
                let problem = "each step has its own path: `get: /login`; leave this one out";
                return Err(wrong(end..end + path.len(), problem));
            }
            PathPlace::Request => String::new(),
            PathPlace::Nowhere | PathPlace::Target => check_path(path, end)?,
        };
        let (host, port) = split_authority(authority, begin, scheme)?;
        let port = match (port, default_port(scheme, is_secure)) {
            (Some(port), _) => parse_port(port, end - port.len())?,
            (None, Some(port)) => port,
            (None, None) => {
                let problem = format!("the port is missing: {}://host:port", rules.name);
                return Err(TargetError { span: begin..end, problem });
            }
        };
        Ok(Self { scheme, is_secure, credentials, host, port, path })
    }

    /// Returns the text before `://`.
    pub fn scheme_name(&self) -> &'static str {
        let rules = self.scheme.rules();
        if self.is_secure { rules.secure_name } else { rules.name }
    }

    /// Returns the name that the server's certificate must be for: the first host, without the zone
    /// of an address.
    pub fn server_name(&self) -> &str {
        let first = self.hosts().next().unwrap_or_default();
        // A zone means something on this machine alone (RFC 6874 section 4).
        first.split('%').next().unwrap_or_default()
    }

    /// Returns the whole URL, with user and password. Only another process of the run may see it.
    pub fn url(&self) -> String {
        let mut url = self.to_string();
        if let Some(credentials) = &self.credentials {
            let at = self.scheme_name().len() + 3;
            url.insert_str(at, &format!("{}@", credentials.userinfo()));
        }
        url
    }

    /// Returns the names and addresses of the host.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.host.split(',')
    }

    /// Returns the value of the `host` header of an upgrade (RFC 9110 section 7.2): of several
    /// hosts, the first one stands for all.
    pub fn host_header(&self) -> String {
        let first = self.server_name();
        let host = if first.contains(':') { format!("[{first}]") } else { first.to_owned() };
        if Some(self.port) == default_port(self.scheme, self.is_secure) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

/// Returns the port of a target that has none; `None` if a target must have one.
fn default_port(scheme: Scheme, is_secure: bool) -> Option<u16> {
    if is_secure { Some(443) } else { scheme.rules().port }
}

/// Parses the text before `://`, in upper or lower case (RFC 3986 section 3.1). Returns the scheme,
/// and true if it is over TLS.
fn parse_scheme(name: &str) -> Result<(Scheme, bool), TargetError> {
    let lower = name.to_ascii_lowercase();
    for scheme in Scheme::ALL.iter().copied() {
        let SchemeRules { name, secure_name, .. } = scheme.rules();
        if [*name, *secure_name].contains(&lower.as_str()) {
            return Ok((scheme, lower == *secure_name));
        }
    }
    let problem = match lower.as_str() {
        "udp" => format!("`{name}://` is not supported; use {}", known_schemes()),
        _ => format!("unknown scheme `{name}://`; use {}", known_schemes()),
    };
    Err(TargetError { span: 0..name.len() + 3, problem })
}

/// Lists what a target may begin with.
fn known_schemes() -> String {
    let names = Scheme::ALL.iter().flat_map(|scheme| {
        let rules = scheme.rules();
        [rules.name, rules.secure_name].map(|name| format!("`{name}://`"))
    });
    let names: Vec<_> = names.collect();
    match names.as_slice() {
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
        [] => String::new(),
    }
}

/// Returns the scheme of a target that may have mistakes.
pub(super) fn scheme_of(text: &str) -> Option<Scheme> {
    Some(parse_scheme(text.split_once("://")?.0).ok()?.0)
}

fn wrong(span: Range<usize>, problem: &str) -> TargetError {
    TargetError { span, problem: problem.to_owned() }
}

/// Checks that nothing in a target is to be filled in.
fn check_variables(text: &str) -> Result<(), TargetError> {
    let find = |open: &str, close: char| {
        let at = text.find(open)?;
        let end = text[at..].find(close).map_or(text.len(), |length| at + length + 1);
        Some(at..end)
    };
    if let Some(span) = find("${", '}') {
        let is_in_path = text[..span.start].split("://").nth(1).is_some_and(|it| it.contains('/'));
        let problem = match is_in_path {
            true => "a target has no variables; for a path of each user, write it in the step",
            false => {
                "a target has no variables: all users connect to it; write it out, use \
                      `--target`, or `$(name)` in a file with `params`"
            }
        };
        return Err(wrong(span, problem));
    }
    find("$(", ')')
        .map_or(Ok(()), |span| Err(wrong(span, "`$(` has a meaning only in a file with `params`")))
}

/// Checks that no character of a password has ended the authority.
fn check_password(authority: &str, path: &str, end: usize) -> Result<(), TargetError> {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_cut = match authority.split_once(':') {
        Some((user, rest)) => !user.starts_with('[') && !is_port(rest) && path.contains('@'),
        None => false,
    };
    match (path.chars().next(), is_cut && !authority.contains('@')) {
        (Some(letter), true) => {
            let code = u32::from(letter);
            let problem = format!("in a password `{letter}` is written %{code:02X}");
            Err(TargetError { span: end..end + 1, problem })
        }
        _ => Ok(()),
    }
}

/// Splits an authority that begins at `begin` into user and password, and the rest with its
/// beginning.
fn split_userinfo(
    text: &str,
    begin: usize,
    scheme: Scheme,
) -> Result<(Option<Credentials>, &str, usize), TargetError> {
    let Some((userinfo, rest)) = text.rsplit_once('@') else { return Ok((None, text, begin)) };
    if !scheme.rules().has_credentials {
        let problem = format!(
            "{} has no user and password; send them in a step, as the server asks for them",
            Protocol::of(scheme).title
        );
        return Err(TargetError { span: begin..begin + userinfo.len(), problem });
    }
    let credentials = Credentials::parse(userinfo, begin)?;
    Ok((credentials, rest, begin + userinfo.len() + 1))
}

/// Splits an authority that begins at `begin` into the host, and the port if there is one.
fn split_authority(
    text: &str,
    begin: usize,
    scheme: Scheme,
) -> Result<(String, Option<&str>), TargetError> {
    let (end, scheme) = (begin + text.len(), scheme.as_str());
    let some = |port: &&str| !port.is_empty();
    if let Some(bracketed) = text.strip_prefix('[') {
        let Some((host, after)) = bracketed.split_once(']') else {
            let problem = format!("the bracket is not closed: {scheme}://[::1]:5555");
            return Err(TargetError { span: begin..end, problem });
        };
        if !after.is_empty() && !after.starts_with(':') {
            let problem = "after `]` only a port may follow: [::1]:5555";
            return Err(wrong(end - after.len()..end, problem));
        }
        let host = check_ipv6(host, begin + 1)?;
        return Ok((host, after.strip_prefix(':').filter(some)));
    }
    if text.bytes().filter(|&byte| byte == b':').count() > 1 {
        let problem = match text.contains(',') {
            true => format!("one port, after the last host: {scheme}://10.0.0.2,10.0.0.3:5555"),
            false => format!("an IPv6 address needs brackets: {scheme}://[::1]:5555"),
        };
        return Err(TargetError { span: begin..end, problem });
    }
    let (host, port) = text.split_once(':').unwrap_or((text, ""));
    let is_plain = host.chars().all(|c| c.is_alphanumeric() || "-._,".contains(c));
    if !is_plain || host.split(',').any(str::is_empty) {
        return Err(wrong(begin..begin + host.len(), "expected a host name or an address"));
    }
    Ok((host.to_owned(), Some(port).filter(some)))
}

/// Checks an IPv6 address that begins at `at`. It may have a zone, whose `%` a URL may encode (RFC
/// 6874 section 2).
fn check_ipv6(text: &str, at: usize) -> Result<String, TargetError> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => {
            let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
            (address, Some(zone))
        }
        None => (text, None),
    };
    if address.parse::<Ipv6Addr>().is_err() {
        return Err(wrong(at..at + address.len(), "this is not an IPv6 address"));
    }
    let Some(zone) = zone else { return Ok(address.to_owned()) };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    if zone.is_empty() || !zone.chars().all(is_name) {
        let span = at + address.len()..at + text.len();
        return Err(wrong(span, "a zone is the name of an interface: [fe80::1%eth0]"));
    }
    Ok(format!("{address}%{zone}"))
}

fn parse_port(text: &str, at: usize) -> Result<u16, TargetError> {
    match text.parse::<u16>() {
        Ok(number) if number > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => Err(wrong(at..at + text.len(), "a port is a number from 1 to 65535")),
    }
}

/// Checks a path with query. They go into the first line of a request: printable ASCII without
/// spaces (RFC 3986). A fragment stays with the client (RFC 6455 section 3).
fn check_path(path: &str, at: usize) -> Result<String, TargetError> {
    if let Some(from) = path.find('#') {
        return Err(wrong(at + from..at + path.len(), "a WebSocket URL has no fragment"));
    }
    if let Some((from, bad)) = path.char_indices().find(|(_, c)| !c.is_ascii_graphic()) {
        let span = at + from..at + from + bad.len_utf8();
        return Err(wrong(span, "must be percent-encoded, %20 for a space"));
    }
    Ok(if path.starts_with('?') { format!("/{path}") } else { path.to_owned() })
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Self::parse(text)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme: _, is_secure: _, credentials: _, host, port, path } = self;
        let scheme = self.scheme_name();
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}{path}")
        } else {
            write!(f, "{scheme}://{host}:{port}{path}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown() {
        for (text, host, port) in [
            ("tcp://127.0.0.1:5555", "127.0.0.1", 5555),
            ("tcp://[::1]:5555", "::1", 5555),
            ("tcp://host:4444", "host", 4444),
            ("tcp://a-b.example.com:1", "a-b.example.com", 1),
            ("tcp://10.0.0.2,b.example.com:4000", "10.0.0.2,b.example.com", 4000),
            ("tcp://[fe80::1%eth0]:5555", "fe80::1%eth0", 5555),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
            assert_eq!(target.to_string(), text);
        }
    }

    #[test]
    fn targets_of_websockets_have_a_path_and_a_port_of_their_own() {
        for (text, host, port, path, shown, header) in [
            ("ws://h:4000/socket/websocket", "h", 4000, "/socket/websocket", "", "h:4000"),
            (
                "ws://h/chat?room=1&b=%20",
                "h",
                80,
                "/chat?room=1&b=%20",
                "ws://h:80/chat?room=1&b=%20",
                "h",
            ),
            ("ws://[::1]:9000", "::1", 9000, "", "", "[::1]:9000"),
            ("ws://one,two:9000", "one,two", 9000, "", "", "one:9000"),
            ("ws://h:1?a=b", "h", 1, "/?a=b", "ws://h:1/?a=b", "h:1"),
            ("WS://h:1/@a", "h", 1, "/@a", "ws://h:1/@a", "h:1"),
            ("ws://u:p%40@h:1/a@b", "h", 1, "/a@b", "ws://h:1/a@b", "h:1"),
            ("ws://u@[::1]", "::1", 80, "", "ws://[::1]:80", "[::1]"),
            (
                "ws://[fe80::1%25eth0]:9",
                "fe80::1%eth0",
                9,
                "",
                "ws://[fe80::1%eth0]:9",
                "[fe80::1]:9",
            ),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.scheme, Scheme::Ws);
            assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
            assert_eq!((target.path.as_str(), target.host_header().as_str()), (path, header));
            assert_eq!(target.to_string(), if shown.is_empty() { text } else { shown });
        }
    }

    #[test]
    fn targets_over_tls_have_a_port_of_their_own() {
        for (text, scheme, shown, header, name) in [
            ("wss://h/chat", Scheme::Ws, "wss://h:443/chat", "h", "h"),
            ("WSS://h:4443/", Scheme::Ws, "wss://h:4443/", "h:4443", "h"),
            ("https://h", Scheme::Http, "https://h:443", "h", "h"),
            ("https://h:80", Scheme::Http, "https://h:80", "h:80", "h"),
            ("tls://one,two", Scheme::Tcp, "tls://one,two:443", "one", "one"),
            ("tls://[::1]:5", Scheme::Tcp, "tls://[::1]:5", "[::1]:5", "::1"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.scheme, target.is_secure), (scheme, true), "{text}");
            assert_eq!((target.to_string().as_str(), target.url().as_str()), (shown, shown));
            assert_eq!((target.host_header().as_str(), target.server_name()), (header, name));
        }
        assert!(!Target::parse("ws://h:443/").unwrap().is_secure);
        assert_eq!(Target::parse("https://u:p@h").unwrap().url(), "https://u:p@h:443");
    }

    #[test]
    fn only_the_url_has_user_and_password() {
        for (text, url) in [
            ("http://user:p%40ss@h:1", "http://user:p%40ss@h:1"),
            ("ws://a@corp:b@h/chat", "ws://a%40corp:b@h:80/chat"),
            ("ws://user@h:1/", "ws://user:@h:1/"),
            ("ws://@h:1/", "ws://h:1/"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.url(), url);
            assert_eq!(Target::parse(url).unwrap(), target);
            assert!(!target.to_string().contains('@'));
        }
    }

    #[test]
    fn a_wrong_target_is_pointed_at() {
        for (text, at, says) in [
            ("127.0.0.1:5555", "127.0.0.1:5555", "scheme is missing"),
            ("http://h:1/socket", "/socket", "its own path"),
            ("https://h:1/socket", "/socket", "its own path"),
            ("udp://h:1", "udp://", "not supported"),
            ("ws://h:1/a b", " ", "percent-encoded"),
            ("ws://h:1/a#b", "#b", "fragment"),
            ("ws://h:x/a", "x", "1 to 65535"),
            ("ws:///a", "", "expected a host"),
            ("ws://::1/a", "::1", "needs brackets: ws://"),
            ("tpc://h:1", "tpc://", "unknown scheme"),
            ("tcp://h", "h", "port is missing"),
            ("tcp://h:", "h:", "port is missing"),
            ("tcp://h:0", "0", "1 to 65535"),
            ("tcp://h:+80", "+80", "1 to 65535"),
            ("tcp://h:65536", "65536", "1 to 65535"),
            ("tcp://h:80/path", "80/path", "1 to 65535"),
            ("tcp://::1:5555", "::1:5555", "needs brackets"),
            ("ws://10.0.0.2:4000,10.0.0.3:4000", "10.0.0.2:4000,10.0.0.3:4000", "one port, after"),
            ("tcp://[::1:5555", "[::1:5555", "not closed"),
            ("tcp://[::g]:5555", "::g", "not an IPv6"),
            ("tcp://[::1]", "[::1]", "port is missing"),
            ("tcp://:5555", "", "expected a host"),
            ("tcp://a b:5555", "a b", "expected a host"),
            ("tcp://a,:5555", "a,", "expected a host"),
            ("tcp://user:pw@h:1", "user:pw", "plain TCP has no user"),
            ("ws://user:pw@::1/a", "::1", "needs brackets"),
            ("ws://user:pw@/a", "", "expected a host"),
            ("ws://user:p%@h/a", "%", "written %25"),
            ("http://user:p/w@h", "/", "written %2F"),
            ("http://user:p?w@h", "?", "written %3F"),
            ("ws://user:p#w@h", "#", "written %23"),
            ("tcp://[::1]5555", "5555", "only a port"),
            ("tcp://[::g%eth0]:5", "::g", "not an IPv6"),
            ("tcp://[fe80::1%]:5", "%", "name of an interface"),
            ("ws://${env.HOST}:1/a", "${env.HOST}", "no variables: all users"),
            ("${url}", "${url}", "no variables: all users"),
            ("ws://h:1/a?b=${user.id}&c=d", "${user.id}", "path of each user"),
            ("ws://$(host):1/a", "$(host)", "file with `params`"),
        ] {
            let error = Target::parse(text).expect_err(text);
            assert_eq!(&text[error.span.clone()], at, "{text}: {error}");
            assert!(error.problem.contains(says), "{text}: {error}");
        }
    }
}
