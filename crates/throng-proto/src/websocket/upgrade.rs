//! The opening handshake (RFC 6455 section 4).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::http::{Request, has_list_member, list_members};
use crate::websocket::extension::{self, NegotiatedDeflate};

/// A valid upgrade request.
#[derive(Clone, Copy, Debug)]
pub struct UpgradeRequest {
    pub(super) accept: [u8; 28],
    /// The accepted compression; `None` if the client offers none that is acceptable.
    pub(super) deflate: Option<NegotiatedDeflate>,
}

/// The reason why the server cannot upgrade a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status of the response: 400, 405 or 426.
    pub status: u16,
    /// The reason with its RFC section. The server sends it as the body of the response.
    pub reason: &'static str,
}

/// Returns the subprotocols that a request offers, in order of preference.
pub fn offered_subprotocols<'a>(request: &Request<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    request
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"))
        .flat_map(|(_, value)| list_members(value))
}

/// Checks that `request` is a client's opening handshake (RFC 6455 section 4.2.1).
pub(super) fn check(request: &Request<'_>, is_http_11: bool) -> Result<UpgradeRequest, Refusal> {
    let refuse = |status, reason| Err(Refusal { status, reason });
    let (mut upgrades, mut connects) = (false, false);
    let (mut key, mut keys, mut version, mut deflate) = (None, 0, None, None);
    for (name, value) in request.headers.iter() {
        match name.len() {
            7 if name.eq_ignore_ascii_case("upgrade") => {
                upgrades |= has_list_member(value, "websocket")
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                connects |= has_list_member(value, "upgrade");
            }
            17 if name.eq_ignore_ascii_case("sec-websocket-key") => {
                key = Some(value);
                keys += 1;
            }
            21 if name.eq_ignore_ascii_case("sec-websocket-version") => version = Some(value),
            24 if name.eq_ignore_ascii_case("sec-websocket-extensions") => {
                deflate = deflate.or_else(|| extension::accept_offer(value));
            }
            _ => {}
        }
    }
    if request.method != "GET" {
        return refuse(405, "the method of a WebSocket upgrade is GET (RFC 6455 section 4.1)");
    }
    if !upgrades || !connects {
        return refuse(426, "this path requires a WebSocket upgrade (RFC 6455 section 4.2.1)");
    }
    if !request.body.is_empty() {
        // RFC 9110 section 9.3.1: "... might lead some implementations to reject the request and
        // close the connection because of its potential as a request smuggling attack".
        return refuse(400, "a WebSocket upgrade has no content (RFC 9110 section 9.3.1)");
    }
    if !is_http_11 {
        return refuse(400, "a WebSocket upgrade requires HTTP/1.1 (RFC 6455 section 4.1)");
    }
    if version != Some("13") {
        return refuse(426, "sec-websocket-version is not 13 (RFC 6455 section 4.4)");
    }
    let Some(key) = key.filter(|key| keys == 1 && is_key(key)) else {
        return refuse(400, "sec-websocket-key is not 16 bytes (RFC 6455 section 4.1)");
    };
    Ok(UpgradeRequest { accept: accept_value(key), deflate })
}

/// Returns the value of `sec-websocket-accept` for a key (RFC 6455 section 4.2.2).
pub(super) fn accept_value(key: &str) -> [u8; 28] {
    let mut hash = Sha1::new();
    hash.update(key);
    hash.update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let mut accept = [0; 28];
    // 20 bytes are 28 digits of base64: the buffer always has room.
    let _ = STANDARD.encode_slice(hash.finalize(), &mut accept);
    accept
}

/// Encodes a client's key for the request.
pub(super) fn encode_key(key: [u8; 16]) -> [u8; 24] {
    let mut encoded = [0; 24];
    let _ = STANDARD.encode_slice(key, &mut encoded);
    encoded
}

fn is_key(key: &str) -> bool {
    let mut bytes = [0; 18];
    key.len() == 24 && STANDARD.decode_slice(key, &mut bytes) == Ok(16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Headers;

    const GOOD: &str = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
     Sec-WebSocket-Version: 13\r\n";

    fn check_lines(method: &str, lines: &str, is_http_11: bool) -> Result<UpgradeRequest, u16> {
        let request = Request { method, target: "/", headers: Headers::new(lines), body: b"" };
        check(&request, is_http_11).map_err(|refusal| refusal.status)
    }

    #[test]
    fn the_example_of_the_rfc_is_accepted() {
        let upgrade = check_lines("GET", GOOD, true).unwrap();
        assert_eq!(&upgrade.accept, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(upgrade.deflate, None);
        assert_eq!(&encode_key(*b"the sample nonce"), b"dGhlIHNhbXBsZSBub25jZQ==");
    }

    #[test]
    fn each_missing_or_wrong_field_is_refused() {
        let with = |from: &str, to: &str| {
            let lines = GOOD.replace(from, to);
            assert_ne!(lines, GOOD);
            check_lines("GET", &lines, true).map(drop)
        };
        assert_eq!(check_lines("POST", GOOD, true).err(), Some(405));
        assert_eq!(check_lines("GET", GOOD, false).err(), Some(400));
        assert_eq!(check_lines("GET", "", true).err(), Some(426));
        assert_eq!(with("websocket", "h2c"), Err(426));
        assert_eq!(with("keep-alive, Upgrade", "keep-alive"), Err(426));
        assert_eq!(with("13", "8"), Err(426));
        assert_eq!(with("dGhl", "dGh"), Err(400));
        assert_eq!(with("dGhl", "!!!!"), Err(400));
        assert_eq!(with("Sec-WebSocket-Key", "X"), Err(400));
        assert_eq!(
            with("Upgrade: w", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nUpgrade: w"),
            Err(400)
        );
        assert_eq!(with("websocket", "WebSocket"), Ok(()));
    }

    #[test]
    fn an_upgrade_with_a_body_is_refused() {
        let headers = Headers::new(GOOD);
        let request = Request { method: "GET", target: "/", headers, body: b"body" };
        assert_eq!(check(&request, true).err().map(|refusal| refusal.status), Some(400));
    }

    #[test]
    fn the_first_acceptable_offer_of_several_fields_is_accepted() {
        let offers = ["x", "permessage-deflate; y", "permessage-deflate; server_max_window_bits=9"];
        let fields = offers.map(|offer| format!("Sec-WebSocket-Extensions: {offer}\r\n"));
        let deflate = |lines: &str| check_lines("GET", lines, true).unwrap().deflate;
        assert_eq!(deflate(&(GOOD.to_owned() + &fields[..2].concat())), None);
        assert_eq!(
            deflate(&(GOOD.to_owned() + &fields.concat())).map(|negotiated| negotiated.window_bits),
            Some(9)
        );
        let twice = [&fields.concat(), GOOD, "Sec-WebSocket-Extensions: permessage-deflate\r\n"];
        assert_eq!(deflate(&twice.concat()).map(|negotiated| negotiated.window_bits), Some(9));
    }

    #[test]
    fn subprotocols_keep_their_order_over_several_fields() {
        let headers = Headers::new("sec-websocket-protocol: a, b\r\nSec-WebSocket-Protocol: c\r\n");
        let request = Request { method: "GET", target: "/", headers, body: b"" };
        assert_eq!(offered_subprotocols(&request).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
