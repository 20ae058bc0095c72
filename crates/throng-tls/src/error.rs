//! What goes wrong in a TLS connection: whose fault it is, the alert that the peer gets, and the
//! section of the standard.

use throng_proto::TransportError;

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
    #[error("{}", TransportError::KeysDiffer)]
    KeysDiffer,
    /// A record does not decrypt.
    #[error("{}", TransportError::BadRecordMac)]
    BadRecordMac,
    /// A record is longer than the standard allows.
    #[error("{}", TransportError::RecordTooLong)]
    RecordTooLong,
    /// The plaintext of a record is longer than 16,384 bytes.
    #[error("the plaintext of a record is longer than 16384 bytes")]
    PlaintextTooLong,
    /// A record has another version than 3.3 in its header.
    #[error("{}", TransportError::RecordVersion)]
    RecordVersion,
    /// The content type of a record does not exist.
    #[error("{}", TransportError::ContentType)]
    UnknownContentType,
    /// A record has only padding.
    #[error("{}", TransportError::NoContentType)]
    NoContentType,
    /// A record without protection arrived after the handshake.
    #[error("{}", TransportError::UnprotectedRecord)]
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
    #[error("{}", TransportError::Renegotiation)]
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
    #[error("{}", TransportError::NotOpen)]
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
    /// Returns the cause of the failure.
    pub fn cause(&self) -> TransportError {
        self.row().0
    }

    /// Returns the name of the failure: `bad_record_mac`.
    pub fn name(&self) -> &'static str {
        self.cause().name()
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
        use TransportError as Cause;
        match self {
            Self::NotTls(_) => Row(Cause::NotTls, Peer, None, "RFC 8446 5.1"),
            Self::Handshake(failure) => Row(failure.cause, failure.fault(), None, "RFC 8446 4"),
            Self::HandshakeTooLong(_) => Row(Cause::HandshakeTooLong, Peer, None, "RFC 8446 4"),
            Self::KeysDiffer => Row(Cause::KeysDiffer, Local, Some(Alert::INTERNAL_ERROR), ""),
            Self::BadRecordMac => {
                Row(Cause::BadRecordMac, Peer, Some(Alert::BAD_RECORD_MAC), "RFC 8446 5.2")
            }
            Self::RecordTooLong => {
                Row(Cause::RecordTooLong, Peer, Some(Alert::RECORD_OVERFLOW), "RFC 8446 5.2")
            }
            Self::PlaintextTooLong => {
                Row(Cause::PlaintextTooLong, Peer, Some(Alert::RECORD_OVERFLOW), "RFC 8446 5.4")
            }
            Self::RecordVersion => {
                Row(Cause::RecordVersion, Peer, Some(Alert::PROTOCOL_VERSION), "RFC 8446 5.2")
            }
            Self::UnknownContentType => {
                Row(Cause::ContentType, Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5")
            }
            Self::NoContentType => {
                Row(Cause::NoContentType, Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.4")
            }
            Self::UnprotectedRecord => {
                Row(Cause::UnprotectedRecord, Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5")
            }
            Self::Unexpected(_) => {
                Row(Cause::UnexpectedMessage, Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 4")
            }
            Self::EmptyRecord => {
                Row(Cause::EmptyRecord, Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.1")
            }
            Self::Malformed(_) => {
                Row(Cause::MalformedMessage, Peer, Some(Alert::DECODE_ERROR), "RFC 8446 6.2")
            }
            Self::BadKeyUpdate => {
                Row(Cause::BadKeyUpdate, Peer, Some(Alert::ILLEGAL_PARAMETER), "RFC 8446 4.6.3")
            }
            Self::MessageTooLong(_) => {
                Row(Cause::MessageTooLong, Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.1")
            }
            Self::IdleRecords(_) => {
                Row(Cause::IdleRecords, Peer, Some(Alert::UNEXPECTED_MESSAGE), "RFC 8446 5.1")
            }
            Self::Renegotiation => {
                Row(Cause::Renegotiation, Peer, Some(Alert::NO_RENEGOTIATION), "RFC 5246 7.2.2")
            }
            Self::AlertReceived(_) => Row(Cause::AlertReceived, Peer, None, "RFC 8446 6.2"),
            Self::KeysExhausted => {
                Row(Cause::KeysExhausted, Local, Some(Alert::CLOSE_NOTIFY), "RFC 8446 5.5")
            }
            Self::ClientKey(_) => Row(Cause::ClientKey, Local, None, ""),
            Self::NotOpen => Row(Cause::NotOpen, Local, None, ""),
        }
    }
}

/// Cause, fault, alert and section of a failure.
struct Row(TransportError, TlsFault, Option<Alert>, &'static str);

/// Returns bytes as text, with what is no printable character escaped.
fn show(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}
