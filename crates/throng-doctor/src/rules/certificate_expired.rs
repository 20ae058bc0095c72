//! The server's certificate has expired, or is about to.

use throng_measure::{CertificateFacts, Evidence, Finding, Severity, Side};

use super::tls_failures::{TlsCause, TlsFailures};
use super::{FindingClass, Rule, RuleTrait};
use crate::run_view::RunView;
use crate::target_tls::{day, length, shows_certificate, target_tls};

/// A certificate that will expire is a note: nothing has failed yet.
pub(super) const RULE: Rule = Rule::new("certificate_expired", find)
    .of_class(FindingClass::Note)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    let target = &run.header.target;
    let Some(failures) = TlsFailures::caused_by(run, TlsCause::Expired) else {
        return expires(run);
    };
    let what = match &failures.target.certificate {
        Some(it) if it.seen_at_s < it.valid_from_s => {
            format!("is valid only from {} on", day(it.valid_from_s))
        }
        Some(it) => format!(
            "expired {} ago, on {}",
            length(it.left_s().unsigned_abs()),
            day(it.valid_until_s)
        ),
        None => "is not valid now".to_owned(),
    };
    let text = format!("The certificate of {target} {what}: TLS fails, with {}.", failures.share());
    Some(failures.finding(&RULE, text, renew(target)))
}

/// Returns the finding about a certificate of whose time little is left.
fn expires(run: &RunView<'_>) -> Option<Finding> {
    let certificate = target_tls(run).certificate?;
    let left = u64::try_from(certificate.left_s()).ok()?;
    let CertificateFacts { valid_from_s, valid_until_s, .. } = certificate;
    let life = valid_until_s.saturating_sub(valid_from_s);
    if left > LEFT_MAX_S || left * LIFE_PART > life {
        return None;
    }
    let target = &run.header.target;
    let text = format!(
        "The certificate of {target} expires in {}, on {}.",
        length(left),
        day(valid_until_s)
    );
    let evidence = Evidence {
        counter: "target_tls.certificate.valid_until_s".to_owned(),
        from: certificate.seen_at_s as f64,
        to: valid_until_s as f64,
        at_ms: 0,
    };
    let finding = Finding::new(RULE.id, Side::Server, text).with_severity(Severity::Noted);
    Some(finding.with_evidence([evidence]).remedied_by(renew(target)))
}

fn renew(target: &str) -> String {
    format!(
        "renew it and let the server load it (certbot renew; nginx -s reload); see its dates: {}; \
         if they are right, correct the clock (date -u)",
        shows_certificate(target, "-dates")
    )
}

/// Certificates are renewed when a third of their life is left: less than two weeks, and less than
/// a fifth of the life, mean that this has failed.
const LEFT_MAX_S: u64 = 14 * 86_400;
const LIFE_PART: u64 = 5;

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn an_expired_certificate_is_dated() {
        let run = Run::failing_tls(ErrorKind::TlsExpired, |certificate| {
            (certificate.valid_until_s, certificate.seen_at_s) = (20_000 * DAY, 20_040 * DAY);
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("expired 40 days ago, on 2024-10-04: TLS fails"), "{found}");
        assert!(found.remedy.contains("s_client -connect chat.example:443 "), "{found}");
        run.check_all(&[RULE.id]);
        let early = Run::failing_tls(ErrorKind::TlsExpired, |certificate| {
            (certificate.valid_from_s, certificate.seen_at_s) = (20_000 * DAY, 19_999 * DAY);
        });
        let found = early.speaks(&RULE);
        assert!(found.text.contains("is valid only from 2024-10-04 on"), "{found}");
    }

    #[test]
    fn little_time_is_noted_and_a_short_life_is_none() {
        let of = |life_days: u64, left_days: u64| {
            Run::over_tls(|certificate| {
                certificate.valid_from_s = 20_000 * DAY;
                certificate.valid_until_s = (20_000 + life_days) * DAY;
                certificate.seen_at_s = (20_000 + life_days - left_days) * DAY;
            })
        };
        let found = of(90, 3).speaks(&RULE);
        assert_eq!(found.severity, Severity::Noted);
        assert!(found.text.contains("expires in 3 days, on 2025-01-02"), "{found}");
        for (life_days, left_days) in [(90, 30), (90, 17), (6, 4), (45, 13)] {
            of(life_days, left_days).is_silent(&RULE);
        }
    }
}
