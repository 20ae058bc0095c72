//! Negotiation of permessage-deflate (RFC 7692 sections 5 and 7.1).
//!
//! This project never uses context takeover, in either direction: it would cost 300 KB a
//! connection. So the server always responds with both `no_context_takeover` parameters, and the
//! client requires the server's.

use std::io::Write as _;

use super::Violation;
use crate::http::{Headers, list_members};

/// The parameters that the server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NegotiatedDeflate {
    /// The bits of the window that the server compresses with.
    pub(super) window_bits: u8,
    /// The client requested this window, so the response must contain it.
    is_requested: bool,
}

/// Returns the first acceptable offer of this header field. An offer is not acceptable if a
/// parameter is unknown, occurs twice, or has no legal value (section 7.1).
pub(super) fn accept_offer(offers: &str) -> Option<NegotiatedDeflate> {
    extensions(offers).filter(|(name, _)| *name == NAME).find_map(|(_, parameters)| {
        let parameters = Parameters::parse(parameters, true)?;
        let requested = parameters.server_bits;
        Some(NegotiatedDeflate {
            window_bits: requested.unwrap_or(WINDOW_BITS_MAX),
            is_requested: requested.is_some(),
        })
    })
}

impl NegotiatedDeflate {
    /// Appends the header field of the response.
    pub(super) fn append(self, out: &mut Vec<u8>) {
        out.extend_from_slice(
            b"sec-websocket-extensions: permessage-deflate; \
              server_no_context_takeover; client_no_context_takeover",
        );
        if self.is_requested {
            let _ = write!(out, "; server_max_window_bits={}", self.window_bits);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// The offer of the client. [`check_response`] parses the response to it.
pub(super) const OFFER: &str = "permessage-deflate; server_no_context_takeover; \
                                client_no_context_takeover; client_max_window_bits";

/// Returns the bits of the window that the response permits the client to compress with: 0 without
/// the extension.
///
/// # Errors
/// The response does not fit the offer.
pub(super) fn check_response(headers: &Headers<'_>, is_offered: bool) -> Result<u8, Violation> {
    let mut extensions = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-extensions"))
        .flat_map(|(_, value)| extensions(value));
    let Some((name, parameters)) = extensions.next() else {
        return Ok(0);
    };
    if !is_offered || name != NAME || extensions.next().is_some() {
        return Err(Violation::ResponseExtension);
    }
    // A server that keeps its context has not accepted the offer.
    Parameters::parse(parameters, false)
        .filter(|parameters| parameters.server_no_context_takeover)
        .map(|parameters| parameters.client_bits.unwrap_or(WINDOW_BITS_MAX))
        .ok_or(Violation::ResponseDeflate)
}

const NAME: &str = "permessage-deflate";
const WINDOW_BITS_MAX: u8 = 15;

/// The parameters of one offer or response.
#[derive(Default)]
struct Parameters {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_bits: Option<u8>,
    client_bits: Option<u8>,
    client_bits_seen: bool,
}

impl Parameters {
    /// Parses the parameters; returns `None` if one of them is illegal. Only an offer may omit the
    /// value of the client's window.
    fn parse<'a>(parameters: impl Iterator<Item = &'a str>, is_offer: bool) -> Option<Self> {
        let mut parsed = Self::default();
        for parameter in parameters {
            let (name, value) = match parameter.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim_start())?)),
                None => (parameter, None),
            };
            let is_repeated = match name {
                "server_no_context_takeover" if value.is_none() => {
                    std::mem::replace(&mut parsed.server_no_context_takeover, true)
                }
                "client_no_context_takeover" if value.is_none() => {
                    std::mem::replace(&mut parsed.client_no_context_takeover, true)
                }
                "server_max_window_bits" => {
                    parsed.server_bits.replace(parse_window_bits(value?)?).is_some()
                }
                "client_max_window_bits" => {
                    match value {
                        Some(value) => parsed.client_bits = Some(parse_window_bits(value)?),
                        None if is_offer => {}
                        None => return None,
                    }
                    std::mem::replace(&mut parsed.client_bits_seen, true)
                }
                _ => return None,
            };
            if is_repeated {
                return None;
            }
        }
        Some(parsed)
    }
}

/// Splits one header field into extensions, each with its parameters.
fn extensions(value: &str) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
    list_members(value).map(|extension| {
        let mut parts = extension.split(';').map(str::trim_ascii);
        (parts.next().unwrap_or_default(), parts)
    })
}

/// Removes the quotes around a value. RFC 6455 section 9.1 permits quotes, with a token inside.
fn unquoted(value: &str) -> Option<&str> {
    match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"'),
        None => Some(value),
    }
}

/// Parses 8 to 15, without a leading zero.
fn parse_window_bits(value: &str) -> Option<u8> {
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

    /// Checks the response to an offer: the window and the parameters after the constant part.
    #[track_caller]
    fn check_offer(offer: &str, expected: Option<(u8, &str)>) {
        let negotiated = accept_offer(offer);
        let response = negotiated.map(|negotiated| {
            let mut out = Vec::new();
            negotiated.append(&mut out);
            let line = String::from_utf8(out).unwrap();
            let rest = line.split_once("client_no_context_takeover").unwrap().1;
            (negotiated.window_bits, rest.trim_end().to_owned())
        });
        assert_eq!(response.as_ref().map(|(bits, rest)| (*bits, &rest[..])), expected, "{offer}");
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
    fn a_response_must_fit_the_offer() {
        let parameter = Err(Violation::ResponseDeflate);
        let check = |response: &str, expected| {
            let lines = format!("Sec-WebSocket-Extensions: {response}\r\n\r\n");
            assert_eq!(check_response(&Headers::new(&lines), true), expected, "{response}");
        };
        assert_eq!(check_response(&Headers::default(), false), Ok(0));
        assert_eq!(
            check_response(
                &Headers::new("Sec-WebSocket-Extensions: permessage-deflate\r\n"),
                false
            ),
            Err(Violation::ResponseExtension)
        );
        check("permessage-deflate; server_no_context_takeover", Ok(15));
        check("permessage-deflate; server_no_context_takeover; client_max_window_bits=9", Ok(9));
        check("permessage-deflate; server_no_context_takeover; server_max_window_bits=8", Ok(15));
        check("permessage-deflate; server_no_context_takeover; client_max_window_bits", parameter);
        check("permessage-deflate", parameter);
        check("permessage-deflate; server_no_context_takeover; x", parameter);
        check("x", Err(Violation::ResponseExtension));
        check(
            "permessage-deflate; server_no_context_takeover, \
             permessage-deflate; server_no_context_takeover",
            Err(Violation::ResponseExtension),
        );
    }
}
