//! The kernel establishes connections, and the server's program never accepts one.

use throng_measure::{Endpoint, ErrorKind, Evidence, Finding, Metric, ProcessMetric, Side};

use super::{Rule, RuleTrait};
use crate::counted::counted;
use crate::history::Sample;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule =
    Rule::new("never_accepts", find).with(&[RuleTrait::ServerFault]).explains(&[
        "accept_queue_overflow",
        "backlog_clamped",
        "half_open",
        "server_slow",
        "server_stalled",
        "server_lost",
        "syn_queue_overflow",
        "retransmits",
    ]);

/// TCP connects because the kernel does that by itself. Then nothing comes: no consent to an
/// upgrade, no answer to a message. The accept queue shows that the program took no connection: it
/// never got shorter.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let gave_up = gave_up(run)?;
    let queue = run.peak(Endpoint::Server, Metric::LISTENER_ACCEPT_QUEUE);
    if queue.is_some() && !only_grows(run) {
        return None;
    }
    let stopped = run.peak(Endpoint::Server, ProcessMetric::STOPPED.server);
    let stopped = stopped.filter(|stopped| stopped.value > 0);
    let waits = counted(gave_up.by(), "wait for an answer was", "waits for an answer were");
    let (text, confidence, remedy) = match (&queue, stopped) {
        (Some(queue), Some(_)) => (
            format!(
                "The server's process is stopped (state T) and accepts no connection: {} \
                 in its accept queue, and {waits} given up.",
                counted(queue.value as u64, "waits", "wait")
            ),
            1.0,
            "let it go on: kill -CONT PID, fg in its shell, or leave the debugger",
        ),
        (Some(queue), None) => (
            format!(
                "The server's program never accepts: TCP connects, {} in its \
                 accept queue, and {waits} given up.",
                counted(queue.value as u64, "connection waits", "connections wait")
            ),
            1.0,
            "find why the program does not call accept(): it starts up, its loop is blocked, or it \
             has listened and forgotten (strace -f -p PID, its own log)",
        ),
        (None, _) => (
            format!(
                "TCP connects, and nothing ever answers: {waits} given up, and there was not one \
                 answer. The program accepts no connection, or does not read."
            ),
            UNSEEN_CONFIDENCE,
            "look on the server's machine whether connections wait in its accept queue (ss -ltn: \
             Recv-Q of its port)",
        ),
    };
    let finding = Finding::new(RULE.id, Side::Server, text).with_confidence(confidence);
    let finding = finding.with_evidence([gave_up.evidence()]);
    Some(finding.with_evidence(queue.map(Evidence::from)).remedied_by(remedy))
}

/// Returns the waits that users gave up, if TCP connected and there was no answer at all.
pub(super) fn gave_up(run: &RunView<'_>) -> Option<Growth> {
    let load = run.samples().last()?.load()?;
    let done = &load.counters;
    let answers = done.requests_answered() + done.joins_ok + done.messages_received;
    let growth = if done.upgrades_started > 0 {
        let is_silent = done.connects_ok == 0
            && load.connect_failed.0.keys().all(|kind| kind == "timeout" || kind == "ETIMEDOUT");
        is_silent.then(|| run.connect_failures(ErrorKind::ConnectTimeout))
    } else {
        let wait = [ErrorKind::ExpectTimeout, ErrorKind::HttpTimeout];
        let wait = wait.into_iter().find(|kind| load.errors.get(kind) > 0)?;
        let is_silent = done.connects_ok > 0
            && load.connect_failed.0.is_empty()
            && load.errors.0.keys().all(|kind| kind == wait.name());
        is_silent.then(|| run.errors(wait))
    };
    growth.flatten().filter(|growth| answers == 0 && growth.by() >= GIVEN_UP_MIN)
}

/// Reports whether the accept queue never got shorter, from the first connection to the last
/// sample.
pub(super) fn only_grows(run: &RunView<'_>) -> bool {
    let queued =
        |sample: &Sample| run.value(Endpoint::Server, sample, Metric::LISTENER_ACCEPT_QUEUE);
    let lengths: Vec<_> = run.samples().iter().filter_map(queued).collect();
    lengths.is_sorted() && lengths.last().is_some_and(|last| *last > 0)
}

/// The fewest waits that count.
const GIVEN_UP_MIN: u64 = 3;

/// The confidence when the accept queue cannot be read.
const UNSEEN_CONFIDENCE: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::Operation;

    /// A run over WebSockets in which no upgrade is answered.
    fn silent() -> Run {
        Run::quiet().loaded(|load, second| {
            let counters = &mut load.counters;
            (counters.connects_ok, counters.connected) = (0, 0);
            (counters.messages_sent, counters.messages_answered) = (0, 0);
            counters.upgrades_started = 100 * second;
            load.times[Operation::Message].clear();
            load.times[Operation::Connect].clear();
            load.connect_failed.add(ErrorKind::ConnectTimeout, 100 * second.saturating_sub(2));
        })
    }

    fn here(mut run: Run) -> Run {
        run.header.target_is_here = true;
        run
    }

    #[test]
    fn users_that_wait_in_the_queue_are_counted() {
        let run = here(silent()).growing(Metric::LISTENER_ACCEPT_QUEUE, 0, 100, 0).growing(
            Metric::TCPEXT_LISTEN_OVERFLOWS,
            0,
            40,
            2,
        );
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server's program never accepts: TCP connects, 1k connections wait in its accept \
             queue, and 800 waits for an answer were given up"
        );
        run.check_all(&["never_accepts", "accept_queue_overflow"]);
        let run = run.with(ProcessMetric::STOPPED.server, 0);
        assert!(run.speaks(&RULE).text.contains("program never accepts"));
        let stopped = run.with(ProcessMetric::STOPPED.server, 1).speaks(&RULE);
        assert!(stopped.remedy.contains("kill -CONT"), "{stopped}");
    }

    #[test]
    fn elsewhere_only_the_silence_is_known() {
        let found = silent().speaks(&RULE);
        assert!(found.text.starts_with("TCP connects, and nothing ever answers: 800"), "{found}");
        assert!(found.confidence < 0.7 && found.remedy.contains("ss -ltn"), "{found}");
    }

    #[test]
    fn plain_tcp_is_judged_by_its_answers() {
        let run = Run::quiet().loaded(|load, second| {
            load.counters.messages_answered = 0;
            load.times[Operation::Message].clear();
            load.errors.add(ErrorKind::ExpectTimeout, 10 * second);
        });
        here(run).growing(Metric::LISTENER_ACCEPT_QUEUE, 0, 100, 0).speaks(&RULE);
    }

    #[test]
    fn a_program_that_accepts_or_answers_is_another_case() {
        let shrinks = here(silent()).growing(Metric::LISTENER_ACCEPT_QUEUE, 900, -90, 0);
        shrinks.is_silent(&RULE);
        here(silent()).with(Metric::LISTENER_ACCEPT_QUEUE, 0).is_silent(&RULE);
        silent().loaded(|load, second| load.counters.connects_ok = second).is_silent(&RULE);
        let refused = silent().loaded(|load, _| load.connect_failed.add("ECONNREFUSED", 1));
        refused.is_silent(&RULE);
    }
}
