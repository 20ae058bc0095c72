//! Users speak plainly to a port that speaks TLS.

use throng_measure::{ErrorKind, Finding, Side, SpokenProtocol};

use super::{Rule, RuleTrait};
use crate::counted::counted;
use crate::first_error::FirstError;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("plain_at_tls_port", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["handshakes_refused", "http_statuses", "wrong_answers", "server_closes_early"]);

/// The first answer is an alert of TLS, or a page that says what the port speaks.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let refused = |kind: &str| run.connect_failures(kind).or_else(|| run.errors(kind));
    let answers = kinds().into_iter().filter_map(|kind| {
        let first = FirstError::of(run, &kind).filter(is_of_tls)?;
        Some((first, refused(&kind)?))
    });
    let (first, growth): (_, Growth) = answers.max_by_key(|(_, growth)| growth.by())?;
    let target = &run.header.target;
    let says = match first.field(PORT_FIELD) {
        Some(_) => "says so in its answer",
        None => "answers with an alert of TLS",
    };
    let text = format!(
        "Users speak plainly to {target}, a port that speaks TLS and {says}: {} failed.",
        counted(growth.by(), "attempt", "attempts")
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([growth]);
    Some(finding.remedied_by(format!("--target {}", secure(target))))
}

/// Kinds of errors whose first answer may be that of a port that speaks TLS.
fn kinds() -> [String; 5] {
    [
        ErrorKind::UpgradeStatus.with(400),
        ErrorKind::HttpStatus.with(400),
        ErrorKind::UpgradeViolation.to_string(),
        ErrorKind::HttpViolation.to_string(),
        ErrorKind::ExpectMismatch.to_string(),
    ]
}

fn is_of_tls(first: &FirstError<'_>) -> bool {
    let is_alert = first.got.starts_with(ALERT)
        || first.answer_fault.is_some_and(|fault| fault.protocol == Some(SpokenProtocol::Tls));
    is_alert || first.field(PORT_FIELD) == Some("tls")
}

/// Returns the target over TLS.
fn secure(target: &str) -> String {
    let schemes = [("ws://", "wss://"), ("http://", "https://"), ("tcp://", "tls://")];
    let secure = schemes
        .into_iter()
        .find_map(|(plain, secure)| Some(format!("{secure}{}", target.strip_prefix(plain)?)));
    secure.unwrap_or_else(|| target.to_owned())
}

/// The field of an answer that says what its port speaks.
const PORT_FIELD: &str = "port";

/// The first bytes of an alert (RFC 8446 section 5.1), in hexadecimal.
const ALERT: &str = "15 03 0";

#[cfg(test)]
mod tests {
    use throng_measure::{AnswerFault, ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn answering(kind: String, got: &'static str, fault: Option<SpokenProtocol>) -> Run {
        let counted = kind.clone();
        let mut run = Run::quiet()
            .loaded(move |load, second| {
                load.counters.connects_ok = 0;
                load.counters.connected = 0;
                load.connect_failed.add(&counted, 20 * second);
            })
            .changed(move |interval, second| {
                if second != 1 {
                    return;
                }
                let fault = AnswerFault { protocol: fault, ..AnswerFault::default() };
                let event = RunEventKind::FirstError(ErrorExchange {
                    kind: kind.clone(),
                    got: got.to_owned(),
                    answer_fault: fault.protocol.is_some().then(|| Box::new(fault)),
                    ..ErrorExchange::default()
                });
                interval.events.push(RunEvent::new(1_000, event));
            });
        run.header.target = "ws://127.0.0.1:8443/ws".into();
        run
    }

    #[test]
    fn an_alert_and_a_page_about_tls_show_it() {
        let alert = answering(
            ErrorKind::UpgradeViolation.to_string(),
            "15 03 01 00 02 02 46",
            Some(SpokenProtocol::Tls),
        );
        let page = answering(
            ErrorKind::UpgradeStatus.with(400),
            "`HTTP/1.1 400\\r\\nserver: nginx\\r\\nport: tls`",
            None,
        );
        for (run, says) in [(alert, "answers with an alert of TLS"), (page, "says so")] {
            let found = run.speaks(&RULE);
            assert!(found.text.contains(says), "{found}");
            assert_eq!(found.remedy, "--target wss://127.0.0.1:8443/ws");
            let (history, summary) = run.whole();
            let diagnosis = crate::diagnose(&history, &summary, &[]);
            assert_eq!(diagnosis.findings[0].id, RULE.id);
        }
    }

    #[test]
    fn any_other_400_is_none() {
        let got = "`HTTP/1.1 400\\r\\nserver: nginx`";
        answering(ErrorKind::UpgradeStatus.with(400), got, None).is_silent(&RULE);
    }
}
