//! A client's handshake that is not answered yet.

use crate::Input;
use crate::http::{Response, has_member, members, parse_response};
use crate::websocket::{Violation, extension};

/// What the answer is compared with.
#[derive(Debug)]
pub(super) struct Opening {
    accept: [u8; 28],
    is_deflate_offered: bool,
    /// As in the header that offered them.
    subprotocols: String,
    /// An answer that is not whole.
    bytes: Vec<u8>,
}

/// What the server answered.
pub(super) enum Answer<'a> {
    Opened {
        subprotocol: Option<&'a str>,
        /// Of the window that may be compressed with; 0 if compression was not agreed on.
        bits: u8,
    },
    Refused(Response<'a>),
}

impl Opening {
    pub(super) const fn new(
        accept: [u8; 28],
        is_deflate_offered: bool,
        subprotocols: String,
    ) -> Self {
        Self { accept, is_deflate_offered, subprotocols, bytes: Vec::new() }
    }

    /// The head of the answer, if it is whole: lent from `input` if it arrived whole, else from `whole`. Interim answers
    /// (RFC 9110 section 15.2) are passed over.
    pub(super) fn read<'a, 'i: 'a>(
        &mut self,
        input: &mut Input<'i>,
        whole: &'a mut Vec<u8>,
        head_bytes_max: usize,
    ) -> Result<Option<&'a [u8]>, Violation> {
        loop {
            let known = self.bytes.len();
            let seen = if known == 0 {
                input.peek()
            } else {
                self.bytes.extend_from_slice(input.peek());
                &self.bytes
            };
            let (status, length) = match parse_response(seen) {
                Ok(Some((response, length))) if length <= head_bytes_max => {
                    (response.status, length)
                }
                Ok(None) if seen.len() <= head_bytes_max => {
                    let rest = input.take_all();
                    if known == 0 {
                        self.bytes.extend_from_slice(rest);
                    }
                    return Ok(None);
                }
                _ => return Err(Violation::Answer),
            };
            let rest = input.take(length - known);
            if status < 200 && status != 101 {
                self.bytes.clear();
            } else if known == 0 {
                return Ok(Some(rest));
            } else {
                self.bytes.truncate(length);
                *whole = std::mem::take(&mut self.bytes);
                return Ok(Some(whole));
            }
        }
    }

    /// Whether the answer is one to this handshake (RFC 6455 section 4.1).
    pub(super) fn check<'a>(&self, head: &'a [u8]) -> Result<Answer<'a>, Violation> {
        let Ok(Some((response, _))) = parse_response(head) else {
            return Err(Violation::Answer);
        };
        if response.status != 101 {
            return Ok(Answer::Refused(response));
        }
        let headers = &response.headers;
        let has = |name, member| headers.get(name).is_some_and(|value| has_member(value, member));
        if !has("upgrade", "websocket") || !has("connection", "upgrade") {
            return Err(Violation::AnswerUpgrade);
        }
        if headers.get("sec-websocket-accept").map(str::as_bytes) != Some(&self.accept) {
            return Err(Violation::AnswerKey);
        }
        let subprotocol = headers.get("sec-websocket-protocol");
        if subprotocol.is_some_and(|one| !members(&self.subprotocols).any(|known| known == one)) {
            return Err(Violation::AnswerSubprotocol);
        }
        let bits = extension::check_answer(headers, self.is_deflate_offered)
            .ok_or(Violation::AnswerExtension)?;
        Ok(Answer::Opened { subprotocol, bits })
    }
}
