//! Server and users have no version, cipher or application protocol of TLS in common.

use throng_measure::{Finding, TlsOffer};

use super::tls_failures::{TlsCause, TlsFailures};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;
use crate::target_tls::address;

pub(super) const RULE: Rule = Rule::new("tls_apart", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

/// The generator or the server says what is not in common, by an alert.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let failures = TlsFailures::caused_by(run, TlsCause::NothingInCommon)?;
    let target = &run.header.target;
    let cause = failures.target.failure.as_ref().map_or("", |failure| failure.cause.as_str());
    let row = ROWS.iter().find(|row| row.names.contains(&failures.alert()));
    let row = row.or_else(|| ROWS.iter().find(|row| row.names.contains(&cause)));
    let row = row.unwrap_or(&ANY);
    let offered = (row.offered)(&failures.target.offer);
    let offered = if offered.is_empty() { offered } else { format!(" (users offer {offered})") };
    let text = format!(
        "{target} allows no {} that users offer{offered}: TLS fails, with {}.",
        row.what,
        failures.share()
    );
    let remedy = row.remedy.replace("{address}", address(target));
    Some(failures.finding(&RULE, text, remedy))
}

/// What is not in common.
struct ApartRow {
    /// Names of the alert or of the failure.
    names: &'static [&'static str],
    what: &'static str,
    offered: fn(&TlsOffer) -> String,
    remedy: &'static str,
}

const ROWS: &[ApartRow] = &[
    ApartRow {
        names: &["protocol_version", "no_common_version"],
        what: "version of TLS",
        offered: |offer| offer.versions.clone(),
        remedy: "see which it speaks: openssl s_client -connect {address} -tls1_2 (-tls1_3) \
                 </dev/null; then allow one at both ends: `min` and `max` in `tls`, and at the \
                 server ssl_protocols (nginx), minVersion (Node), ssl-min-ver (HAProxy)",
    },
    ApartRow {
        names: &["no_application_protocol", "no_common_protocol"],
        what: "protocol of ALPN",
        offered: |offer| offer.alpn.join(", "),
        remedy: "see what it chooses: openssl s_client -connect {address} -alpn h2,http/1.1 \
                 </dev/null; then set `alpn` in `tls`, or let the server allow it: ALPNProtocols \
                 (Node), alpn on the bind line (HAProxy)",
    },
];

const ANY: ApartRow = ApartRow {
    names: &[],
    what: "cipher, group or signature",
    offered: |offer| match offer.versions.as_str() {
        "" => String::new(),
        versions => format!("the AEAD ciphers of TLS {versions}, X25519, P-256, P-384"),
    },
    remedy: "see what it allows: openssl s_client -connect {address} </dev/null; then allow \
             ECDHE with AES-GCM or ChaCha20 at the server: ssl_ciphers and ssl_ecdh_curve (nginx), \
             ciphers and ecdhCurve (Node), ssl-default-bind-ciphers (HAProxy)",
};

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn what_is_not_in_common_is_named() {
        let check = |kind, cause: &'static str, alert: Option<&'static str>, says: &str| {
            let run = Run::failing_tls(kind, |_| {}).seen_over_tls(move |seen| {
                let failure = seen.failure.as_mut().unwrap();
                failure.cause = cause.to_owned();
                failure.alert = alert.map(str::to_owned);
            });
            let found = run.speaks(&RULE);
            assert!(found.text.contains(says), "{found}");
            run.check_all(&[RULE.id]);
        };
        let (own, alert) = (ErrorKind::TlsNoAgreement, ErrorKind::TlsAlert);
        let version = "allows no version of TLS that users offer (users offer 1.2 to 1.3): TLS";
        check(own, "no_common_version", None, version);
        check(alert, "handshake_alert", Some("protocol_version"), version);
        let protocol = "allows no protocol of ALPN that users offer (users offer http/1.1)";
        check(alert, "handshake_alert", Some("no_application_protocol"), protocol);
        let cipher = "allows no cipher, group or signature that users offer (users offer the AEAD";
        check(alert, "handshake_alert", Some("handshake_failure"), cipher);
        check(own, "no_common_cipher", None, cipher);
    }
}
