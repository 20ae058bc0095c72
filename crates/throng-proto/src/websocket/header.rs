//! The header of a frame (RFC 6455 section 5.2).

use crate::websocket::{Violation, WebSocketLimits};

/// The role of this endpoint. It decides which side masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

/// The header of a received frame, checked as far as one frame can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) is_final: bool,
    /// The reserved bit that marks the first frame of a compressed message.
    pub(super) is_deflated: bool,
    pub(super) opcode: u8,
    pub(super) mask: [u8; 4],
    /// The length of the header.
    pub(super) header_bytes: usize,
    /// The length of the payload.
    pub(super) payload_bytes: usize,
}

impl Header {
    pub(super) const CONTINUATION: u8 = 0;
    pub(super) const TEXT: u8 = 1;
    pub(super) const CLOSE: u8 = 8;
    pub(super) const PING: u8 = 9;
    /// The longest header: two bytes, eight of length, four of mask.
    pub(super) const HEADER_BYTES_MAX: usize = 14;

    /// Parses the header at the start of `bytes`; returns `None` while it is incomplete. An error
    /// is reported at the first byte that shows it.
    #[inline]
    pub(super) fn parse(
        bytes: &[u8],
        role: Role,
        deflate: bool,
        limits: &WebSocketLimits,
    ) -> Result<Option<Self>, Violation> {
        let &[first, second, ..] = bytes else {
            return bytes
                .first()
                .map_or(Ok(()), |&first| check_first_byte(first, deflate))
                .map(|()| None);
        };
        check_first_byte(first, deflate)?;
        let opcode = first & 0x0f;
        let is_masked = second & 0x80 != 0;
        match role {
            Role::Server if !is_masked => return Err(Violation::Unmasked),
            Role::Client if is_masked => return Err(Violation::Masked),
            _ => {}
        }
        let short = usize::from(second & 0x7f);
        if opcode >= Self::CLOSE {
            if first & 0x80 == 0 {
                return Err(Violation::ControlFragmented);
            }
            if short > 125 {
                return Err(Violation::ControlTooLong);
            }
        }
        let (length, mut size) = match short {
            126 => match bytes.get(2..4).and_then(|long| long.try_into().ok()) {
                Some(long) => (u64::from(u16::from_be_bytes(long)), 4),
                None => return Ok(None),
            },
            127 => match bytes.get(2..10).and_then(|long| long.try_into().ok()) {
                Some(long) => (u64::from_be_bytes(long), 10),
                None => return Ok(None),
            },
            short => (short as u64, 2),
        };
        let least = [0, 126, 1 << 16][usize::from(size > 2) + usize::from(size > 4)];
        if length < least || length >> 63 != 0 {
            return Err(Violation::Length);
        }
        if length > limits.frame_bytes_max as u64 {
            return Err(Violation::FrameTooLarge);
        }
        let mut mask = [0; 4];
        if is_masked {
            match bytes.get(size..size + 4).and_then(|key| key.try_into().ok()) {
                Some(key) => mask = key,
                None => return Ok(None),
            }
            size += 4;
        }
        Ok(Some(Self {
            is_final: first & 0x80 != 0,
            is_deflated: first & 0x40 != 0,
            opcode,
            mask,
            header_bytes: size,
            payload_bytes: length as usize,
        }))
    }

    pub(super) const fn is_control(&self) -> bool {
        self.opcode >= Self::CLOSE
    }

    /// Returns the bytes that the reader needs before it can process the frame: all of a control
    /// frame, the header of any other.
    pub(super) const fn bytes_needed(&self) -> usize {
        if self.is_control() { self.header_bytes + self.payload_bytes } else { self.header_bytes }
    }
}

/// Checks the reserved bits and the opcode.
#[inline]
const fn check_first_byte(first: u8, deflate: bool) -> Result<(), Violation> {
    // RFC 7692 section 6: only the first frame of a message, text or binary, may have the bit.
    let opcode = first & 0x0f;
    let compressed = first & 0x40 != 0;
    if first & 0x30 != 0 || (compressed && !(deflate && (opcode == 1 || opcode == 2))) {
        return Err(Violation::ReservedBit);
    }
    match opcode {
        0..=2 | 8..=10 => Ok(()),
        _ => Err(Violation::ReservedOpcode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WebSocketLimits = WebSocketLimits {
        head_bytes_max: 0,
        body_bytes_max: 0,
        frame_bytes_max: 1 << 20,
        message_bytes_max: 0,
        inflate_ratio_max: 0,
        handshake_timeout_ms: 0,
        message_timeout_ms: 60_000,
        close_timeout_ms: 0,
    };

    /// Checks the result for `bytes`, and that no shorter prefix has a different one.
    #[track_caller]
    fn check(
        bytes: &[u8],
        role: Role,
        deflate: bool,
        expected: Result<(u8, usize, usize), Violation>,
    ) {
        let parse = |bytes: &[u8]| Header::parse(bytes, role, deflate, &LIMITS);
        let found = parse(bytes)
            .map(|header| header.map(|one| (one.opcode, one.header_bytes, one.payload_bytes)));
        assert_eq!(found, expected.map(Some));
        for cut in 0..bytes.len() {
            let shorter = parse(&bytes[..cut]);
            assert!(shorter == Ok(None) || shorter.err() == expected.err(), "cut at {cut}");
        }
    }

    #[test]
    fn each_form_of_length_is_read() {
        check(&[0x81, 0x80, 1, 2, 3, 4], Role::Server, false, Ok((1, 6, 0)));
        check(&[0x82, 0xfd, 1, 2, 3, 4], Role::Server, false, Ok((2, 6, 125)));
        check(&[0x82, 126, 0, 126], Role::Client, false, Ok((2, 4, 126)));
        check(&[0x02, 0xfe, 0xff, 0xff, 1, 2, 3, 4], Role::Server, false, Ok((2, 8, 65_535)));
        check(&[0x80, 127, 0, 0, 0, 0, 0, 1, 0, 0], Role::Client, false, Ok((0, 10, 65_536)));
        check(&[0xc1, 0], Role::Client, true, Ok((1, 2, 0)));
        check(&[0x89, 125], Role::Client, false, Ok((9, 2, 125)));
    }

    #[test]
    fn each_wrong_header_has_its_own_violation() {
        use Role::{Client, Server};
        check(&[0x91, 0], Client, true, Err(Violation::ReservedBit));
        check(&[0xa1, 0], Client, true, Err(Violation::ReservedBit));
        check(&[0xc1, 0], Client, false, Err(Violation::ReservedBit));
        check(&[0xc0, 0], Client, true, Err(Violation::ReservedBit));
        check(&[0xc9, 0], Client, true, Err(Violation::ReservedBit));
        for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
            check(&[0x80 | opcode, 0], Client, true, Err(Violation::ReservedOpcode));
        }
        check(&[0x81, 0], Server, false, Err(Violation::Unmasked));
        check(&[0x81, 0x80], Client, false, Err(Violation::Masked));
        check(&[0x09, 0], Client, false, Err(Violation::ControlFragmented));
        check(&[0x88, 126], Client, false, Err(Violation::ControlTooLong));
        check(&[0x82, 126, 0, 125], Client, false, Err(Violation::Length));
        check(&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Client, false, Err(Violation::Length));
        check(&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], Client, false, Err(Violation::Length));
        check(
            &[0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1],
            Client,
            false,
            Err(Violation::FrameTooLarge),
        );
    }
}
