//! The five bytes before each record.

use crate::TlsError;
use crate::suite::TlsVersion;

/// What a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ContentType {
    ChangeCipherSpec = 20,
    Alert = 21,
    Handshake = 22,
    Data = 23,
}

impl ContentType {
    pub(crate) const fn of(byte: u8) -> Option<Self> {
        match byte {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::Data),
            _ => None,
        }
    }
}

/// What is known about a record before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No record was received yet, so the peer may speak something else than TLS.
    First,
    /// The handshake is running.
    Handshake,
    /// The record is sealed with keys of this version.
    Open(TlsVersion),
}

/// Checks a header. Returns the length of the whole record.
pub(crate) fn record_bytes(header: [u8; HEADER_BYTES], phase: Phase) -> Result<usize, TlsError> {
    let [first, major, minor, high, low] = header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let typ = ContentType::of(first);
    let bytes_max = PLAINTEXT_BYTES_MAX
        + match phase {
            // "The length MUST NOT exceed 2^14 bytes" of plaintext (RFC 8446 section 5.1)
            Phase::First => 0,
            // "The length MUST NOT exceed 2^14 + 256 bytes" (RFC 8446 section 5.2)
            Phase::Open(TlsVersion::V13) => 256,
            // "The length MUST NOT exceed 2^14 + 2048" (RFC 5246 section 6.2.3)
            _ => 2048,
        };
    match phase {
        Phase::First if typ.is_none() || major != 3 => return Err(TlsError::NotTls(header)),
        Phase::Open(TlsVersion::V13) if typ != Some(ContentType::Data) => {
            // "An implementation [...] which receives a protected change_cipher_spec record MUST
            // abort" (section 5); no record is without protection after the handshake.
            return Err(TlsError::UnprotectedRecord);
        }
        _ if typ.is_none() => return Err(TlsError::UnknownContentType),
        // The two bytes are part of what the tag covers, with the value of the standard: they are
        // compared, not assumed.
        Phase::Open(_) if (major, minor) != (3, 3) => return Err(TlsError::RecordVersion),
        _ if length > bytes_max => return Err(TlsError::RecordTooLong),
        _ => {}
    }
    Ok(HEADER_BYTES + length)
}

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 5;

/// Bytes of the tag of all suites.
pub(crate) const TAG_BYTES: usize = 16;

/// Most bytes of plaintext in a record: "The length MUST NOT exceed 2^14 bytes" (section 5.1).
pub const PLAINTEXT_BYTES_MAX: usize = 1 << 14;

/// Bytes of the longest record, of TLS 1.2: header, plaintext and what a cipher may add.
pub const RECORD_BYTES_MAX: usize = HEADER_BYTES + PLAINTEXT_BYTES_MAX + 2048;
