//! Whom to connect to, and whether that may be done without asking.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::str::FromStr;

/// A server's address as it was written; the host may be a name that is not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// How to talk to it.
    pub scheme: Scheme,
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
}

/// The schemes that this version speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Bytes over TCP.
    Tcp,
}

/// Where an address is reachable from, which decides whether load may be sent there unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// This machine: 127.0.0.0/8, ::1.
    Loopback,
    /// A network of one's own: 10/8, 172.16/12, 192.168/16, 169.254/16, fc00::/7, fe80::/10.
    Private,
    /// 198.18.0.0/15, set aside for benchmarks (RFC 2544).
    Benchmark,
    /// Everything else, which belongs to somebody.
    Public,
}

/// Why a text is not a target, and which of its bytes say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetError {
    /// The bytes at fault.
    pub span: Range<usize>,
    /// What is wrong with them.
    pub problem: String,
}

impl Target {
    /// `tcp://host:port`, the host a name, an IPv4 address or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let wrong =
            |span: Range<usize>, problem: &str| TargetError { span, problem: problem.to_owned() };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong(0..text.len(), "the scheme is missing: tcp://host:port"));
        };
        if scheme != "tcp" {
            let problem = match scheme {
                "ws" | "wss" | "http" | "https" | "tls" | "udp" => {
                    format!("`{scheme}://` is not in this version; `tcp://` is")
                }
                _ => format!("`{scheme}://` is not known; `tcp://` is"),
            };
            return Err(TargetError { span: 0..scheme.len() + 3, problem });
        }
        let begin = scheme.len() + 3;
        let (host, port, host_at) = if let Some(bracketed) = rest.strip_prefix('[') {
            let Some((host, after)) = bracketed.split_once(']') else {
                return Err(wrong(
                    begin..text.len(),
                    "the bracket is not closed: tcp://[::1]:5555",
                ));
            };
            if host.parse::<Ipv6Addr>().is_err() {
                let at = begin + 1..begin + 1 + host.len();
                return Err(wrong(at, "this is not an IPv6 address"));
            }
            (host, after.strip_prefix(':').filter(|port| !port.is_empty()), begin)
        } else {
            if rest.bytes().filter(|&byte| byte == b':').count() > 1 {
                return Err(wrong(
                    begin..text.len(),
                    "an IPv6 address stands in brackets: tcp://[::1]:5555",
                ));
            }
            let (host, port) = rest.split_once(':').unwrap_or((rest, ""));
            (host, Some(port).filter(|port| !port.is_empty()), begin)
        };
        let name_is_plain = host.chars().all(|c| c.is_alphanumeric() || "-._:".contains(c));
        if host.is_empty() || !name_is_plain {
            return Err(wrong(
                host_at..host_at + host.len(),
                "a host name or an address belongs here",
            ));
        }
        let Some(port) = port else {
            return Err(wrong(begin..text.len(), "the port is missing: tcp://host:port"));
        };
        match port.parse::<u16>() {
            Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Self { scheme: Scheme::Tcp, host: host.to_owned(), port: number })
            }
            _ => Err(wrong(
                text.len() - port.len()..text.len(),
                "a port is a number from 1 to 65535",
            )),
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Self::parse(text)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme: Scheme::Tcp, host, port } = self;
        if host.contains(':') {
            write!(f, "tcp://[{host}]:{port}")
        } else {
            write!(f, "tcp://{host}:{port}")
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for TargetError {}

impl Reach {
    /// Which of the four `address` is. An IPv4 address inside an IPv6 one counts as itself.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => Self::of_v4(v4),
                None if v6.is_loopback() => Self::Loopback,
                None if v6.is_unique_local() || v6.is_unicast_link_local() => Self::Private,
                None => Self::Public,
            },
        }
    }

    fn of_v4(v4: Ipv4Addr) -> Self {
        let [a, b, ..] = v4.octets();
        if v4.is_loopback() {
            Self::Loopback
        } else if a == 198 && (b == 18 || b == 19) {
            Self::Benchmark
        } else if v4.is_private() || v4.is_link_local() {
            Self::Private
        } else {
            Self::Public
        }
    }

    /// Whether load may be sent there without `--i-am-allowed`.
    pub fn needs_no_permission(self) -> bool {
        self != Self::Public
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
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
            assert_eq!(target.to_string(), text);
        }
    }

    #[test]
    fn a_wrong_target_is_pointed_at() {
        for (text, at, says) in [
            ("127.0.0.1:5555", "127.0.0.1:5555", "scheme is missing"),
            ("ws://h:1/socket", "ws://", "not in this version"),
            ("tpc://h:1", "tpc://", "not known"),
            ("tcp://h", "h", "port is missing"),
            ("tcp://h:", "h:", "port is missing"),
            ("tcp://h:0", "0", "1 to 65535"),
            ("tcp://h:+80", "+80", "1 to 65535"),
            ("tcp://h:65536", "65536", "1 to 65535"),
            ("tcp://h:80/path", "80/path", "1 to 65535"),
            ("tcp://::1:5555", "::1:5555", "in brackets"),
            ("tcp://[::1:5555", "[::1:5555", "not closed"),
            ("tcp://[::g]:5555", "::g", "not an IPv6"),
            ("tcp://[::1]", "[::1]", "port is missing"),
            ("tcp://:5555", "", "belongs here"),
            ("tcp://a b:5555", "a b", "belongs here"),
        ] {
            let error = Target::parse(text).expect_err(text);
            assert_eq!(&text[error.span.clone()], at, "{text}: {error}");
            assert!(error.problem.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn reach_knows_the_reserved_ranges_and_their_edges() {
        use Reach::{Benchmark, Loopback, Private, Public};
        for (address, reach) in [
            ("127.0.0.1", Loopback),
            ("127.255.255.255", Loopback),
            ("128.0.0.1", Public),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("10.0.0.1", Private),
            ("11.0.0.1", Public),
            ("172.15.255.255", Public),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("172.32.0.0", Public),
            ("192.168.1.1", Private),
            ("169.254.1.1", Private),
            ("198.17.255.255", Public),
            ("198.18.0.0", Benchmark),
            ("198.19.255.255", Benchmark),
            ("198.20.0.0", Public),
            ("::ffff:198.18.0.1", Benchmark),
            ("fc00::1", Private),
            ("fdff::1", Private),
            ("fe00::1", Public),
            ("fe80::1", Private),
            ("febf::1", Private),
            ("fec0::1", Public),
            ("2001:db8::1", Public),
            ("::ffff:8.8.8.8", Public),
            ("0.0.0.0", Public),
        ] {
            assert_eq!(Reach::of(address.parse().unwrap()), reach, "{address}");
        }
        assert!(
            Loopback.needs_no_permission()
                && Private.needs_no_permission()
                && Benchmark.needs_no_permission()
        );
        assert!(!Public.needs_no_permission());
    }
}
