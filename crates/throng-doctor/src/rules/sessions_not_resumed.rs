//! The server does not resume the sessions of TLS that users offer, or gives them none.

use throng_measure::{Finding, Severity, Side, TargetTls};

use super::{FindingClass, Rule};
use crate::counted::{counted, part_of};
use crate::history::Sample;
use crate::run_view::RunView;
use crate::target_tls::{address, target_tls};

pub(super) const RULE: Rule = Rule::new("sessions_not_resumed", find).of_class(FindingClass::Note);

/// Users offer what the server gave them, so one that gives nothing gets no offers. A server that
/// asks for certificates may not resume: it would skip their check.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let TargetTls { offer, agreed, asks_for_certificate, .. } = target_tls(run);
    let of_version = agreed.filter(|_| offer.may_resume && !asks_for_certificate)?.version;
    let target = &run.header.target;
    let ended = run.load_growth("tls_ok", |load| load.tls_ok)?;
    let counters = &run.counted()?.counters;
    // A handshake that failed resumed nothing, and says nothing of its session.
    let unended = counters.tls_failed + counters.tls_waiting;
    let offered = counters.tls_offered.saturating_sub(unended);
    let resumed = counters.tls_resumed;
    let text = match counters.tls_offered {
        0 if handshakes_later(run) < HANDSHAKES_MIN => return None,
        0 => format!(
            "{target} gives its clients no session to resume: all {} of TLS {of_version} were full \
             ones.",
            counted(ended.by(), "handshake", "handshakes")
        ),
        _ if offered < OFFERS_MIN || resumed * TAKEN_PARTS.1 >= offered * TAKEN_PARTS.0 => {
            return None;
        }
        _ if resumed == 0 => format!(
            "{target} resumed none of the {} that users offered: all handshakes were full ones.",
            counted(offered, "session", "sessions")
        ),
        _ => format!(
            "{target} resumed only {} that users offered: servers behind it do not share their \
             ticket keys.",
            part_of(resumed, offered, "session", "sessions")
        ),
    };
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Noted)
        .with_confidence(0.9)
        .with_evidence([ended]);
    Some(finding.remedied_by(format!(
        "give all workers and nodes the same keys for tickets: ssl_session_ticket_key FILE and \
         ssl_session_tickets on (nginx), ticketKeys (Node), tls-ticket-keys (HAProxy); check \
         with: openssl s_client -connect {} -sess_out s </dev/null, \
         then -sess_in s (Reused)",
        address(target)
    )))
}

/// Returns the handshakes after the interval of the first one: earlier ones may have begun before
/// any session was there to offer.
fn handshakes_later(run: &RunView<'_>) -> u64 {
    let ended = |sample: &Sample| sample.load().map_or(0, |load| load.counters.tls_ok);
    let first = run.samples().iter().map(ended).find(|ended| *ended > 0);
    let last = run.samples().last().map_or(0, ended);
    last.saturating_sub(first.unwrap_or(last))
}

/// The fewest later handshakes without an offer.
const HANDSHAKES_MIN: u64 = 50;

/// The fewest offers whose fate means something.
const OFFERS_MIN: u64 = 20;

/// The share of the offers that a server must take. Two servers with keys of their own take half.
const TAKEN_PARTS: (u64, u64) = (3, 4);

#[cfg(test)]
mod tests {
    use throng_measure::{LoadInterval, TlsAgreement};

    use super::super::fixture::Run;
    use super::*;

    fn of(ok: u64, offered: u64, resumed: u64) -> Run {
        let agreed = TlsAgreement { version: "1.3".into(), ..TlsAgreement::default() };
        Run::over_tls(|_| {}).seen_over_tls(move |seen| seen.agreed = Some(agreed.clone())).loaded(
            move |load, second| {
                let counters = &mut load.counters;
                counters.tls_ok = ok * second;
                (counters.tls_offered, counters.tls_resumed) = (offered * second, resumed * second);
            },
        )
    }

    #[test]
    fn offers_that_are_not_taken_are_noted() {
        for (run, says) in [
            (of(20, 19, 0), "resumed none of the 190 sessions that users offered"),
            (of(20, 19, 9), "resumed only 90 of 190 sessions that users offered"),
            (of(20, 0, 0), "gives its clients no session to resume: all 200 handshakes of TLS 1.3"),
        ] {
            let found = run.speaks(&RULE);
            assert!(found.text.contains(says), "{found}");
            run.check_all(&[RULE.id]);
        }
    }

    #[test]
    fn a_server_that_resumes_and_users_who_may_not_are_none() {
        of(20, 19, 19).is_silent(&RULE);
        of(20, 19, 15).is_silent(&RULE);
        let failing = |load: &mut LoadInterval, second| load.counters.tls_failed = 10 * second;
        of(10, 19, 9).loaded(failing).is_silent(&RULE);
        of(4, 0, 0).is_silent(&RULE);
        // All begin at once.
        of(1, 0, 0).loaded(|load, _| load.counters.tls_ok = 1_000).is_silent(&RULE);
        of(20, 0, 0).seen_over_tls(|seen| seen.offer.may_resume = false).is_silent(&RULE);
        of(20, 0, 0).seen_over_tls(|seen| seen.asks_for_certificate = true).is_silent(&RULE);
    }
}
