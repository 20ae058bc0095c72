//! Connections became ready faster than the server accepted them.

use throng_measure::{Endpoint, Limit, Metric, Severity};

use super::accept_backlog::accept_backlog;
use super::kernel_row::KernelRow;
use super::retransmission::{self, Symptom};
use super::{Rule, RuleTrait};
use crate::counted::counted;
use crate::history::Sample;
use crate::run_view::{Growth, RunView};

/// The kernel counts each handshake that it drops because the listener's accept queue is full: its
/// SYN, or its final ACK. The counter covers all listeners of the network namespace. What a single
/// listener dropped is in `listener.drops`. A queue with room for a burst does not overflow however
/// busy the machine is: other programs are no excuse.
pub(super) const RULE: Rule = Rule::row(
    "accept_queue_overflow",
    &KernelRow {
        counters: &[Metric::TCPEXT_LISTEN_OVERFLOWS],
        own: Some(Metric::LISTENER_DROPS),
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
        more: |run, _| scope(run).unwrap_or_default(),
        remedy: "{listen}; and {raise}",
        raises: Some(Limit::SOMAXCONN),
        wanted_min: 65_535,
        ..KernelRow::ANY
    },
)
.with(&[RuleTrait::ServerFault, RuleTrait::LacksCpu, RuleTrait::WithoutLoad])
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

/// Returns the growth of the overflows, unless they are another listener's.
pub(super) fn overflows(run: &RunView<'_>) -> Option<Growth> {
    run.growth(Endpoint::Server, Metric::TCPEXT_LISTEN_OVERFLOWS).filter(|_| !is_anothers(run))
}

/// Reports whether the overflows are another listener's: the server's own listeners dropped
/// nothing, or are in another network namespace. If their drops are unknown, it is so when the run
/// felt nothing that this many overflows explain.
pub(super) fn is_anothers(run: &RunView<'_>) -> bool {
    match own_drops(run) {
        Some(drops) => drops == 0,
        None => match run.samples().last().and_then(Sample::load) {
            Some(load) => !are_of_the_run(run, load.counters.connects_started),
            None => !may_have_been_full(run),
        },
    }
}

/// Returns what the server's own listeners dropped, or `None` if that is unknown.
pub(super) fn own_drops(run: &RunView<'_>) -> Option<u64> {
    let end = Endpoint::Server;
    let listeners = run.peak(end, Metric::LISTENER_COUNT).map(|peak| peak.value);
    let is_known = run.peak(end, Metric::LISTENER_DROPS).is_some() || listeners == Some(0);
    is_known.then(|| run.growth(end, Metric::LISTENER_DROPS).map_or(0, |growth| growth.by()))
}

/// Reports whether the overflows of all listeners may be those of the run's own connects: one of
/// them waited for a second SYN or for the server's accept. Late messages count only if there are
/// not more overflows than that many connects cause.
fn are_of_the_run(run: &RunView<'_>, connects: u64) -> bool {
    let all = run.growth(Endpoint::Server, Metric::TCPEXT_LISTEN_OVERFLOWS);
    let all = all.map_or(0, |growth| growth.by());
    let waits = || accept_backlog(run).filter(|_| may_have_been_full(run)).is_some();
    retransmission::by_connects(run).is_some()
        || waits()
        || (symptom(run).is_some() && all <= connects.saturating_mul(OVERFLOWS_EACH_CONNECT))
}

/// Returns a sentence about the listeners that the counter covers, if these may be others than the
/// server's.
fn scope(run: &RunView<'_>) -> Option<String> {
    let connects = run.samples().last()?.load()?.counters.connects_started;
    let connects = counted(connects, "connect", "connects");
    own_drops(run).is_none().then(|| {
        format!(
            " The counter is that of all listeners of this network namespace; the run itself made \
             {connects}."
        )
    })
}

/// Reports whether the accept queue may have been full. Between two samples a queue may be longer
/// than at either, but hardly twice as long.
fn may_have_been_full(run: &RunView<'_>) -> bool {
    let backlog = run.facts(Endpoint::Server).backlog;
    let most = run.peak(Endpoint::Server, Metric::LISTENER_ACCEPT_QUEUE_MOST);
    backlog.zip(most).is_none_or(|(backlog, most)| 2 * most.value >= backlog)
}

/// The most overflows of one connect: its SYN three times, and each final ACK and each first data
/// that it sends again.
const OVERFLOWS_EACH_CONNECT: u64 = 16;

#[cfg(test)]
mod tests {
    use throng_measure::{Operation, ProcessMetric};

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
        run.is_silent(&RULE);
        let run = run.loaded(|load, second| {
            load.times[Operation::Connect].record_n(1_040_000, u32::from(second == 4))
        });
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
    fn a_listener_that_dropped_nothing_did_not_overflow_and_one_that_did_overflowed_as_often() {
        let own = |drops| {
            Run::quiet().growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 70, 40, 2).growing(
                Metric::LISTENER_DROPS,
                7,
                drops,
                2,
            )
        };
        let late = |run: Run| {
            run.loaded(|load, second| {
                load.times[Operation::Connect].record_n(1_040_000, u32::from(second == 4))
            })
        };
        own(0).is_silent(&RULE);
        late(own(0)).is_silent(&RULE);
        let found = own(3).speaks(&RULE);
        assert_eq!((found.severity, found.evidence[0].to), (Severity::Noted, 31.0));
        assert!(found.first_sentence().ends_with("overflowed 24 times"), "{found}");
        assert!(!found.text.contains("namespace"), "{found}");
        assert_eq!(late(own(3)).speaks(&RULE).severity, Severity::Slowed);
        // The server listens in another network namespace.
        late(Run::quiet().growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 70, 40, 2))
            .with(Metric::LISTENER_COUNT, 0)
            .is_silent(&RULE);
    }

    #[test]
    fn a_neighbours_overflows_do_not_explain_the_late_messages_of_four_connections() {
        let run = |connects: u64| {
            Run::quiet().growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 111, 2).loaded(
                move |load, second| {
                    load.counters.connects_started = connects;
                    load.counters.connects_ok = connects;
                    load.times[Operation::Message].record_n(450_000, u32::from(second == 4));
                },
            )
        };
        run(4).is_silent(&RULE);
        let found = run(400).speaks(&RULE);
        assert!(found.text.ends_with("namespace; the run itself made 400 connects."), "{found}");
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
        let late = idle().loaded(|load, second| {
            load.times[Operation::Connect].record_n(1_040_000, u32::from(second == 4))
        });
        assert_eq!(late.speaks(&RULE).severity, Severity::Slowed);
    }

    #[test]
    fn a_full_queue_of_the_server_itself_comes_before_other_programs() {
        let run = Run::quiet()
            .with(Metric::LISTENER_BACKLOG, 5)
            .growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 40, 2)
            .growing(Metric::LISTENER_DROPS, 0, 40, 2)
            .growing(ProcessMetric::CPU_US.server, 0, 200_000, 0)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client, 600)
            .loaded(|load, second| {
                load.times[Operation::Connect].record_n(1_040_000, 20 * u32::from(second > 2));
                load.lag.record_n(30_000, if second > 5 { 900 } else { 0 });
            })
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_980_000 * second, 20_000 * second);
            });
        run.check_all(&["accept_queue_overflow", "cpu_contended", "generator_saturated"]);
        let verdict = run.verdict();
        assert!(verdict.starts_with("Slowed down on the server side"), "{verdict}");
        assert!(verdict.contains("do: raise the backlog, 5 now, that"), "{verdict}");
        // What the run did not feel is no reason to hide other programs.
        let unfelt = run.loaded(|load, _| load.times[Operation::Connect].clear());
        unfelt.check_all(&["cpu_contended", "generator_saturated", "accept_queue_overflow"]);
    }

    #[test]
    fn overflows_of_another_time_or_of_a_kernel_that_is_not_the_servers_are_none() {
        Run::quiet().with(Metric::TCPEXT_LISTEN_OVERFLOWS, 70).is_silent(&RULE);
        let mut elsewhere = Run::quiet().growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 70, 40, 2);
        elsewhere.header.target_is_here = false;
        elsewhere.is_silent(&RULE);
    }
}
