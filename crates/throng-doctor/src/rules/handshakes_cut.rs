//! The server, or a proxy before it, ends handshakes of TLS that take longer than some time.

use throng_measure::{ErrorKind, Finding, Operation, Side};
use throng_report::render::micros;

use super::close_times::CloseTimes;
use super::{Rule, RuleTrait};
use crate::counted::all_or_part_of;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("handshakes_cut", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early", "server_slow"]);

/// Handshakes that end at any time have other reasons. Those that end at the same age met a limit.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let kinds = [ErrorKind::TlsClosed.name(), "ECONNRESET"];
    let growths: Vec<_> = kinds.iter().filter_map(|kind| run.connect_failures(kind)).collect();
    let cut = Growth::total(&growths);
    let ended = cut + run.summary.operation(Operation::Tls).map_or(0, |tls| tls.ok);
    if cut == 0 || cut * CUT_PART < ended {
        return None;
    }
    let age = CloseTimes::of(run, &kinds)?.millis();
    let text = format!(
        "{}, or a proxy before it, cuts TLS handshakes that take longer than {}: {} ended so.",
        run.header.target,
        micros(age * 1_000),
        all_or_part_of(cut, ended, "handshake", "handshakes")
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_evidence(growths.iter().map(Growth::evidence));
    Some(finding.remedied_by(
        "find why handshakes take so long (the server's CPUs, its queue of handshakes), and raise \
         the limit: ssl_handshake_timeout of nginx's stream, timeout client (HAProxy), \
         handshakeTimeout (Node), transport_socket_connect_timeout (Envoy)",
    ))
}

/// One handshake of so many must be cut.
const CUT_PART: u64 = 100;

#[cfg(test)]
mod tests {
    use throng_measure::EarlyClose;

    use super::super::fixture::Run;
    use super::*;

    fn cutting(age_ms: fn(u64) -> u64) -> Run {
        let run = Run::failing_tls(ErrorKind::TlsClosed, |_| {});
        run.seen_over_tls(|seen| seen.failure = None).loaded(move |load, second| {
            let open_ms = age_ms(second);
            load.early_closes.push(EarlyClose {
                error: ErrorKind::TlsClosed.into(),
                open_ms,
                idle_ms: open_ms,
                idle_ms_before: 0,
            });
        })
    }

    #[test]
    fn handshakes_that_end_at_one_age_met_a_limit() {
        let run = cutting(|second| 1_000 + second);
        let found = run.speaks(&RULE);
        assert!(found.text.contains("cuts TLS handshakes that take longer than 1.0"), "{found}");
        run.check_all(&[RULE.id]);
    }

    #[test]
    fn handshakes_that_end_at_once_or_at_any_time_have_other_reasons() {
        cutting(|_| 3).is_silent(&RULE);
        cutting(|second| 600 * second).is_silent(&RULE);
    }
}
