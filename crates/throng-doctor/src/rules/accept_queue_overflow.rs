//! Connections became ready faster than the server accepted them.

use throng_report::{Endpoint, Limit, Metric, Severity};

use super::accept_backlog::accept_backlog;
use super::kernel_row::KernelRow;
use super::retransmission::{self, Symptom};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;

/// The kernel counts each handshake that it drops because the listener's accept queue is full: its
/// SYN, or its final ACK. The counter covers all listeners of the machine, so an overflow without a
/// symptom may be another program's. It is another program's if this listener's queue had room.
pub(super) const RULE: Rule = Rule::row(
    "accept_queue_overflow",
    &KernelRow {
        counters: &[Metric::TCPEXT_LISTEN_OVERFLOWS],
        at_server: true,
        is_other: |run, _| is_anothers(run),
        // The kernel refuses when the queue is longer than the backlog: one more than it fits.
        limit: |facts| facts.backlog.map(|backlog| backlog + 1),
        gauge: Some(Metric::LISTENER_ACCEPT_QUEUE_MOST),
        symptom,
        without_symptom: Some((Severity::Noted, 0.6)),
        text: "The server's accept queue{room} overflowed {times}. Connections arrived \
               faster than the server accepted them: the kernel drops the rest, and each of those \
               clients tries again a second later.",
        remedy: "throng serve --backlog {wanted}, or raise the backlog of your server's listen(); \
                 and {raise}",
        raises: Some(Limit::SOMAXCONN),
        wanted_min: 65_535,
        ..KernelRow::ANY
    },
)
.with(&[RuleTrait::LacksCpu, RuleTrait::WithoutLoad])
.explains(&["half_open", "syn_queue_overflow", "retransmits"]);

/// Returns the symptom of an overflow. A dropped SYN delays a connect or makes it fail. After a
/// dropped final ACK the client believes that it is connected; the server does not know the
/// connection, and messages on it get no answer. Connections that wait in a queue that has room did
/// not overflow it: another listener did.
pub(super) fn symptom(run: &RunView<'_>) -> Option<Symptom> {
    let unserved = accept_backlog(run).filter(|_| may_have_been_full(run));
    let unserved = unserved.map(|evidence| Symptom { severity: Severity::Stopped, evidence });
    unserved
        .or_else(|| retransmission::by_connects(run))
        .or_else(|| retransmission::by_messages(run))
}

/// Reports whether the overflow is another listener's: the run felt none, and the server's own
/// queue had room at every sample.
pub(super) fn is_anothers(run: &RunView<'_>) -> bool {
    !may_have_been_full(run) && symptom(run).is_none()
}

/// Reports whether the accept queue may have been full. Between two samples a queue may be longer
/// than at either, but hardly twice as long.
fn may_have_been_full(run: &RunView<'_>) -> bool {
    let backlog = run.facts(Endpoint::Server).backlog;
    let most = run.peak(Endpoint::Server, Metric::LISTENER_ACCEPT_QUEUE_MOST);
    backlog.zip(most).is_none_or(|(backlog, most)| 2 * most.value >= backlog)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn a_queue_that_overflows_is_told_with_its_size() {
        let run = Run::quiet().with(Metric::LISTENER_BACKLOG, 128).growing(
            Metric::TCPEXT_LISTEN_OVERFLOWS,
            70,
            40,
            2,
        );
        assert_eq!(run.speaks(&RULE).severity, Severity::Noted, "it may be another program's");
        let run =
            run.loaded(|load, second| load.connect.record_n(1_040_000, u32::from(second == 4)));
        let found = run.speaks(&RULE);
        assert_eq!((found.severity, found.confidence), (Severity::Slowed, 1.0));
        assert_eq!(
            found.first_sentence(),
            "The server's accept queue, which holds 129, overflowed 320 times"
        );
        assert_eq!(
            (found.evidence[0].from, found.evidence[0].to, found.evidence[0].at_ms),
            (70.0, 390.0, 3_000)
        );
    }

    #[test]
    fn who_waits_in_a_queue_that_has_room_did_not_meet_the_overflow() {
        let waiting = |most| {
            Run::quiet()
                .with(Metric::LISTENER_BACKLOG, 4_096)
                .with(Metric::LISTENER_ACCEPT_QUEUE, most)
                .with(Metric::LISTENER_ACCEPT_QUEUE_MOST, most)
                .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 70, 40, 2)
        };
        waiting(13).is_silent(&RULE);
        assert_eq!(waiting(4_096).speaks(&RULE).severity, Severity::Stopped);
    }

    #[test]
    fn an_overflow_is_another_programs_if_the_queue_stayed_empty_and_no_connect_was_late() {
        let idle = || {
            Run::quiet()
                .with(Metric::LISTENER_BACKLOG, 4_096)
                .with(Metric::LISTENER_ACCEPT_QUEUE_MOST, 0)
                .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 70, 40, 2)
        };
        idle().is_silent(&RULE);
        // A short burst between two samples: the client that tries again shows it.
        let late =
            idle().loaded(|load, second| load.connect.record_n(1_040_000, u32::from(second == 4)));
        assert_eq!(late.speaks(&RULE).severity, Severity::Slowed);
    }

    #[test]
    fn overflows_of_another_time_or_of_a_kernel_that_is_not_the_servers_are_none() {
        Run::quiet().with(Metric::TCPEXT_LISTEN_OVERFLOWS, 70).is_silent(&RULE);
        let mut elsewhere = Run::quiet().growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 70, 40, 2);
        elsewhere.header.target_is_here = false;
        elsewhere.is_silent(&RULE);
    }
}
