//! Counters and histograms of one core: written by the core alone, handed over as a whole.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Instant;
use throng_measure::{
    ArrivalLatencies, ClassCounters, CoreCounters, EarlyClose, ErrorExchange, FollowedAnswers,
    Histogram, LoadCounters, Merge, Operation, OperationCounts, OperationInterval, OperationTimes,
    PerOperation, StepInterval,
};

use super::error_counts::ErrorCounts;
use super::error_log::ErrorLog;
use super::incidents::Incidents;
use super::probe_tally::ProbeTally;
use super::status_counts::StatusCounts;
use super::tallies::{AddressTally, CueTally, LimitTally, add_count, add_counts};
use crate::program::{ProgramClass, Protocol, StepIndex};
use crate::user::{AnswerTiming, ConnectFailure};

/// One core's counters since the start, and its histograms since the previous hand-over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreStats {
    /// The core's number.
    pub core_id: usize,
    /// Number of the load phase.
    pub phase: usize,
    /// True once the schedule is over and all users have left.
    pub finished: bool,
    /// Moment of the hand-over, which the counters are valid for.
    pub taken_at: Instant,
    /// Counters of the users' actions.
    pub counters: LoadCounters,
    /// Counters of the event loop.
    pub core: CoreCounters,
    /// Counters by class of users.
    pub classes: Vec<ClassCounters>,
    /// Operations of the classes that a threshold is about, by their place among them.
    pub judged_classes: Vec<PerOperation<OperationInterval>>,
    /// Errors of established connections, by their kind.
    pub errors: ErrorCounts,
    /// Connections that the server closed unexpectedly by a close frame, by its code.
    pub close_codes: Vec<(Option<u16>, u64)>,
    /// Answers to HTTP requests by their status.
    pub statuses: StatusCounts,
    /// Failed connects by reason.
    pub connect_failures: Vec<(ConnectFailure, u64)>,
    /// Latencies of each operation, and waits of users without an answer. Probes have tallies of
    /// their own.
    #[serde(flatten)]
    pub times: OperationTimes,
    /// The same latencies, with the end of each by the kernel's clock.
    pub arrival: ArrivalLatencies,
    /// Counts and latencies of probes since the previous hand-over.
    pub probes: Vec<ProbeTally>,
    /// Steps with a name and transactions, by their index; without the names.
    pub steps: Vec<StepInterval>,
    /// Lag: lateness of actions that only depended on the generator.
    pub lag: Histogram,
    /// Times without answers, and times in which the target was away.
    pub incidents: Incidents,
    /// The first error of each kind.
    pub samples: Vec<ErrorExchange>,
    /// The moments of errors since the previous hand-over.
    pub error_log: ErrorLog,
    /// A sample of the connections that the server ended too early, since the previous hand-over.
    pub early_closes: Vec<EarlyClose>,
    /// Answers on the connections that the core follows.
    pub followed: FollowedAnswers,
    /// Connects to each address of the target; empty if it has only one.
    pub addresses: Vec<AddressTally>,
    /// The scenario's own limits, in the order of the program's; without the names.
    pub limits: Vec<LimitTally>,
    /// The scenario's barriers and signals, in the order of the program's; without the names.
    pub cues: Vec<CueTally>,
    /// Gauge: users that rest after an error.
    pub(crate) resting: u64,
}

/// The place of a class that a threshold is about, and what all users had done before an input of
/// one of its users.
pub(super) type BeforeInput = (usize, PerOperation<OperationCounts>);

impl CoreStats {
    /// Creates empty stats.
    pub fn new(core_id: usize, classes: usize) -> Self {
        Self { core_id, classes: vec![ClassCounters::default(); classes], ..Self::default() }
    }

    /// Returns the counters alone, without what was measured since the previous hand-over.
    pub fn totals(&self) -> Self {
        let mut totals = Self::default();
        totals.clone_counters_from(self);
        totals
    }

    /// Returns the sum of the counters of several cores, without what was measured. It is as late
    /// as the last of them.
    pub fn sum<'a>(cores: impl Iterator<Item = &'a Self>) -> Self {
        cores.map(Self::totals).reduce(Self::plus).unwrap_or_default()
    }

    fn plus(mut self, other: Self) -> Self {
        self.phase = self.phase.max(other.phase);
        self.finished &= other.finished;
        self.taken_at = self.taken_at.max(other.taken_at);
        self.resting += other.resting;
        self.counters.merge(&other.counters);
        self.core.merge(&other.core);
        add_each(&mut self.classes, &other.classes, |sum, one| sum.merge(one));
        add_each(&mut self.judged_classes, &other.judged_classes, PerOperation::add_counts);
        self.errors.iter_mut().zip(*other.errors).for_each(|(sum, one)| *sum += one);
        add_counts(&mut self.close_codes, &other.close_codes);
        add_counts(&mut self.connect_failures, &other.connect_failures);
        self.statuses.add(&other.statuses);
        add_each(&mut self.steps, &other.steps, |sum, one| {
            sum.ok += one.ok;
            sum.errors += one.errors;
            sum.waiting += one.waiting;
        });
        self.followed.add(&other.followed);
        add_each(&mut self.addresses, &other.addresses, AddressTally::add);
        add_each(&mut self.limits, &other.limits, LimitTally::add);
        add_each(&mut self.cues, &other.cues, CueTally::add);
        self
    }

    /// Moves all moments from the clock on which the run began at `from` to the clock on which it
    /// began at `to`. A moment later than `elapsed` after the beginning is that moment.
    pub fn move_moments(&mut self, from: Instant, to: Instant, elapsed: Duration) {
        let moved = |at: Instant| match at {
            Instant::ZERO => at,
            at => to + at.since(from).min(elapsed),
        };
        self.incidents.move_moments(moved);
        self.error_log.move_moments(moved);
        self.taken_at = moved(self.taken_at);
    }

    /// Copies everything but the histograms from `other`.
    pub fn clone_counters_from(&mut self, other: &Self) {
        self.core_id = other.core_id;
        self.phase = other.phase;
        self.finished = other.finished;
        self.taken_at = other.taken_at;
        self.resting = other.resting;
        self.errors = other.errors;
        self.counters.clone_from(&other.counters);
        self.core.clone_from(&other.core);
        self.classes.clone_from(&other.classes);
        self.judged_classes.resize_with(other.judged_classes.len(), PerOperation::default);
        for (class, other) in self.judged_classes.iter_mut().zip(&other.judged_classes) {
            class.set_counts(other);
        }
        self.connect_failures.clone_from(&other.connect_failures);
        self.close_codes.clone_from(&other.close_codes);
        self.statuses.copy_from(&other.statuses);
        self.steps.resize_with(other.steps.len(), StepInterval::default);
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            (step.ok, step.errors, step.waiting) = (other.ok, other.errors, other.waiting);
        }
        self.followed = other.followed;
        self.addresses.clone_from(&other.addresses);
        self.limits.clone_from(&other.limits);
        self.cues.clone_from(&other.cues);
    }

    /// Clears the measurements and frees their memory. Counters stay.
    pub(crate) fn clear_measured(&mut self) {
        self.times = OperationTimes::default();
        self.lag = Histogram::new();
        self.arrival = ArrivalLatencies::default();
        self.steps.iter_mut().for_each(|step| *step = step.without_measured());
        self.judged_classes.iter_mut().for_each(|class| *class = class.without_measured());
        self.probes.clear();
        self.samples.clear();
        self.early_closes.clear();
        self.error_log.clear();
        self.incidents = Incidents::default();
    }

    /// Reuses these stats as the successor of `other`: counters continue, histograms start empty.
    pub(super) fn continue_from(mut self: Box<Self>, other: &Self) -> Box<Self> {
        self.clear_measured();
        self.clone_counters_from(other);
        self.incidents = other.incidents.for_next_interval();
        self
    }

    /// Returns the tally of probe `number` since the previous hand-over.
    pub(super) fn probe(&mut self, number: u32) -> &mut ProbeTally {
        // It is nearly always the latest.
        let found = self.probes.iter().rposition(|tally| tally.number == number);
        let index = found.unwrap_or_else(|| {
            self.probes.push(ProbeTally { number, ..ProbeTally::default() });
            self.probes.len() - 1
        });
        &mut self.probes[index]
    }

    /// Returns the place of a class that a threshold is about, and what users of all classes have
    /// done by now.
    pub(super) fn before(&self, class: &ProgramClass) -> Option<BeforeInput> {
        class.judged.map(|place| (place, self.operations()))
    }

    /// Counts for a class that a threshold is about what has happened since `before`.
    pub(super) fn count_since(&mut self, before: Option<BeforeInput>) {
        let Some((place, before)) = before else { return };
        let now = self.operations();
        for (operation, of_class) in self.judged_classes[place].iter_mut() {
            let grown = now[operation].since(before[operation]);
            of_class.counts = of_class.counts.plus(grown);
        }
    }

    fn operations(&self) -> PerOperation<OperationCounts> {
        PerOperation::of(|operation| operation.counts(&self.counters).unwrap_or_default())
    }

    /// Records the latency of an operation by both clocks.
    pub(super) fn record(&mut self, operation: Operation, from: Instant, timing: AnswerTiming) {
        timing.record(from, &mut self.times[operation], &mut self.arrival[operation]);
    }

    /// Counts a successful connect and records its latency.
    pub(super) fn count_connect(&mut self, (from, timing): (Instant, AnswerTiming), class: u16) {
        self.record(Operation::Connect, from, timing);
        self.counters.connects_ok += 1;
        self.counters.connected += 1;
        self.classes[usize::from(class)].connects_ok += 1;
    }

    /// Counts an answer. Records its latency if that means something.
    pub(super) fn count_answer(&mut self, measured: Option<(Instant, AnswerTiming)>, class: u16) {
        if let Some((from, timing)) = measured {
            self.record(Operation::Message, from, timing);
            self.arrival.by_own_clock += timing.by_own_clock();
        }
        self.counters.messages_answered += 1;
        self.classes[usize::from(class)].messages_answered += 1;
    }

    /// Counts an operation that ended as expected and records its latency.
    pub(super) fn count_done(
        &mut self,
        operation: Operation,
        (from, timing): (Instant, AnswerTiming),
        class: u16,
    ) {
        self.record(operation, from, timing);
        let Some(ok) = operation.ok_mut(&mut self.counters) else { return };
        *ok += 1;
        if operation.is_part() {
            return;
        }
        self.arrival.by_own_clock += timing.by_own_clock();
        self.counters.joined += u64::from(operation == Operation::Join);
        let of_class = &mut self.classes[usize::from(class)];
        of_class.messages_answered += u64::from(operation == Operation::Message);
    }

    /// Counts a connection that a request has opened. Where it is a connect of the scenario, also
    /// records its latency.
    pub(super) fn count_request_connect(
        &mut self,
        (from, timing): (Instant, AnswerTiming),
        class: u16,
        protocol: Protocol,
    ) {
        if protocol.opens_itself {
            self.record(Operation::Connect, from, timing);
        }
        self.counters.http_connects += 1;
        self.counters.connects_ok += 1;
        self.counters.connected += 1;
        self.classes[usize::from(class)].connects_ok += 1;
    }

    /// Counts an answer to an HTTP request by its status.
    pub(super) fn count_status(&mut self, status: u16) {
        self.statuses.count(status);
        let counters = &mut self.counters;
        *match status {
            ..300 => &mut counters.http_2xx,
            300..400 => &mut counters.http_3xx,
            400..500 => &mut counters.http_4xx,
            500.. => &mut counters.http_5xx,
        } += 1;
    }

    /// Returns the tally of a barrier or signal.
    pub(super) fn cue(&mut self, cue: u16) -> &mut CueTally {
        &mut self.cues[usize::from(cue)]
    }

    /// Returns the steps of a name.
    pub(super) fn step(&mut self, step: StepIndex) -> &mut StepInterval {
        &mut self.steps[step.get()]
    }

    /// Counts a step with a name that is done. Records its latency if that means something.
    pub(super) fn count_step(
        &mut self,
        step: StepIndex,
        from: Option<Instant>,
        timing: AnswerTiming,
    ) {
        let step = self.step(step);
        step.ok += 1;
        if let Some(from) = from {
            timing.record(from, &mut step.latency, &mut step.arrival);
        }
    }

    pub(super) fn count_connect_failure(&mut self, why: ConnectFailure) {
        self.counters.connects_failed += 1;
        add_count(&mut self.connect_failures, why, 1);
    }

    /// Counts a connection that the server closed with `code`.
    pub(super) fn count_close(&mut self, code: Option<u16>) {
        add_count(&mut self.close_codes, code, 1);
    }
}

/// Adds each part to the sum at its place.
fn add_each<T: Default>(sums: &mut Vec<T>, parts: &[T], add: impl Fn(&mut T, &T)) {
    sums.resize_with(sums.len().max(parts.len()), T::default);
    sums.iter_mut().zip(parts).for_each(|(sum, part)| add(sum, part));
}

#[cfg(test)]
mod tests {
    use throng_driver::Errno;

    use super::*;

    #[test]
    fn counters_go_on_and_histograms_begin_anew() {
        let mut stats = CoreStats::new(3, 1);
        let seen_at = Instant::from_nanos(10_000);
        let timing = AnswerTiming::own(seen_at);
        stats.count_connect((Instant::ZERO, timing), 0);
        stats.count_connect_failure(ConnectFailure::Timeout);
        stats.count_connect_failure(ConnectFailure::Timeout);
        stats.count_connect_failure(ConnectFailure::Errno(Errno::CONN_REFUSED));
        stats.count_close(Some(1011));
        stats.probe(3).counters.sent += 1;
        stats.steps = vec![StepInterval { errors: 4, ..StepInterval::default() }];
        stats.steps[0].unanswered.record_us(9);
        let fresh = Box::new(CoreStats::new(0, 0)).continue_from(&stats);
        assert_eq!(
            (fresh.core_id, fresh.counters.connects_ok, fresh.classes[0].connects_ok),
            (3, 1, 1)
        );
        let shown: Vec<_> =
            fresh.connect_failures.iter().map(|(why, count)| format!("{why} {count}")).collect();
        assert_eq!(shown, ["timeout 2", "ECONNREFUSED 1"]);
        assert_eq!(
            (fresh.close_codes.as_slice(), fresh.errors_total()),
            (&[(Some(1011), 1)][..], 1)
        );
        assert!(fresh.times[Operation::Connect].is_empty() && fresh.probes.is_empty());
        assert_eq!(fresh.steps, [StepInterval { errors: 4, ..StepInterval::default() }]);
    }

    #[test]
    fn the_sum_of_cores_counts_each_of_them_and_no_latency() {
        let mut one = CoreStats::new(0, 2);
        one.counters.connects_ok = 2;
        one.counters.users_active = 1;
        one.core.turns = 5;
        one.classes[1].connects_ok = 2;
        one.judged_classes = vec![PerOperation::default()];
        one.counters.http_started = 3;
        one.count_since(Some((0, PerOperation::default())));
        one.judged_classes[0][Operation::Http].latency.record_us(1);
        one.errors[3] = 1;
        one.count_close(None);
        one.count_connect_failure(ConnectFailure::Timeout);
        one.count_status(404);
        one.steps = vec![StepInterval { ok: 4, ..StepInterval::default() }];
        one.followed.repeats = 1;
        one.addresses = vec![AddressTally { ok: 2, failed: vec![(ConnectFailure::Timeout, 1)] }];
        one.limits = vec![LimitTally { steps: 3, held: 2, held_us: 1 }];
        one.cues = vec![CueTally { waits: 7, wait_us_most: 9, ..CueTally::default() }];
        one.times[Operation::Connect].record_us(1);
        let other = CoreStats { core_id: 1, finished: true, phase: 2, ..one.totals() };
        let sum = CoreStats::sum([&one, &other].into_iter());
        assert_eq!((sum.phase, sum.finished, sum.core_id), (2, false, 0));
        assert_eq!((sum.counters.connects_ok, sum.counters.users_active), (4, 2));
        assert_eq!((sum.core.turns, sum.classes[1].connects_ok, sum.errors[3]), (10, 4, 2));
        let judged = &sum.judged_classes[0][Operation::Http];
        assert_eq!((judged.counts.started, judged.latency.count()), (6, 0));
        assert_eq!(sum.close_codes, [(None, 2)]);
        assert_eq!(sum.connect_failures, [(ConnectFailure::Timeout, 2)]);
        assert_eq!(sum.statuses.iter().map(|it| it.answers).collect::<Vec<_>>(), [2]);
        assert_eq!((sum.steps[0].ok, sum.followed.repeats), (8, 2));
        assert_eq!(sum.addresses[0].ok, 4);
        assert_eq!(sum.addresses[0].failed, [(ConnectFailure::Timeout, 2)]);
        assert_eq!(sum.limits, [LimitTally { steps: 6, held: 4, held_us: 2 }]);
        assert_eq!((sum.cues[0].waits, sum.cues[0].wait_us_most), (14, 9));
        assert!(sum.times[Operation::Connect].is_empty());
        assert_eq!(CoreStats::sum(std::iter::empty()).counters, LoadCounters::default());
    }
}
