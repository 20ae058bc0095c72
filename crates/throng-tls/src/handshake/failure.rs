//! Why a handshake failed: the cause for a diagnosis, and the words for a person.

use rustls::{CertificateError, Error, PeerIncompatible};

use crate::alert::Alert;
use crate::error::{TlsError, TlsFault};

/// Handshake that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the handshake failed: {text}")]
pub struct HandshakeFailure {
    /// What prevented it.
    pub cause: HandshakeCause,
    /// What rustls says.
    pub text: String,
}

/// What prevented a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeCause {
    /// The peer's certificate has expired.
    CertificateExpired,
    /// The peer's certificate is not valid yet.
    CertificateNotYetValid,
    /// The peer's certificate is for other names.
    CertificateForOtherName,
    /// The peer's certificate was not issued by an authority that is trusted, or a certificate
    /// between them is missing.
    CertificateUnknownIssuer,
    /// The peer's certificate is wrong in another way.
    CertificateRejected,
    /// The peer showed no certificate.
    CertificateMissing,
    /// The peer has no version of TLS that is allowed here.
    NoCommonVersion,
    /// The peer has no cipher, group or signature that is allowed here.
    NoCommonCipher,
    /// The peer has no application protocol that is allowed here.
    NoCommonProtocol,
    /// The peer ended the handshake with this alert.
    AlertReceived(Alert),
    /// The peer broke the standard.
    PeerMisbehaved,
    /// This program failed.
    Local,
}

impl HandshakeCause {
    /// Returns the name of the cause: `certificate_expired`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CertificateExpired => "certificate_expired",
            Self::CertificateNotYetValid => "certificate_not_yet_valid",
            Self::CertificateForOtherName => "certificate_for_other_name",
            Self::CertificateUnknownIssuer => "certificate_unknown_issuer",
            Self::CertificateRejected => "certificate_rejected",
            Self::CertificateMissing => "certificate_missing",
            Self::NoCommonVersion => "no_common_version",
            Self::NoCommonCipher => "no_common_cipher",
            Self::NoCommonProtocol => "no_common_protocol",
            Self::AlertReceived(_) => "handshake_alert",
            Self::PeerMisbehaved => "handshake_misbehaved",
            Self::Local => "handshake_local",
        }
    }
}

impl HandshakeFailure {
    pub(crate) fn of(error: Error) -> TlsError {
        TlsError::Handshake(Box::new(Self { cause: cause(&error), text: error.to_string() }))
    }

    pub(crate) fn fault(&self) -> TlsFault {
        match self.cause {
            HandshakeCause::Local => TlsFault::Local,
            _ => TlsFault::Peer,
        }
    }
}

fn cause(error: &Error) -> HandshakeCause {
    use CertificateError as Certificate;
    match error {
        Error::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => {
                HandshakeCause::CertificateExpired
            }
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                HandshakeCause::CertificateNotYetValid
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                HandshakeCause::CertificateForOtherName
            }
            // An authority with the right name and another key is not the issuer.
            Certificate::UnknownIssuer | Certificate::BadSignature => {
                HandshakeCause::CertificateUnknownIssuer
            }
            // A certificate of its own that no file names.
            Certificate::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                HandshakeCause::CertificateUnknownIssuer
            }
            _ => HandshakeCause::CertificateRejected,
        },
        Error::NoCertificatesPresented => HandshakeCause::CertificateMissing,
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => HandshakeCause::NoCommonVersion,
        Error::PeerIncompatible(_) => HandshakeCause::NoCommonCipher,
        Error::NoApplicationProtocol => HandshakeCause::NoCommonProtocol,
        Error::AlertReceived(alert) => HandshakeCause::AlertReceived(Alert(u8::from(*alert))),
        Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::InvalidMessage(_)
        | Error::DecryptError
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord => HandshakeCause::PeerMisbehaved,
        _ => HandshakeCause::Local,
    }
}
