//! The handshakes of TLS that fail, and the one cause that most of them have.

use throng_measure::{ErrorKind, Finding, Operation, Side, TargetTls};

use super::Rule;
use crate::counted::all_or_part_of;
use crate::run_view::{Growth, RunView};
use crate::target_tls::target_tls;

/// Why handshakes of TLS fail. Each has a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsCause {
    /// The certificate is not valid now.
    Expired,
    /// The certificate is for other names.
    WrongName,
    /// No trusted authority issued the certificate, or one between is missing.
    UnknownIssuer,
    /// No version, cipher or protocol is allowed at both ends.
    NothingInCommon,
    /// The server asks for a certificate, and users have none, or a wrong one.
    ClientCertificate,
    /// The target does not speak TLS.
    NotTls,
    /// Any other.
    Other,
}

/// Handshakes that fail.
pub(super) struct TlsFailures {
    pub(super) cause: TlsCause,
    pub(super) kind: ErrorKind,
    pub(super) growth: Growth,
    /// Handshakes that ended.
    ended: u64,
    pub(super) target: TargetTls,
}

impl TlsFailures {
    /// Returns the failures of the most frequent kind, if they are not rare.
    pub(super) fn of(run: &RunView<'_>) -> Option<Self> {
        let target = target_tls(run);
        let grown = |kind: &ErrorKind| match kind {
            // After the handshake of TLS 1.3, a server may still refuse the client's certificate.
            ErrorKind::TransportFailed => run.errors(kind),
            _ => run.connect_failures(kind),
        };
        let causes =
            KINDS.iter().filter_map(|kind| Some((cause_of(*kind, &target)?, *kind, grown(kind)?)));
        let (cause, kind, growth) = causes.max_by_key(|(.., growth)| growth.by())?;
        let ok = run.summary.operation(Operation::Tls).map_or(0, |tls| tls.ok);
        let ended = match kind {
            ErrorKind::TransportFailed => ok.max(growth.by()),
            _ => ok + growth.by(),
        };
        (growth.by() * FAILED_PART >= ended).then_some(Self { cause, kind, growth, ended, target })
    }

    /// Returns the failures if they have this cause.
    pub(super) fn caused_by(run: &RunView<'_>, cause: TlsCause) -> Option<Self> {
        Self::of(run).filter(|failures| failures.cause == cause)
    }

    /// Says how many handshakes fail: `all 20 handshakes`.
    pub(super) fn share(&self) -> String {
        all_or_part_of(self.growth.by(), self.ended, "handshake", "handshakes")
    }

    /// Returns the alert that the target sent, by its name; empty if it sent none.
    pub(super) fn alert(&self) -> &str {
        alert(&self.target)
    }

    /// Returns the finding of the server with these words.
    pub(super) fn finding(self, rule: &Rule, text: String, remedy: String) -> Finding {
        Finding::new(rule.id, Side::Server, text).with_evidence([self.growth]).remedied_by(remedy)
    }
}

fn alert(target: &TargetTls) -> &str {
    target.failure.as_ref().and_then(|failure| failure.alert.as_deref()).unwrap_or_default()
}

/// Returns the cause that a kind of error shows; `None` if it is not about TLS.
fn cause_of(kind: ErrorKind, target: &TargetTls) -> Option<TlsCause> {
    let alert = alert(target);
    let refuses_client = target.asks_for_certificate && CLIENT_ALERTS.contains(&alert);
    Some(match kind {
        ErrorKind::TlsExpired => TlsCause::Expired,
        ErrorKind::TlsWrongName => TlsCause::WrongName,
        ErrorKind::TlsUnknownIssuer => TlsCause::UnknownIssuer,
        ErrorKind::TlsNoAgreement => TlsCause::NothingInCommon,
        ErrorKind::TlsNotSpoken => TlsCause::NotTls,
        ErrorKind::TlsAlert | ErrorKind::TransportFailed if refuses_client => {
            TlsCause::ClientCertificate
        }
        ErrorKind::TransportFailed => return None,
        ErrorKind::TlsAlert if alert == "unrecognized_name" => TlsCause::WrongName,
        ErrorKind::TlsAlert if APART_ALERTS.contains(&alert) => TlsCause::NothingInCommon,
        // A server that sends back what it receives sends a ClientHello.
        ErrorKind::TlsViolation if target.certificate.is_none() => TlsCause::NotTls,
        _ => TlsCause::Other,
    })
}

/// Faults that a handshake shows. A time-out and an early end have causes besides TLS.
const KINDS: &[ErrorKind] = &[
    ErrorKind::TlsExpired,
    ErrorKind::TlsWrongName,
    ErrorKind::TlsUnknownIssuer,
    ErrorKind::TlsCertificate,
    ErrorKind::TlsNoAgreement,
    ErrorKind::TlsAlert,
    ErrorKind::TlsNotSpoken,
    ErrorKind::TlsViolation,
    ErrorKind::TransportFailed,
];

/// Alerts of a server that refuses a client without its certificate, or with another one (RFC 8446
/// section 6.2). OpenSSL sends `handshake_failure` in TLS 1.2.
const CLIENT_ALERTS: [&str; 9] = [
    "certificate_required",
    "handshake_failure",
    "bad_certificate",
    "unsupported_certificate",
    "certificate_revoked",
    "certificate_expired",
    "certificate_unknown",
    "unknown_ca",
    "access_denied",
];

/// Alerts of a server that allows nothing of what users offer.
const APART_ALERTS: [&str; 4] =
    ["protocol_version", "handshake_failure", "insufficient_security", "no_application_protocol"];

/// One of so many handshakes must fail.
const FAILED_PART: u64 = 100;
