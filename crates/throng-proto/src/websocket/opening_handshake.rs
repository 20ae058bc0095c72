//! The opening handshake of a client, until the server responds.

use crate::Input;
use crate::held::HeldBuffer;
use crate::http::{Response, has_list_member, list_members, parse_response};
use crate::websocket::scratch::ScratchBuffers;
use crate::websocket::{DeflateAgreement, DeflateOffer, Violation, extension};

/// The parts of the request against which the response is checked.
#[derive(Debug)]
pub(super) struct OpeningHandshake {
    accept: [u8; 28],
    offers: Box<[DeflateOffer]>,
    /// The offered subprotocols, as in the header field.
    subprotocols: String,
    /// The bytes of an incomplete response; `None` before the first.
    bytes: Option<HeldBuffer>,
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
        Self { accept, offers: offers.into(), subprotocols, bytes: None }
    }

    /// Returns the head of the response if it is complete. A head that arrives whole borrows
    /// `input`; any other borrows `buffers`. Interim responses (RFC 9110 section 15.2) are
    /// skipped.
    pub(super) fn read_response<'a, 'i: 'a>(
        &mut self,
        input: &mut Input<'i>,
        buffers: &'a mut ScratchBuffers,
        head_bytes_max: usize,
    ) -> Result<Option<&'a [u8]>, Violation> {
        loop {
            let received = self.received().len();
            let bytes = match &mut self.bytes {
                None => input.peek(),
                Some(kept) => {
                    let more = input.peek().len().min(head_bytes_max + 1 - received);
                    keep(kept, &input.peek()[..more])?;
                    kept
                }
            };
            let (status, length) = match parse_response(bytes) {
                Ok(Some((response, length))) if length <= head_bytes_max => {
                    (response.status, length)
                }
                Ok(None) if bytes.len() <= head_bytes_max => {
                    let rest = input.take_all();
                    if self.bytes.is_none() && !rest.is_empty() {
                        let kept = self.bytes.insert(HeldBuffer::new(&buffers.held));
                        keep(kept, rest)?;
                    }
                    return Ok(None);
                }
                Ok(_) => return Err(Violation::ResponseHeadTooLong),
                Err(_) => return Err(Violation::ResponseInvalid),
            };
            let rest = input.take(length - received);
            let kept = self.bytes.take();
            if status < 200 && status != 101 {
                continue;
            }
            let Some(mut kept) = kept else { return Ok(Some(rest)) };
            kept.truncate(length);
            buffers.reassembled = kept.take();
            return Ok(Some(&buffers.reassembled));
        }
    }

    /// Returns what was received of an incomplete response before the present input.
    pub(super) fn received(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
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

/// Keeps a part of a head.
fn keep(kept: &mut HeldBuffer, part: &[u8]) -> Result<(), Violation> {
    // Most heads are short: the buffer grows with what arrives.
    kept.append(part, usize::MAX).map_err(|_| Violation::HeldTooMuch)
}
