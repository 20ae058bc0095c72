//! Segments were retransmitted, and no queue on either machine counted a drop: they were lost in
//! between.

use throng_measure::{Endpoint, Finding, Metric, Side};
use throng_report::render::{count, percent};

use super::Rule;
use super::retransmission::{self, Symptom};
use crate::counted::counted;
use crate::kernels::{Kernel, kernels};
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("retransmits", find).explains(&["server_slow"]);

/// Retransmitted segments of one kind, less those that a queue has dropped and counted.
#[derive(Debug)]
struct Retransmission {
    lost: u64,
    /// Segments of this kind in all.
    of: u64,
    symptom: Symptom,
}

/// Looks at SYNs and data apart: SYNs have queues of their own at the server, and another wait
/// before a retransmission.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let kernels = kernels(run);
    let syns = grown(run, &kernels, Metric::TCPEXT_TCP_SYN_RETRANS);
    let all = grown(run, &kernels, Metric::TCP_RETRANS_SEGS);
    let syn = again_syns(run, Growth::total(&syns));
    let data = again_data(run, &kernels, Growth::total(&all).saturating_sub(Growth::total(&syns)));
    // For one drop at a listener several segments are sent again: the SYN, the SYN-ACK, and what
    // the client sends after that.
    let by_listener =
        run.growth(Endpoint::Server, Metric::TCPEXT_LISTEN_DROPS).map_or(0, |drops| drops.by());
    let all_again: u64 = [&syn, &data].into_iter().flatten().map(|again| again.lost).sum();
    if all_again <= by_listener.saturating_mul(AGAIN_EACH_DROP) {
        return None;
    }
    let text = match (&syn, &data) {
        (Some(syn), Some(data)) => format!(
            "Packets are lost between generator and server: {} and {} were sent again.",
            share(data, "segments"),
            counted(syn.lost, "SYN", "SYNs")
        ),
        (None, Some(data)) => {
            format!(
                "Packets are lost between generator and server: {} were sent again.",
                share(data, "segments")
            )
        }
        (Some(syn), None) => format!(
            "Handshakes are lost between generator and server: {} sent again \
             for {}.",
            counted(syn.lost, "SYN or SYN-ACK was", "SYNs or SYN-ACKs were"),
            counted(syn.of, "connect", "connects")
        ),
        (None, None) => return None,
    };
    let seen = run.has_facts(Endpoint::Server);
    let text = text
        + if seen {
            " No listener and no socket of generator or server dropped them: the link, a device on \
             it or a filter does."
        } else {
            " The server's own queues could not be read, and may drop them."
        };
    let symptom: Vec<_> = [syn, data].into_iter().flatten().map(|again| again.symptom).collect();
    let severity = symptom.iter().map(|symptom| symptom.severity).max()?;
    let finding = Finding::new(RULE.id, Side::Network, text)
        .with_severity(severity)
        .with_confidence(if seen { 0.9 } else { 0.6 })
        .with_evidence(all.iter().chain(&syns).map(Growth::evidence))
        .with_evidence(symptom)
        .remedied_by(
        "find what drops them with ip -s link, tc -s qdisc and nft list ruleset on both machines, \
         and check the devices between them",
    );
    Some(finding)
}

/// Returns the retransmitted SYNs and SYN-ACKs, less those that the server's own queues dropped:
/// each drop causes one retransmission.
fn again_syns(run: &RunView<'_>, syns: u64) -> Option<Retransmission> {
    let dropped = [Metric::TCPEXT_LISTEN_DROPS, Metric::TCPEXT_TCP_REQ_Q_FULL_DO_COOKIES];
    let dropped = dropped.iter().filter_map(|counter| run.growth(Endpoint::Server, *counter));
    let lost = syns.saturating_sub(Growth::total(&dropped.collect::<Vec<_>>()));
    let of = run.load_growth("load.connects_started", |load| load.connects_started)?.by();
    // More than the run's own connects can have sent are another program's.
    let is_others = lost > of.saturating_mul(SYNS_EACH_CONNECT);
    (lost >= AGAIN_MIN && lost.saturating_mul(AGAIN_ONE_IN) >= of && !is_others)
        .then(|| Some(Retransmission { lost, of, symptom: retransmission::by_connects(run)? }))?
}

/// Returns the retransmitted data segments, less those that the receiver had no room for.
fn again_data(run: &RunView<'_>, kernels: &[Kernel], data: u64) -> Option<Retransmission> {
    let dropped = NO_ROOM.iter().map(|counter| Growth::total(&grown(run, kernels, *counter))).sum();
    let lost = data.saturating_sub(dropped);
    let of = Growth::total(&grown(run, kernels, Metric::TCP_OUT_SEGS));
    if lost < AGAIN_MIN || lost.saturating_mul(AGAIN_ONE_IN) < of {
        return None;
    }
    // Where so much is lost, the loss itself makes most answers late.
    let is_much = lost.saturating_mul(retransmission::MUCH_ONE_IN) > of;
    let late = || if is_much { retransmission::late_messages(run) } else { None };
    let symptom = retransmission::by_messages(run).or_else(late)?;
    Some(Retransmission { lost, of, symptom })
}

/// Formats retransmitted segments with their share of all.
fn share(again: &Retransmission, what: &str) -> String {
    let Retransmission { lost, of, .. } = again;
    match of {
        0 => format!("{} {what}", count(*lost as f64)),
        _ => format!("{} {what} ({})", count(*lost as f64), percent(*lost as f64 / *of as f64)),
    }
}

/// Returns the growth of a counter in each kernel. If there are two kernels, the server's counter
/// gets the name that it has in the run file.
fn grown(run: &RunView<'_>, kernels: &[Kernel], metric: Metric) -> Vec<Growth> {
    let of = |kernel: &Kernel| {
        let growth = run.growth(kernel.endpoint, metric)?;
        let is_servers = kernels.len() > 1 && kernel.endpoint == Endpoint::Server;
        let counter =
            if is_servers { format!("server_kernel.{metric}") } else { metric.to_string() };
        Some(Growth { counter, ..growth })
    };
    kernels.iter().filter_map(of).collect()
}

/// Counters of segments that a socket drops because its own buffer is full.
const NO_ROOM: [Metric; 4] = [
    Metric::TCPEXT_TCP_BACKLOG_DROP,
    Metric::TCPEXT_TCP_OFO_DROP,
    Metric::TCPEXT_TCP_RCV_Q_DROP,
    Metric::TCPEXT_TCP_ZERO_WINDOW_DROP,
];

/// The most segments that are sent again for one drop at a listener: a SYN-ACK five times at most,
/// and as many of data.
const AGAIN_EACH_DROP: u64 = 4;

/// The most SYNs and SYN-ACKs that are sent again for one connect: twice and five times.
const SYNS_EACH_CONNECT: u64 = 7;

/// The fewest that count: a machine with other traffic retransmits a handful in any minute.
const AGAIN_MIN: u64 = 10;

/// The smallest share that counts: less than one in a thousand does not reach the usual
/// percentiles.
const AGAIN_ONE_IN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use throng_measure::{Operation, Severity};

    use super::super::fixture::Run;
    use super::*;

    /// Adds messages that waited for 210 ms.
    fn slow_messages(run: Run) -> Run {
        run.loaded(|load, second| {
            load.times[Operation::Message].record_n(210_000, u32::from(second > 3))
        })
    }

    #[test]
    fn a_loss_that_makes_most_answers_late_is_told_and_a_small_one_is_not_the_reason() {
        let late = |resent| {
            Run::quiet()
                .loaded(|load, _| load.times[Operation::Message].record_n(400_000, 900_000))
                .growing(Metric::TCP_RETRANS_SEGS, 0, resent, 2)
                .growing(Metric::TCP_OUT_SEGS, 0, 5_000, 0)
        };
        let found = late(100).speaks(&RULE);
        assert_eq!(found.severity, Severity::Slowed, "{found}");
        late(20).is_silent(&RULE);
    }

    /// Adds connects that waited for a second SYN.
    fn slow_connects(run: Run) -> Run {
        run.loaded(|load, second| {
            load.times[Operation::Connect].record_n(1_040_000, u32::from(second == 4))
        })
    }

    fn losing(segments: i64, syns: i64) -> Run {
        Run::quiet()
            .growing(Metric::TCP_OUT_SEGS, 0, 2_000, 0)
            .growing(Metric::TCP_RETRANS_SEGS, 9, segments + syns, 2)
            .growing(Metric::TCPEXT_TCP_SYN_RETRANS, 9, syns, 2)
    }

    #[test]
    fn data_and_handshakes_are_told_apart() {
        let sentence = |run: Run| run.speaks(&RULE).first_sentence().to_owned();
        assert_eq!(
            sentence(slow_messages(losing(50, 0))),
            "Packets are lost between generator and server: 400 segments (2.00 %) were sent again"
        );
        assert!(sentence(slow_connects(losing(0, 50))).starts_with("Handshakes are lost"));
        assert!(sentence(slow_messages(slow_connects(losing(50, 5)))).contains("and 40 SYNs"));
    }

    #[test]
    fn more_syns_than_the_runs_connects_send_are_another_programs() {
        let of = |connects: u64| {
            slow_connects(losing(0, 50)).loaded(move |load, second| {
                load.counters.connects_started = connects * second.min(1);
                load.counters.connects_ok = load.counters.connects_started;
            })
        };
        of(4).is_silent(&RULE);
        of(200).speaks(&RULE);
    }

    #[test]
    fn losses_without_a_symptom_and_a_handful_are_no_finding() {
        losing(50, 50).is_silent(&RULE);
        slow_messages(losing(1, 0)).is_silent(&RULE);
        let of_many = slow_messages(losing(5, 0)).growing(Metric::TCP_OUT_SEGS, 0, 200_000, 0);
        of_many.is_silent(&RULE);
    }

    #[test]
    fn handshakes_that_a_queue_of_the_server_dropped_are_not_lost_on_the_way() {
        slow_connects(losing(0, 50))
            .growing(Metric::TCPEXT_LISTEN_DROPS, 0, 50, 2)
            .is_silent(&RULE);
        slow_connects(losing(0, 50)).growing(Metric::TCPEXT_LISTEN_DROPS, 0, 5, 2).speaks(&RULE);
        // After a dropped final ACK the server repeats its SYN-ACK, and the client its first data.
        let both = slow_messages(slow_connects(losing(60, 60)));
        both.growing(Metric::TCPEXT_LISTEN_DROPS, 0, 40, 2).is_silent(&RULE);
    }

    #[test]
    fn data_that_its_receiver_had_no_room_for_is_not_lost_on_the_way() {
        slow_messages(losing(50, 0))
            .growing(Metric::TCPEXT_TCP_RCV_Q_DROP, 0, 50, 2)
            .is_silent(&RULE);
    }

    #[test]
    fn a_server_that_cannot_be_read_lowers_confidence() {
        let mut run = slow_messages(losing(50, 0));
        run.header.target_is_here = false;
        assert_eq!(run.speaks(&RULE).confidence, 0.6);
    }
}
