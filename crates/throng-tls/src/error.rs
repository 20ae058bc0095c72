//! What goes wrong in a TLS connection: whose fault it is, the alert that the peer gets, and the
//! section of the standard.

use crate::TlsConfigError;
use crate::alert::Alert;
use crate::handshake::HandshakeFailure;

/// Failure of a TLS connection. All of them end it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The first bytes are no record of TLS.
    #[error("the peer does not speak TLS: its first bytes are {}", show(.0))]
    NotTls([u8; 5]),
    /// The handshake failed.
    #[error(transparent)]
    Handshake(Box<HandshakeFailure>),
    /// The peer sent more in a handshake than it may.
    #[error("the peer sent more than {0} bytes in a handshake")]
    HandshakeTooLong(usize),
    /// The key that rustls extracted is not the one of the traffic secret.
    #[error("the keys of the handshake differ from those of its traffic secrets")]
    KeysDiffer,
    /// A record does not decrypt.
    #[error("a record does not decrypt: it was changed, repeated or sealed with another key")]
    BadRecordMac,
    /// A record is longer than the standard allows.
    #[error("a record is longer than the standard allows")]
    RecordTooLong,
    /// The plaintext of a record is longer than 16,384 bytes.
    #[error("the plaintext of a record is longer than 16384 bytes")]
    PlaintextTooLong,
    /// A record has another version than 3.3 in its header.
    #[error("a record has a wrong version in its header")]
    RecordVersion,
    /// The content type of a record does not exist.
    #[error("a record has an unknown content type")]
    UnknownContentType,
    /// A record has only padding.
    #[error("a record has padding and no content type")]
    NoContentType,
    /// A record without protection arrived after the handshake.
    #[error("a record without protection arrived after the handshake")]
    UnprotectedRecord,
    /// A record arrived that may not arrive now.
    #[error("{0} arrived where it may not")]
    Unexpected(&'static str),
    /// A handshake message or an alert has no bytes.
    #[error("a record of a handshake message or an alert is empty")]
    EmptyRecord,
    /// A message has the wrong length or form.
    #[error("{0} has a wrong form")]
    Malformed(&'static str),
    /// A KeyUpdate has a value other than 0 and 1.
    #[error("a KeyUpdate has an illegal value")]
    BadKeyUpdate,
    /// A handshake message after the handshake is too long.
    #[error("a handshake message is longer than {0} bytes")]
    MessageTooLong(usize),
    /// Too many records without data in a row.
    #[error("more than {0} records in a row had no data")]
    IdleRecords(u8),
    /// The peer asked to negotiate anew.
    #[error("the peer asked for a renegotiation")]
    Renegotiation,
    /// The peer sent a fatal alert.
    #[error("the peer sent the alert {0}")]
    AlertReceived(Alert),
    /// A key sealed or opened as many records as it may.
    #[error("the key has sealed as many records as it may, and this version cannot replace it")]
    KeysExhausted,
    /// The certificate of the client, or its key, cannot be read.
    #[error(transparent)]
    ClientKey(Box<TlsConfigError>),
    /// The handshake is not complete, or the connection is closed: it sends no data.
    #[error("the connection is not open")]
    NotOpen,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The peer broke the standard, or does not agree.
    Peer,
    /// This program, its configuration or its limits.
    Local,
}

impl TlsError {
    /// Returns the name of the failure: `bad_record_mac`.
    pub fn name(&self) -> &'static str {
        self.row().0
    }

    /// Returns whose fault the failure is.
    pub fn fault(&self) -> TlsFault {
        self.row().1
    }

    /// Returns the alert that tells the peer, if this crate sends one. That of a handshake is sent
    /// by rustls.
    pub fn alert(&self) -> Option<Alert> {
        self.row().2
    }

    /// Returns the section of the standard that was broken; empty if none was.
    pub fn section(&self) -> &'static str {
        self.row().3
    }

    /// The table of all failures.
    fn row(&self) -> Row {
        use TlsFault::{Local, Peer};
        match self {
            Self::NotTls(_) => Row("not_tls", Peer, None, "RFC 8446 5.1"),
            Self::Handshake(failure) => {
                Row(failure.cause.name(), failure.fault(), None, "RFC 8446 4")
            }
            Self::HandshakeTooLong(_) => Row("handshake_too_long", Peer, None, "RFC 8446 4"),
            Self::KeysDiffer => Row("keys_differ", Local, Some(Alert::INTERNAL_ERROR), ""),
            Self::BadRecordMac => {
                Row("bad_record_mac", Peer, Some(Alert::BAD_RECORD_MAC), "RFC 8446 5.2")
            }
            Self::RecordTooLong => {
                Row("record_too_long", Peer, Some(Alert::RECORD_OVERFLOW), "RFC 8446 5.2")
            }
            Self::PlaintextTooLong => {
                Row("plaintext_too_long", Peer, Some(Alert::RECORD_OVERFLOW), "RFC 8446 5.4")
            }
            Self::RecordVersion => {
                Row("record_version", Peer, Some(Alert::PROTOCOL_VERSION), "RFC 8446 5.2")
            }
            Self::UnknownContentType => {
                Row("content_type", Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5")
            }
            Self::NoContentType => {
                Row("no_content_type", Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.4")
            }
            Self::UnprotectedRecord => {
                Row("unprotected_record", Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5")
            }
            Self::Unexpected(_) => {
                Row("unexpected_message", Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 4")
            }
            Self::EmptyRecord => {
                Row("empty_record", Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.1")
            }
            Self::Malformed(_) => {
                Row("malformed_message", Peer, Some(Alert::DECODE_ERROR), "RFC 8446 6.2")
            }
            Self::BadKeyUpdate => {
                Row("bad_key_update", Peer, Some(Alert::ILLEGAL_PARAMETER), "RFC 8446 4.6.3")
            }
            Self::MessageTooLong(_) => {
                Row("message_too_long", Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.1")
            }
            Self::IdleRecords(_) => {
                Row("idle_records", Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.1")
            }
            Self::Renegotiation => {
                Row("renegotiation", Peer, Some(Alert::NO_RENEGOTIATION), "RFC 5246 7.2.2")
            }
            Self::AlertReceived(_) => Row("alert_received", Peer, None, "RFC 8446 6.2"),
            Self::KeysExhausted => {
                Row("keys_exhausted", Local, Some(Alert::CLOSE_NOTIFY), "RFC 8446 5.5")
            }
            Self::ClientKey(_) => Row("client_key", Local, None, ""),
            Self::NotOpen => Row("not_open", Local, None, ""),
        }
    }
}

/// Name, fault, alert and section of a failure.
struct Row(&'static str, TlsFault, Option<Alert>, &'static str);

/// Returns bytes as text, with what is no printable character escaped.
fn show(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}
