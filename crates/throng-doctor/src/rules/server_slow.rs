//! Answers took long although no visible resource was exhausted.

mod slow_answers;

use throng_measure::{
    Endpoint, ErrorKind, Evidence, Finding, Metric, ProcessMetric, Severity, Side,
};
use throng_report::render::micros;

use super::lost_answers::LostAnswers;
use super::retransmission::MUCH_ONE_IN;
use super::{
    Rule, RuleTrait, accept_queue_overflow, answers_incomplete, gap_per_user, server_lost,
    server_stalled, wrong_answers,
};
use crate::counted::counted;
use crate::cpu_waits::CpuWaits;
use crate::cpus::{CpuUse, FULL_SHARE, INTERVALS_MIN, mean, whole_percent};
use crate::fleet_machines::machines_that_waited;
use crate::history::Sample;
use crate::impact::{lag_explains, time_outs};
use crate::run_view::{Growth, Peak, RunView};
use slow_answers::SlowAnswers;

pub(super) const RULE: Rule =
    Rule::new("server_slow", |run| Some(gap_per_user::explain(run, find(run)?)))
        .with(&[RuleTrait::ServerFault, RuleTrait::OnlyDelays]);

/// Returns the remaining explanation when answers are late and no CPU, queue, packet loss or
/// generator explains it: the server waits for something of its own.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let late = LateAnswers::of(run)?;
    if is_explained(run, &late.waits(run)) {
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
        let is_stalled = server_stalled::RULE.find(run).is_some();
        let given_up = timeouts(run);
        // Answers that were lost are waited for at the end, too.
        let overdue = run.summary.overdue().filter(|_| LostAnswers::of(run).is_none());
        // A turn that begins late because the answer before it was lost is not answered late.
        let waited_for_lost = |slow: &SlowAnswers<'_>| {
            is_lost(run, ErrorKind::ExpectTimeout) && slow.sent_late(run).is_some()
        };
        let slow = SlowAnswers::slowest(run, is_stalled).filter(|slow| !waited_for_lost(slow));
        let is_late = slow.is_some() || !is_stalled && (!given_up.is_empty() || overdue.is_some());
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

/// The CPU time that the server used, and that was idle.
struct ServerUse(Option<CpuUse>);

impl ServerUse {
    fn of(run: &RunView<'_>) -> Self {
        Self(mean(&CpuUse::of(run, Endpoint::Server)))
    }

    /// Reports whether the server's CPUs and queues were read. Its queues alone do not distinguish
    /// a server that computes from one that waits.
    fn is_seen(&self, run: &RunView<'_>) -> bool {
        run.has_facts(Endpoint::Server) && self.0.is_some()
    }

    fn describe(&self, run: &RunView<'_>) -> String {
        match self.0.map(|used| (used, used.server)) {
            Some((used, Some(server))) => format!(
                "while the server used {:.2} of the {:.0} CPUs that it may use",
                server.taken,
                server.allowed.min(used.cpus)
            ),
            Some((used, None)) => {
                format!("while {} of the CPUs were idle", whole_percent(1.0 - used.taken_share()))
            }
            None if run.has_facts(Endpoint::Server) => "while its CPU use is unknown".to_owned(),
            None => "while its CPU use and queues are unknown".to_owned(),
        }
    }
}

/// What the server does that is slow.
struct Cause {
    /// The end of a sentence about how long it computed without a pause, or nothing.
    bursts: String,
    why: String,
    remedy: &'static str,
    confidence: f64,
    evidence: Option<Peak>,
}

impl Cause {
    fn of(run: &RunView<'_>, late: &LateAnswers<'_>, used: &ServerUse) -> Self {
        let burst_ms = burst_ms(run, late.slow.as_ref());
        let bursts = burst_ms.map_or_else(String::new, |ms| {
            format!(", and computed for up to {} at a time", micros(ms * 1000))
        });
        let in_kernel = waits_in_the_kernel(run);
        let (why, remedy) = match (burst_ms, &in_kernel) {
            (Some(_), _) => LONG_TASK,
            (None, Some((waits, _))) => (waits.as_str(), IN_KERNEL_REMEDY),
            (None, None) if used.is_seen(run) => INSIDE,
            (None, None) => UNSEEN,
        };
        let is_known = burst_ms.is_some() || in_kernel.is_some() || used.is_seen(run);
        Self {
            bursts,
            why: why.to_owned(),
            remedy,
            confidence: if is_known { CONFIDENCE } else { CONFIDENCE_UNSEEN },
            evidence: in_kernel.map(|(_, peak)| peak),
        }
    }
}

/// Returns a sentence about a server that was often found waiting in the kernel, and its evidence.
fn waits_in_the_kernel(run: &RunView<'_>) -> Option<(String, Peak)> {
    let gauge = ProcessMetric::UNINTERRUPTIBLE.server;
    let looks = run.samples().iter().filter_map(|now| run.value(Endpoint::Server, now, gauge));
    let looks: Vec<_> = looks.collect();
    let waiting = looks.iter().filter(|waiting| **waiting > 0).count();
    if waiting < INTERVALS_MIN || waiting * IN_KERNEL_ONE_IN < looks.len() {
        return None;
    }
    let sentence = format!(
        "It waited in the kernel for a disk or a network file system (state D) in {waiting} of {} \
         looks.",
        looks.len()
    );
    Some((sentence, run.peak(Endpoint::Server, gauge)?))
}

/// Says that all machines of a fleet saw the slow answers, if they did.
fn seen_by(run: &RunView<'_>) -> String {
    match machines_that_waited(run, SLOW_US) {
        0 | 1 => String::new(),
        all if all == run.header.machines.len() => format!(" All {all} machines saw it."),
        some => format!(" {some} of {} machines saw it.", run.header.machines.len()),
    }
}

/// Returns the longest time for which the server computed without a pause, if that is a large part
/// of the slow answers' time.
fn burst_ms(run: &RunView<'_>, slow: Option<&SlowAnswers>) -> Option<u64> {
    let peak = run.peak(Endpoint::Server, ProcessMetric::BUSY_MS_MOST.server)?;
    let ms = u64::try_from(peak.value).ok()?;
    (ms >= BURST_MIN_MS && ms * 1000 * BURST_PARTS >= slow?.worst_us).then_some(ms)
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

/// Reports whether something else is known that makes these answers late: their intervals, and how
/// long they took there.
pub(super) fn is_explained(run: &RunView<'_>, late: &[(&Sample, u64)]) -> bool {
    lacks_cpu(run, late) || is_explained_without_cpu(run, late)
}

/// Reports whether the server, or the generator, had too little CPU time for these answers.
pub(super) fn lacks_cpu(run: &RunView<'_>, late: &[(&Sample, u64)]) -> bool {
    let uses = CpuUse::of(run, Endpoint::Server);
    let full = uses.iter().filter(|used| {
        let server = used.server.unwrap_or_default();
        // A machine is full for a process that waits for it: other programs may take only what is
        // idle.
        (server.most_delayed.is_none() && used.taken_share() > FULL_SHARE)
            || server.busiest.unwrap_or(0.0) > BUSY_MIN
            || (server.allowed > 0.0 && server.taken > server.allowed * FULL_SHARE)
    });
    full.count() >= INTERVALS_MIN || CpuWaits::of(run).explain_most(late)
}

/// Reports whether anything else than a lack of CPU time makes these answers late.
pub(super) fn is_explained_without_cpu(run: &RunView<'_>, late: &[(&Sample, u64)]) -> bool {
    let queues = [Metric::TCPEXT_TCP_REQ_Q_FULL_DROP, Metric::TCPEXT_TCP_ABORT_ON_MEMORY];
    let lost =
        run.growth(Endpoint::Client, Metric::TCP_RETRANS_SEGS).map_or(0, |growth| growth.by());
    let sent = run.growth(Endpoint::Client, Metric::TCP_OUT_SEGS).map_or(0, |growth| growth.by());
    // A server that ended is not slow, nor is one that leaves some without an answer.
    // Retransmissions explain late answers by themselves.
    server_lost::ended(run).is_some()
        || super::serves_only_some::explains_waits(run)
        || super::retransmits::RULE.find(run).is_some()
        || lag_explains(run, late)
        || accept_queue_overflow::overflows(run).is_some()
        || queues.iter().any(|counter| run.growth(Endpoint::Server, *counter).is_some())
        || lost.saturating_mul(MUCH_ONE_IN) > sent.max(MUCH_ONE_IN)
}

/// What a server does that is slow, and what to do about it.
type Why = (&'static str, &'static str);

const LONG_TASK: Why = (
    "A long task delays all users of its thread.",
    "profile what it computes at a time (perf top, or the profiler of its language), and move it \
     to another thread or split it into pieces",
);
const INSIDE: Why = (
    "No queue overflowed and hardly any segment was sent again, so the server waits inside: for a \
     lock, a database or a timer, or requests wait for one another.",
    "find where the server waits (its own trace, strace -c -f, perf trace), not what it computes",
);
const UNSEEN: Why = (
    "Hardly any segment was sent again, so the time passes on its machine: it waits for CPUs, a \
     queue, or something else.",
    "find which with throng doctor --watch --listen ADDR:PORT on its machine and throng run \
     --server-facts HOST:PORT here",
);
const IN_KERNEL_REMEDY: &str = "find the file that it writes or reads for each answer (strace -f \
                                -T -e trace=file,fsync,fdatasync, iostat -x 1), and do that less \
                                often, together for several answers, or in another thread";

/// The part of the looks, one in so many, in which a server waits in the kernel that is slow by it.
const IN_KERNEL_ONE_IN: usize = 3;

/// The confidence when the server's CPUs and queues were read, and when only its answers are known.
const CONFIDENCE: f64 = 0.7;
const CONFIDENCE_UNSEEN: f64 = 0.4;

/// The shortest time of computing that delays users, and the number of times that it must fit at
/// most into the slowest answers.
const BURST_MIN_MS: u64 = 100;
const BURST_PARTS: u64 = 2;

/// The latency above which answers are slow: what a person notices, as in `impact`.
const SLOW_US: u64 = 100_000;

/// The fewest time-outs that count: fewer, or less than one wait in a thousand, are no pattern.
const TIMEOUTS_MIN: u64 = 3;
const TIMEOUTS_ONE_IN: u64 = 1_000;

/// The load of a thread above which the server has another reason to be slow.
const BUSY_MIN: f64 = 0.85;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::Operation;

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
