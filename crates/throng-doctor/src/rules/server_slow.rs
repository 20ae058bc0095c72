//! Answers took long although no visible resource was exhausted.

mod cause;
mod slow_answers;

use throng_measure::{ErrorKind, Evidence, Finding, Severity, Side};

use super::lost_answers::LostAnswers;
use super::{
    Rule, RuleTrait, answers_incomplete, gap_per_user, known_delays, network_lost, server_stalled,
    wrong_answers,
};
use crate::counted::counted;
use crate::fleet_machines::machines_that_waited;
use crate::history::Sample;
use crate::impact::time_outs;
use crate::run_view::{Growth, RunView};
use cause::{Cause, ServerUse};
use slow_answers::SlowAnswers;

pub(super) const RULE: Rule =
    Rule::new("server_slow", |run| Some(gap_per_user::explain(run, find(run)?)))
        .with(&[RuleTrait::ServerFault, RuleTrait::OnlyDelays]);

/// Returns the remaining explanation when answers are late and no CPU, queue, packet loss or
/// generator explains it: the server waits for something of its own.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let late = LateAnswers::of(run)?;
    if known_delays::explain(run, &late.waits(run)) {
        return None;
    }
    let used = ServerUse::of(run);
    let cause = Cause::of(run, &late, &used);
    let (what, used, bursts) = (late.describe(run), used.describe(run), &cause.bursts);
    let (why, seen_by) = (&cause.why, seen_by(run));
    let text = format!("The server was slow: {what} {used}{bursts}. {why}{seen_by}");
    let severity = if late.given_up.is_empty() { Severity::Slowed } else { Severity::Stopped };
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(severity)
        .with_confidence(cause.confidence)
        .with_evidence(late.evidence(run))
        .with_evidence(cause.evidence)
        .remedied_by(cause.remedy);
    Some(finding)
}

/// The answers for which users waited too long: at least one of these is known.
struct LateAnswers<'a> {
    /// Answers that were slow.
    slow: Option<SlowAnswers<'a>>,
    /// Waits for an answer that users gave up.
    given_up: Vec<Growth>,
    /// A sentence about the waits that had not ended at the end, if they were long.
    overdue: Option<String>,
}

impl<'a> LateAnswers<'a> {
    fn of(run: &RunView<'a>) -> Option<Self> {
        // Waits in which the server stood still, or no packet arrived, are no slow answers.
        let is_away = [&server_stalled::RULE, &network_lost::RULE];
        let is_away = is_away.iter().any(|rule| rule.find(run).is_some());
        let given_up = timeouts(run);
        // Answers that were lost are waited for at the end, too.
        let overdue = run.summary.overdue().filter(|_| LostAnswers::of(run).is_none());
        // A turn that begins late because the answer before it was lost is not answered late.
        let waited_for_lost = |slow: &SlowAnswers<'_>| {
            is_lost(run, ErrorKind::ExpectTimeout) && slow.sent_late(run).is_some()
        };
        let slow = SlowAnswers::slowest(run, is_away).filter(|slow| !waited_for_lost(slow));
        let is_late = slow.is_some() || !is_away && (!given_up.is_empty() || overdue.is_some());
        is_late.then_some(Self { slow, given_up, overdue })
    }

    /// Returns the intervals with these answers, and how long they took there.
    fn waits(&self, run: &RunView<'a>) -> Vec<(&'a Sample, u64)> {
        match &self.slow {
            Some(slow) => slow.late.clone(),
            None if self.given_up.is_empty() => overdue_wait(run).into_iter().collect(),
            None => time_outs(run),
        }
    }

    fn describe(&self, run: &RunView<'_>) -> String {
        match (&self.slow, Growth::total(&self.given_up)) {
            (Some(slow), 0) => slow.describe(run),
            (None, 0) => self.overdue.clone().unwrap_or_default(),
            (_, waits) => {
                format!("{} timed out", counted(waits, "wait for an answer", "waits for an answer"))
            }
        }
    }

    fn evidence(&self, run: &RunView<'_>) -> Vec<Evidence> {
        let mut shown: Vec<_> = self.given_up.iter().map(Growth::evidence).collect();
        shown.extend(self.slow.iter().flat_map(|slow| slow.evidence.clone()));
        // The generator counts the users that wait when the load ends.
        if let Some(last) = run.samples().last().filter(|_| shown.is_empty()) {
            shown.push(Evidence {
                counter: "load.counters.users_waiting".to_owned(),
                from: 0.0,
                to: run.summary.users.waiting as f64,
                at_ms: last.interval.at_ms,
            });
        }
        shown
    }
}

/// Says that all machines of a fleet saw the slow answers, if they did.
fn seen_by(run: &RunView<'_>) -> String {
    match machines_that_waited(run, SLOW_US) {
        0 | 1 => String::new(),
        all if all == run.header.machines.len() => format!(" All {all} machines saw it."),
        some => format!(" {some} of {} machines saw it.", run.header.machines.len()),
    }
}

/// Returns the waits for an answer that users gave up.
fn timeouts(run: &RunView<'_>) -> Vec<Growth> {
    let waits = run
        .samples()
        .last()
        .and_then(Sample::load)
        .map_or(0, |load| load.counters.requests_begun() + load.counters.joins_started);
    // An answer that stops before the length that it declares is not late.
    // Nor is one that never comes while the others are fast, or in whose place another came.
    let is_late = |kind: &ErrorKind| match *kind {
        ErrorKind::HttpTimeout => {
            !answers_incomplete::stops_before_declared_end(run) && !is_lost(run, *kind)
        }
        ErrorKind::ExpectTimeout => !is_lost(run, *kind) && !wrong_answers::is_of(run, *kind),
        _ => true,
    };
    let kinds = ErrorKind::unanswered().filter(is_late);
    let found: Vec<_> = kinds.filter_map(|kind| run.errors(kind)).collect();
    let all = Growth::total(&found);
    if all >= TIMEOUTS_MIN && all.saturating_mul(TIMEOUTS_ONE_IN) >= waits {
        found
    } else {
        Vec::new()
    }
}

/// Reports whether the waits that ended with this error are those for answers that were lost.
fn is_lost(run: &RunView<'_>, kind: ErrorKind) -> bool {
    let lost = LostAnswers::of(run).or_else(|| LostAnswers::of_queue(run));
    lost.is_some_and(|lost| lost.questions.error == kind)
}

/// Returns the longest wait of a user at the end, with the last interval.
fn overdue_wait<'a>(run: &RunView<'a>) -> Option<(&'a Sample, u64)> {
    Some((run.samples().last()?, run.summary.users.waiting_us_most))
}

/// The latency above which answers are slow: what a person notices, as in `impact`.
const SLOW_US: u64 = 100_000;

/// The fewest time-outs that count: fewer, or less than one wait in a thousand, are no pattern.
const TIMEOUTS_MIN: u64 = 3;
const TIMEOUTS_ONE_IN: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::{Metric, Operation, ProcessMetric};

    fn slow(us: u64) -> Run {
        Run::quiet().growing(ProcessMetric::CPU_US.server, 0, 100_000, 0).loaded(
            move |load, second| {
                if second > 3 {
                    load.times[Operation::Message].record_n(us, 500);
                }
            },
        )
    }

    #[test]
    fn a_server_that_waits_for_a_disk_is_told_by_its_state() {
        let waiting = |each: u64| {
            slow(400_000).changed(move |interval, second| {
                let waits = i64::from(second % each == 0);
                interval.kernel.set(ProcessMetric::UNINTERRUPTIBLE.server, waits);
            })
        };
        let found = waiting(2).speaks(&RULE);
        assert!(found.text.contains("(state D) in 6 of 11 looks."), "{found}");
        assert!(found.remedy.contains("fsync"), "{found}");
        assert!(waiting(8).speaks(&RULE).text.contains("waits inside"));
    }

    #[test]
    fn answers_that_take_long_while_nothing_is_full_are_the_servers_own() {
        let found = slow(400_000).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server was slow: messages took 400 ms (p99 of the worst interval) while the \
             server used 0.10 of the 2 CPUs that it may use"
        );
        assert_eq!((found.severity, found.began_ms()), (Severity::Slowed, Some(4_000)));
    }

    #[test]
    fn messages_that_wait_for_their_turn_are_told_with_the_time_of_the_server_alone() {
        let run = slow(6_030_000).loaded(|load, second| {
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(1_000_000 * second.min(6), 50);
            load.times.from_send.record_n(2_000_000, 50);
        });
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server was slow: messages took 2.00 s from when they were sent (p50), and 6.00 s \
             from when they were due (p99 of the worst interval), while the server used 0.10 of \
             the 2 CPUs that it may use"
        );
        // Those of the worst interval took as long from when they were sent.
        let rare = run.loaded(|load, _| {
            load.times.from_send.clear();
            load.times.from_send.record_n(200, 500);
            load.times.from_send.record_n(5_000_000, 20);
        });
        assert!(rare.speaks(&RULE).text.contains("messages took 6.00 s (p99 of"));
    }

    #[test]
    fn users_that_wait_when_the_load_ends_are_shown_with_their_number() {
        // They are counted in the interval in which users leave.
        let run = Run::quiet().loaded(|load, second| {
            if second == 10 {
                load.phase = throng_measure::LEAVING.to_owned();
                load.counters.users_waiting = 400;
                load.counters.users_waiting_us_most = 4_900_000;
            }
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("400 users were waiting for an answer"), "{found}");
        assert_eq!((found.evidence[0].to, found.evidence[0].at_ms), (400.0, 9_000), "{found}");
    }

    #[test]
    fn each_number_of_the_evidence_stands_at_its_own_moment() {
        let run = slow(200_000).loaded(|load, second| {
            load.times[Operation::Message].record_n(if second == 7 { 900_000 } else { 200 }, 200);
        });
        let found = run.speaks(&RULE);
        let moments: Vec<_> =
            found.evidence.iter().map(|shown| (shown.to as u64 / 10_000, shown.at_ms)).collect();
        assert_eq!(moments, [(20, 4_000), (90, 7_000)], "{found}");
    }

    #[test]
    fn without_the_servers_facts_only_its_answers_are_judged() {
        let mut elsewhere = slow(400_000);
        elsewhere.header.target_is_here = false;
        let found = elsewhere.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server was slow: messages took 400 ms (p99 of the worst interval) while its CPU \
             use and queues are unknown"
        );
        assert!(found.confidence <= 0.4 && found.remedy.contains("--server-facts"), "{found}");
        assert!(!found.text.contains("No queue"), "{found}");
        let told = elsewhere.changed(|interval, _| {
            interval.server_kernel = std::mem::take(&mut interval.kernel);
            interval.server_machine = interval.machine.clone();
        });
        assert!(told.speaks(&RULE).text.contains("No queue overflowed"));
    }

    #[test]
    fn a_server_that_computes_in_bursts_does_not_wait() {
        let bursts = |ms| slow(300_000).with(ProcessMetric::BUSY_MS_MOST.server, ms);
        let found = bursts(280).speaks(&RULE);
        assert!(found.text.contains("computed for up to 280 ms at a time"), "{found}");
        assert!(found.remedy.starts_with("profile what it computes"), "{found}");
        assert!(bursts(60).speaks(&RULE).remedy.contains("not what it computes"));
    }

    #[test]
    fn one_second_in_which_it_stood_still_is_enough() {
        let stall = |us: u64| {
            Run::quiet().loaded(move |load, second| {
                load.times[Operation::Message].record_n(if second == 6 { us } else { 200 }, 100);
            })
        };
        let found = stall(2_480_000).speaks(&RULE);
        let begin = "The server was slow: messages took 2.48 s (p99 of";
        assert!(found.text.starts_with(begin), "{found}");
        stall(700_000).is_silent(&RULE);
    }

    #[test]
    fn waits_that_were_given_up_are_graver() {
        let run =
            slow(200).loaded(|load, second| load.errors.add(ErrorKind::ExpectTimeout, 40 * second));
        let found = run.speaks(&RULE);
        assert_eq!(found.severity, Severity::Stopped);
        assert!(found.text.contains("400 waits for an answer timed out"), "{found}");
    }

    #[test]
    fn a_long_way_is_no_slow_server() {
        let far = Run::quiet().loaded(|load, _| {
            load.times[Operation::Connect].clear();
            load.times[Operation::Connect].record_n(150_000, 100);
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(160_000, 500);
        });
        far.is_silent(&RULE);
    }

    #[test]
    fn a_machine_that_others_fill_is_no_reason_unless_the_server_waits_for_it() {
        let full = |delayed| {
            slow(400_000).with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, delayed).changed(
                |interval, second| {
                    let machine = interval.machine.as_mut().unwrap();
                    (machine.cpu_busy_us, machine.cpu_idle_us) =
                        (1_990_000 * second, 10_000 * second);
                },
            )
        };
        full(20).speaks(&RULE);
        full(500).is_silent(&RULE);
    }

    #[test]
    fn answers_that_are_later_than_the_waits_for_a_cpu_are_the_servers_own() {
        let beside = |ms: u64, delayed| {
            Run::quiet()
                .growing(ProcessMetric::CPU_US.server, 0, 20_000, 0)
                .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, delayed)
                .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client, delayed / 2)
                .loaded(move |load, second| {
                    load.times[Operation::Message].clear();
                    load.times[Operation::Message].record_n(ms * 1_000, 100);
                    // Waits for a CPU made the connects of the ramp late, too.
                    load.lag.record_n(if second < 6 { 15_000 } else { 100 }, 900);
                })
                .changed(|interval, second| {
                    let machine = interval.machine.as_mut().unwrap();
                    (machine.cpu_busy_us, machine.cpu_idle_us) =
                        (1_980_000 * second, 20_000 * second);
                })
        };
        let run = beside(2_000, 300);
        run.check_all(&["server_slow", "cpu_contended", "generator_saturated"]);
        let verdict = run.verdict();
        assert!(verdict.starts_with("Slowed down on the server side"), "{verdict}");
        assert!(verdict.contains(" Besides, other programs had 9"), "{verdict}");
        // The run waited for them for as long as the answers took.
        beside(2_000, 700).check_all(&["cpu_contended", "generator_saturated"]);
        beside(300, 300).check_all(&["cpu_contended", "generator_saturated"]);
    }

    #[test]
    fn a_generator_that_is_a_little_late_does_not_hide_a_slow_server() {
        let late = |us| slow(400_000).loaded(move |load, _| load.lag.record_n(us, 900));
        late(30_000).check_all(&["server_slow", "generator_saturated"]);
        late(250_000).check_all(&["generator_saturated"]);
    }

    #[test]
    fn whatever_else_is_full_is_the_reason() {
        slow(90_000).is_silent(&RULE);
        slow(400_000).growing(Metric::TCPEXT_LISTEN_OVERFLOWS, 0, 5, 2).is_silent(&RULE);
        slow(400_000).with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 950).is_silent(&RULE);
        slow(400_000).loaded(|load, _| load.lag.record_n(250_000, 900)).is_silent(&RULE);
        slow(400_000)
            .growing(Metric::TCP_RETRANS_SEGS, 0, 100, 2)
            .growing(Metric::TCP_OUT_SEGS, 0, 5_000, 0)
            .is_silent(&RULE);
    }
}
