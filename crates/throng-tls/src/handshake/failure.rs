//! Why a handshake failed: the cause for a diagnosis, and the words for a person.

use rustls::{CertificateError, Error, PeerIncompatible};
use throng_proto::TransportError;

use crate::alert::Alert;
use crate::error::{TlsError, TlsFault};

/// Handshake that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the handshake failed: {text}")]
pub struct HandshakeFailure {
    /// What prevented it.
    pub cause: TransportError,
    /// Alert by which the peer ended it.
    pub alert: Option<Alert>,
    /// What rustls says.
    pub text: String,
}

impl HandshakeFailure {
    pub(crate) fn of(error: Error) -> TlsError {
        let alert = match error {
            Error::AlertReceived(alert) => Some(Alert(u8::from(alert))),
            _ => None,
        };
        TlsError::Handshake(Box::new(Self { cause: cause(&error), alert, text: error.to_string() }))
    }

    pub(crate) fn fault(&self) -> TlsFault {
        match self.cause {
            TransportError::HandshakeLocal => TlsFault::Local,
            _ => TlsFault::Peer,
        }
    }
}

fn cause(error: &Error) -> TransportError {
    use CertificateError as Certificate;
    use TransportError as Cause;
    match error {
        Error::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => Cause::CertificateExpired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                Cause::CertificateNotYetValid
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                Cause::CertificateForOtherName
            }
            // An authority with the right name and another key is not the issuer.
            Certificate::UnknownIssuer | Certificate::BadSignature => {
                Cause::CertificateUnknownIssuer
            }
            // A certificate of its own that no file names.
            Certificate::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                Cause::CertificateUnknownIssuer
            }
            _ => Cause::CertificateRejected,
        },
        Error::NoCertificatesPresented => Cause::CertificateMissing,
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => Cause::NoCommonVersion,
        Error::PeerIncompatible(_) => Cause::NoCommonCipher,
        Error::NoApplicationProtocol => Cause::NoCommonProtocol,
        Error::AlertReceived(_) => Cause::HandshakeAlert,
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::InvalidMessage(_)
        | Error::DecryptError
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord => Cause::HandshakeMisbehaved,
        _ => Cause::HandshakeLocal,
    }
}
