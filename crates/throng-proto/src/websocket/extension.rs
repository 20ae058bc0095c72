//! Agreeing on permessage-deflate (RFC 7692 sections 5 and 7.1).
//!
//! We never take a context over, in either direction: 300 KB a connection would be the price of it. So the server
//! always answers both `no_context_takeover`, and the client insists on the server's.

use std::io::Write as _;

use crate::http::{Headers, members};

/// What a server has agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NegotiatedDeflate {
    /// Bits of the window that the server compresses with.
    pub(super) bits: u8,
    /// The client asked for it, so the answer must say it.
    is_asked: bool,
}

/// The first of the offers in this header field that we can accept. One with a parameter that is not known, that is
/// there twice or that has no legal value is not for us (section 7.1).
pub(super) fn accept(offers: &str) -> Option<NegotiatedDeflate> {
    extensions(offers).filter(|(name, _)| *name == NAME).find_map(|(_, parameters)| {
        let parameters = Parameters::read(parameters, true)?;
        let asked = parameters.server_bits;
        Some(NegotiatedDeflate {
            bits: asked.unwrap_or(WINDOW_BITS_MAX),
            is_asked: asked.is_some(),
        })
    })
}

impl NegotiatedDeflate {
    /// Appends the header field that tells the client.
    pub(super) fn append(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"sec-websocket-extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover");
        if self.is_asked {
            let _ = write!(out, "; server_max_window_bits={}", self.bits);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// What the client offers, and [`check_answer`] understands.
pub(super) const OFFER: &str = "permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits";

/// The bits of the window that the server's answer lets the client compress with; 0 if there is no extension.
pub(super) fn check_answer(headers: &Headers<'_>, is_offered: bool) -> Option<u8> {
    let mut extensions = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-extensions"))
        .flat_map(|(_, value)| extensions(value));
    let Some((name, parameters)) = extensions.next() else {
        return Some(0);
    };
    if !is_offered || name != NAME || extensions.next().is_some() {
        return None;
    }
    let parameters = Parameters::read(parameters, false)?;
    // A server that takes its context over has not accepted the offer.
    parameters.server_forgets.then(|| parameters.client_bits.unwrap_or(WINDOW_BITS_MAX))
}

const NAME: &str = "permessage-deflate";
const WINDOW_BITS_MAX: u8 = 15;

/// The parameters of one offer or answer.
#[derive(Default)]
struct Parameters {
    server_forgets: bool,
    client_forgets: bool,
    server_bits: Option<u8>,
    client_bits: Option<u8>,
    client_bits_seen: bool,
}

impl Parameters {
    /// Nothing if any of them is illegal. Only an offer may leave the client's bits open.
    fn read<'a>(parameters: impl Iterator<Item = &'a str>, is_offer: bool) -> Option<Self> {
        let mut read = Self::default();
        for parameter in parameters {
            let (name, value) = match parameter.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim_start())?)),
                None => (parameter, None),
            };
            let is_repeated = match name {
                "server_no_context_takeover" if value.is_none() => {
                    std::mem::replace(&mut read.server_forgets, true)
                }
                "client_no_context_takeover" if value.is_none() => {
                    std::mem::replace(&mut read.client_forgets, true)
                }
                "server_max_window_bits" => read.server_bits.replace(bits(value?)?).is_some(),
                "client_max_window_bits" => {
                    match value {
                        Some(value) => read.client_bits = Some(bits(value)?),
                        None if is_offer => {}
                        None => return None,
                    }
                    std::mem::replace(&mut read.client_bits_seen, true)
                }
                _ => return None,
            };
            if is_repeated {
                return None;
            }
        }
        Some(read)
    }
}

/// The extensions of one header field, each with its parameters.
fn extensions(value: &str) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
    members(value).map(|extension| {
        let mut parts = extension.split(';').map(str::trim_ascii);
        (parts.next().unwrap_or_default(), parts)
    })
}

/// RFC 6455 section 9.1: a value may be quoted; what is inside is a token all the same.
fn unquoted(value: &str) -> Option<&str> {
    match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"'),
        None => Some(value),
    }
}

/// 8 to 15, without a leading zero.
fn bits(value: &str) -> Option<u8> {
    match value {
        "8" => Some(8),
        "9" => Some(9),
        "10" | "11" | "12" | "13" | "14" | "15" => value.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to an offer, without what is always in it.
    #[track_caller]
    fn check_offer(offer: &str, expected: Option<(u8, &str)>) {
        let agreed = accept(offer);
        let told = agreed.map(|agreed| {
            let mut out = Vec::new();
            agreed.append(&mut out);
            let line = String::from_utf8(out).unwrap();
            let rest = line.split_once("client_no_context_takeover").unwrap().1;
            (agreed.bits, rest.trim_end().to_owned())
        });
        assert_eq!(told.as_ref().map(|(bits, rest)| (*bits, &rest[..])), expected, "{offer}");
    }

    #[test]
    fn the_first_acceptable_offer_is_accepted() {
        check_offer("permessage-deflate", Some((15, "")));
        check_offer("permessage-deflate; client_max_window_bits", Some((15, "")));
        check_offer(
            "x-webkit-deflate-frame, permessage-deflate;client_max_window_bits=10",
            Some((15, "")),
        );
        check_offer(
            "permessage-deflate; server_max_window_bits=10; server_no_context_takeover",
            Some((10, "; server_max_window_bits=10")),
        );
        check_offer(
            "permessage-deflate; server_max_window_bits = \"15\"",
            Some((15, "; server_max_window_bits=15")),
        );
        check_offer(
            "permessage-deflate; server_max_window_bits=8",
            Some((8, "; server_max_window_bits=8")),
        );
        check_offer(
            "permessage-deflate; foo, permessage-deflate; server_max_window_bits=9",
            Some((9, "; server_max_window_bits=9")),
        );
    }

    #[test]
    fn illegal_offers_are_declined() {
        for parameters in [
            "server_max_window_bits",
            "server_max_window_bits=7",
            "server_max_window_bits=16",
            "server_max_window_bits=09",
            "server_max_window_bits=\"9",
            "client_max_window_bits=0",
            "client_max_window_bits; client_max_window_bits",
            "server_no_context_takeover=1",
            "client_no_context_takeover; client_no_context_takeover",
            "unknown",
            "",
        ] {
            check_offer(&format!("permessage-deflate; {parameters}"), None);
        }
        check_offer("permessage-deflated", None);
        check_offer("", None);
    }

    #[test]
    fn an_answer_must_fit_the_offer() {
        let check = |answer: &str, expected| {
            let lines = format!("Sec-WebSocket-Extensions: {answer}\r\n\r\n");
            assert_eq!(check_answer(&Headers::new(&lines), true), expected, "{answer}");
        };
        assert_eq!(check_answer(&Headers::default(), false), Some(0));
        assert_eq!(
            check_answer(&Headers::new("Sec-WebSocket-Extensions: permessage-deflate\r\n"), false),
            None
        );
        check("permessage-deflate; server_no_context_takeover", Some(15));
        check("permessage-deflate; server_no_context_takeover; client_max_window_bits=9", Some(9));
        check("permessage-deflate; server_no_context_takeover; server_max_window_bits=8", Some(15));
        check("permessage-deflate; server_no_context_takeover; client_max_window_bits", None);
        check("permessage-deflate", None);
        check("permessage-deflate; server_no_context_takeover; x", None);
        check("x", None);
        check(
            "permessage-deflate; server_no_context_takeover, permessage-deflate; server_no_context_takeover",
            None,
        );
    }
}
