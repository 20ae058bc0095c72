//! Negotiation of permessage-deflate (RFC 7692 sections 5 and 7.1).
//!
//! The server never uses context takeover, in either direction: it would cost 300 KB a connection.
//! So it always responds with both `no_context_takeover` parameters. The client offers what its
//! caller chooses, by default what browsers offer, and keeps contexts as the server agrees.

use std::fmt;
use std::io::Write as _;

use super::Violation;
use super::context::DeflateContext;
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

/// One offer of permessage-deflate by a client, with its parameters (RFC 7692 section 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeflateOffer {
    /// Asks the server to compress each message by itself. A server that does not is refused.
    pub server_no_context_takeover: bool,
    /// Tells the server that the client compresses each message by itself.
    pub client_no_context_takeover: bool,
    /// Asks the server for a window of at most this many bits, 8 to 15.
    pub server_max_window_bits: Option<u8>,
    /// What the server may ask of the client's window.
    pub client_max_window_bits: ClientWindowOffer,
}

/// What a client offers about its own window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientWindowOffer {
    /// Nothing: the server may not limit it.
    #[default]
    Nothing,
    /// The server may limit it: the parameter without a value.
    AnyLimit,
    /// It has at most this many bits, 8 to 15, and the server may ask for fewer.
    Bits(u8),
}

/// What client and server agreed on about compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflateAgreement {
    /// The server refers to its earlier messages: both ends keep its context.
    pub server_takes_over: bool,
    /// The client refers to its earlier messages: both ends keep its context.
    pub client_takes_over: bool,
    /// The bits of the server's window.
    pub server_window_bits: u8,
    /// The bits of the client's window.
    pub client_window_bits: u8,
}

impl DeflateOffer {
    /// The offer of browsers, and of npm's `ws`.
    pub const BROWSER: Self = Self {
        server_no_context_takeover: false,
        client_no_context_takeover: false,
        server_max_window_bits: None,
        client_max_window_bits: ClientWindowOffer::AnyLimit,
    };

    /// Returns what follows if a server answers these parameters, unless they do not fit the offer.
    fn accepted(&self, answer: &Parameters) -> Option<DeflateAgreement> {
        let is_server_window = match (self.server_max_window_bits, answer.server_bits) {
            (Some(most), bits) => bits.is_some_and(|bits| bits <= most),
            (None, _) => true,
        };
        let own_bits = self.client_window_bits();
        let is_client_window = answer.client_bits.is_none_or(|bits| {
            self.client_max_window_bits != ClientWindowOffer::Nothing && bits <= own_bits
        });
        let keeps_server_context = !answer.server_no_context_takeover;
        if !is_server_window
            || !is_client_window
            || (self.server_no_context_takeover && keeps_server_context)
        {
            return None;
        }
        Some(DeflateAgreement {
            server_takes_over: keeps_server_context,
            client_takes_over: !self.client_no_context_takeover
                && !answer.client_no_context_takeover,
            server_window_bits: answer.server_bits.unwrap_or(WINDOW_BITS_MAX),
            client_window_bits: answer.client_bits.unwrap_or(own_bits),
        })
    }
}

impl DeflateOffer {
    /// Returns the most bytes that a client keeps for its contexts, if a server accepts the offer.
    pub fn context_bytes_max(&self) -> u64 {
        let of = |takes_over: bool, bits: u8| if takes_over { 1 << bits } else { 0 };
        let server_bits = self.server_max_window_bits.unwrap_or(WINDOW_BITS_MAX);
        let client_bits = self.client_window_bits().min(DeflateContext::SENT_BITS_MAX);
        of(!self.server_no_context_takeover, server_bits)
            + of(!self.client_no_context_takeover, client_bits)
    }

    /// Returns the bits of the client's window, unless the server asks for fewer.
    const fn client_window_bits(&self) -> u8 {
        match self.client_max_window_bits {
            ClientWindowOffer::Bits(bits) => bits,
            ClientWindowOffer::AnyLimit | ClientWindowOffer::Nothing => WINDOW_BITS_MAX,
        }
    }
}

impl fmt::Display for DeflateAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |takes_over: bool, bits: u8| match takes_over {
            true => format!("context takeover, window of {bits} bits"),
            false => format!("no context takeover, window of {bits} bits"),
        };
        let server = side(self.server_takes_over, self.server_window_bits);
        let client = side(self.client_takes_over, self.client_window_bits);
        write!(f, "permessage-deflate; server: {server}; client: {client}")
    }
}

impl fmt::Display for DeflateOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)?;
        if self.server_no_context_takeover {
            f.write_str("; server_no_context_takeover")?;
        }
        if self.client_no_context_takeover {
            f.write_str("; client_no_context_takeover")?;
        }
        if let Some(bits) = self.server_max_window_bits {
            write!(f, "; server_max_window_bits={bits}")?;
        }
        match self.client_max_window_bits {
            ClientWindowOffer::Nothing => Ok(()),
            ClientWindowOffer::AnyLimit => f.write_str("; client_max_window_bits"),
            ClientWindowOffer::Bits(bits) => write!(f, "; client_max_window_bits={bits}"),
        }
    }
}

/// Returns what the response agrees to; `None` without the extension. Of several offers, it is the
/// answer to the first that it fits.
///
/// # Errors
/// The response fits no offer.
pub(super) fn check_response(
    headers: &Headers<'_>,
    offers: &[DeflateOffer],
) -> Result<Option<DeflateAgreement>, Violation> {
    let mut extensions = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-extensions"))
        .flat_map(|(_, value)| extensions(value));
    let Some((name, parameters)) = extensions.next() else {
        return Ok(None);
    };
    if offers.is_empty() || name != NAME || extensions.next().is_some() {
        return Err(Violation::ResponseExtension);
    }
    let answer = Parameters::parse(parameters, false).ok_or(Violation::ResponseDeflate)?;
    let agreement = offers.iter().find_map(|offer| offer.accepted(&answer));
    agreement.map(Some).ok_or(Violation::ResponseDeflate)
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

    fn answer(response: &str, offers: &[DeflateOffer]) -> Result<String, Violation> {
        let lines = format!("Sec-WebSocket-Extensions: {response}\r\n\r\n");
        check_response(&Headers::new(&lines), offers).map(|agreement| {
            let agreement = agreement.unwrap();
            let side =
                |takes_over, bits| format!("{} {bits}", if takes_over { "on" } else { "no" });
            let server = side(agreement.server_takes_over, agreement.server_window_bits);
            let client = side(agreement.client_takes_over, agreement.client_window_bits);
            format!("{server}, {client}")
        })
    }

    #[test]
    fn an_answer_is_an_extension_that_was_offered() {
        assert_eq!(check_response(&Headers::default(), &[]), Ok(None));
        assert_eq!(check_response(&Headers::default(), &[DeflateOffer::BROWSER]), Ok(None));
        for (response, offers) in [
            ("permessage-deflate", &[][..]),
            ("x", &[DeflateOffer::BROWSER]),
            ("Permessage-Deflate", &[DeflateOffer::BROWSER]),
            ("permessage-deflate, permessage-deflate", &[DeflateOffer::BROWSER]),
            ("permessage-deflate, x", &[DeflateOffer::BROWSER]),
        ] {
            assert_eq!(answer(response, offers), Err(Violation::ResponseExtension), "{response}");
        }
    }

    #[test]
    fn both_contexts_are_those_that_were_agreed() {
        let browser = DeflateOffer::BROWSER;
        let neither = DeflateOffer {
            server_no_context_takeover: true,
            client_no_context_takeover: true,
            ..browser
        };
        let small = DeflateOffer {
            server_max_window_bits: Some(10),
            client_max_window_bits: ClientWindowOffer::Bits(12),
            ..browser
        };
        let plain = DeflateOffer::default();
        for (offer, parameters, expected) in [
            (browser, "", Some("on 15, on 15")),
            (browser, "; server_no_context_takeover", Some("no 15, on 15")),
            (browser, "; client_no_context_takeover", Some("on 15, no 15")),
            (browser, "; client_max_window_bits=9", Some("on 15, on 9")),
            (browser, "; server_max_window_bits=8", Some("on 8, on 15")),
            (browser, "; client_max_window_bits", None),
            (browser, "; x", None),
            (browser, "; server_no_context_takeover=1", None),
            (neither, "; server_no_context_takeover", Some("no 15, no 15")),
            (neither, "; client_no_context_takeover", None),
            (neither, "", None),
            (small, "; server_max_window_bits=10", Some("on 10, on 12")),
            (small, "; server_max_window_bits=9; client_max_window_bits=12", Some("on 9, on 12")),
            (small, "; server_max_window_bits=10; client_max_window_bits=13", None),
            (small, "; server_max_window_bits=11", None),
            (small, "", None),
            (plain, "", Some("on 15, on 15")),
            (plain, "; client_max_window_bits=15", None),
        ] {
            let response = format!("permessage-deflate{parameters}");
            let expected = expected.ok_or(Violation::ResponseDeflate).map(str::to_owned);
            assert_eq!(answer(&response, &[offer]), expected, "{offer} -> {response}");
        }
        let fallback = [neither, small, browser];
        assert_eq!(answer("permessage-deflate", &fallback), Ok("on 15, on 15".to_owned()));
    }

    #[test]
    fn an_offer_is_written_with_its_parameters() {
        let all = DeflateOffer {
            server_no_context_takeover: true,
            client_no_context_takeover: true,
            server_max_window_bits: Some(8),
            client_max_window_bits: ClientWindowOffer::Bits(9),
        };
        for (offer, expected) in [
            (DeflateOffer::BROWSER, "permessage-deflate; client_max_window_bits"),
            (DeflateOffer::default(), "permessage-deflate"),
            (
                all,
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
                 server_max_window_bits=8; client_max_window_bits=9",
            ),
        ] {
            assert_eq!(offer.to_string(), expected);
            assert!(accept_offer(expected).is_some());
        }
    }
}
