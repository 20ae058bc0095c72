//! The server demands a certificate of its clients, and users have none, or one that it refuses.

use throng_measure::Finding;

use super::tls_failures::{TlsCause, TlsFailures};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;
use crate::target_tls::address;

pub(super) const RULE: Rule = Rule::new("client_certificate", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

/// The server asks for a certificate in the handshake, and ends the connection with an alert: in
/// TLS 1.3 after the client's handshake is complete.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let failures = TlsFailures::caused_by(run, TlsCause::ClientCertificate)?;
    let (target, alert) = (&run.header.target, failures.alert());
    let (what, remedy) = if failures.target.offer.has_certificate {
        let remedy = format!(
            "compare the authorities that it accepts (openssl s_client -connect {} </dev/null: \
             Acceptable client certificate CA names) with the issuer of the users' certificate \
             (openssl x509 -in cert.pem -noout -issuer -dates)",
            address(target)
        );
        ("refuses the certificates of its clients", remedy)
    } else {
        let remedy = "give users one: `client: {cert: cert.pem, key: key.pem}` in `tls`; or let \
                      the server not demand it: ssl_verify_client optional (nginx), \
                      rejectUnauthorized: false (Node), verify optional (HAProxy)";
        ("demands a certificate of its clients, and users have none", remedy.to_owned())
    };
    let share = failures.share();
    let text = format!("{target} {what}: the alert {alert} ended {share}.");
    Some(failures.finding(&RULE, text, remedy))
}

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    fn refusing(kind: ErrorKind, alert: &'static str, has_certificate: bool) -> Run {
        Run::failing_tls(kind, |_| {}).seen_over_tls(move |seen| {
            seen.asks_for_certificate = true;
            seen.offer.has_certificate = has_certificate;
            seen.failure.as_mut().unwrap().alert = Some(alert.to_owned());
        })
    }

    #[test]
    fn a_missing_certificate_and_a_refused_one_are_told_apart() {
        let missing = refusing(ErrorKind::TlsAlert, "handshake_failure", false);
        let found = missing.speaks(&RULE);
        assert!(found.text.contains("and users have none: the alert handshake_failure"), "{found}");
        missing.check_all(&[RULE.id]);
        let refused = refusing(ErrorKind::TlsAlert, "unknown_ca", true).speaks(&RULE);
        assert!(refused.text.contains("refuses the certificates of its clients"), "{refused}");
    }

    #[test]
    fn the_alert_may_arrive_after_the_handshake() {
        let late = refusing(ErrorKind::TlsTimeout, "certificate_required", false)
            .loaded(|load, second| load.errors.add(ErrorKind::TransportFailed, 20 * second));
        assert!(late.speaks(&RULE).text.contains("the alert certificate_required ended"));
        let other = late.seen_over_tls(|seen| seen.asks_for_certificate = false);
        other.is_silent(&RULE);
    }
}
