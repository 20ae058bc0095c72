//! The opening handshake of a client, until the server responds.

use crate::Input;
use crate::http::{Response, has_list_member, list_members, parse_response};
use crate::websocket::{DeflateAgreement, DeflateOffer, Violation, extension};

/// The parts of the request against which the response is checked.
#[derive(Debug)]
pub(super) struct OpeningHandshake {
    accept: [u8; 28],
    offers: Box<[DeflateOffer]>,
    /// The offered subprotocols, as in the header field.
    subprotocols: String,
    /// The bytes of an incomplete response.
    bytes: Vec<u8>,
}

/// The response of the server.
pub(super) enum HandshakeResponse<'a> {
    Opened {
        subprotocol: Option<&'a str>,
        /// What was agreed about compression; `None` without it.
        deflate: Option<DeflateAgreement>,
    },
    Refused(Response<'a>),
}

impl OpeningHandshake {
    pub(super) fn new(accept: [u8; 28], offers: &[DeflateOffer], subprotocols: String) -> Self {
        Self { accept, offers: offers.into(), subprotocols, bytes: Vec::new() }
    }

    /// Returns the head of the response if it is complete. A head that arrives whole borrows
    /// `input`; any other borrows `reassembled`. Interim responses (RFC 9110 section 15.2) are
    /// skipped.
    pub(super) fn read_response<'a, 'i: 'a>(
        &mut self,
        input: &mut Input<'i>,
        reassembled: &'a mut Vec<u8>,
        head_bytes_max: usize,
    ) -> Result<Option<&'a [u8]>, Violation> {
        loop {
            let received = self.bytes.len();
            let bytes = if received == 0 {
                input.peek()
            } else {
                self.bytes.extend_from_slice(input.peek());
                &self.bytes
            };
            let (status, length) = match parse_response(bytes) {
                Ok(Some((response, length))) if length <= head_bytes_max => {
                    (response.status, length)
                }
                Ok(None) if bytes.len() <= head_bytes_max => {
                    let rest = input.take_all();
                    if received == 0 {
                        self.bytes.extend_from_slice(rest);
                    }
                    return Ok(None);
                }
                Ok(_) => return Err(Violation::ResponseHeadTooLong),
                Err(_) => return Err(Violation::ResponseInvalid),
            };
            let rest = input.take(length - received);
            if status < 200 && status != 101 {
                self.bytes.clear();
            } else if received == 0 {
                return Ok(Some(rest));
            } else {
                self.bytes.truncate(length);
                *reassembled = std::mem::take(&mut self.bytes);
                return Ok(Some(reassembled));
            }
        }
    }

    /// Checks that the response accepts this handshake (RFC 6455 section 4.1).
    pub(super) fn check_response<'a>(
        &self,
        head: &'a [u8],
    ) -> Result<HandshakeResponse<'a>, Violation> {
        let Ok(Some((response, _))) = parse_response(head) else {
            return Err(Violation::ResponseInvalid);
        };
        if response.status != 101 {
            return Ok(HandshakeResponse::Refused(response));
        }
        let headers = &response.headers;
        let has =
            |name, member| headers.get(name).is_some_and(|value| has_list_member(value, member));
        if !has("upgrade", "websocket") || !has("connection", "upgrade") {
            return Err(Violation::ResponseUpgrade);
        }
        if headers.get("sec-websocket-accept").map(str::as_bytes) != Some(&self.accept) {
            return Err(Violation::ResponseKey);
        }
        let subprotocol = headers.get("sec-websocket-protocol");
        if subprotocol
            .is_some_and(|one| !list_members(&self.subprotocols).any(|received| received == one))
        {
            return Err(Violation::ResponseSubprotocol);
        }
        let deflate = extension::check_response(headers, &self.offers)?;
        Ok(HandshakeResponse::Opened { subprotocol, deflate })
    }
}
