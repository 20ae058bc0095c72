//! One line of the run file: the measurements of one second.
//!
//! Counters and tallies are totals since the start, as of the end of the interval, so a lost line
//! costs their resolution and nothing else. Histograms cover the interval alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::better_clock::better_clock;
use crate::{
    AddressConnects, AnswerGap, ArrivalLatencies, ClassCounters, CoreCounters, CueWaits,
    EarlyClose, ErrorTimes, FollowedAnswers, Histogram, KernelCounters, LatencyStats, LimitUse,
    LoadCounters, MachineInterval, MachineUse, Operation, OperationInterval, OperationTimes,
    Outage, PerOperation, ProbeCounters, ProbeReport, ProcessUse, ProgramUse, RunEvent,
    ServerSnapshot, StepInterval, Tally,
};

/// The phase of a run whose schedule is over or was ended: no user begins anything, connected users
/// leave, and no latency is recorded. Its intervals count for no rate, no cost and no lag.
pub const LEAVING: &str = "everybody leaves";

/// The measurements of one interval, usually one second.
///
/// A run begins with an interval of no length (`at_ms` and `span_ms` 0): the counters of processes
/// and of the machine before the load began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The interval's end, in milliseconds since the run began.
    pub at_ms: u64,
    /// The interval's length, in milliseconds.
    pub span_ms: u64,
    /// The generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadInterval>,
    /// The server, if it is a throng server with a reachable control socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSnapshot>,
    /// The generator's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// Counters and gauges of the generator's kernel by name (`TcpExt.ListenOverflows`,
    /// `listener.syn_recv`, …).
    #[serde(default, skip_serializing_if = "KernelCounters::is_empty")]
    pub kernel: KernelCounters,
    /// The kernel's counters on the server's side, if the server is on another machine or in
    /// another network namespace; see [`server_side`].
    #[serde(default, skip_serializing_if = "KernelCounters::is_empty")]
    pub server_kernel: KernelCounters,
    /// The server's machine, if it is another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_machine: Option<MachineUse>,
    /// Programs on the generator's machine, other than generator and server, that used the most CPU
    /// time. Recorded only while these two do not explain how busy the machine is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramUse>,
    /// Programs on the server's machine that used the most CPU time, if it is another machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_programs: Vec<ProgramUse>,
    /// Sources that could not be read, with reasons. Absent if the list is the same as before;
    /// empty if every source can be read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Vec<String>>,
    /// Events of the interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RunEvent>,
}

/// Returns where the intervals of a run hold the server's kernel: in `server_kernel` if any
/// interval has one, else in `kernel`. If the server has its own kernel, an interval without its
/// counters yields nothing, and never the generator's counters instead.
pub fn server_side(intervals: &[Interval]) -> impl Fn(&Interval) -> &KernelCounters {
    let is_apart = intervals.iter().any(|interval| !interval.server_kernel.is_empty());
    move |interval| if is_apart { &interval.server_kernel } else { &interval.kernel }
}

/// The generator's share of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadInterval {
    /// The phase of the load at the end of the interval, as in the scenario: `ramp to 100k`; at
    /// last [`LEAVING`].
    pub phase: String,
    /// Whether the load was paused with `throng ctl pause` at the end of the interval: no user
    /// begins.
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Cores that run.
    pub cores: u64,
    /// Cores that did not answer in time: their counters are as of their last answer, and what they
    /// do meanwhile appears in a later interval.
    pub cores_silent: u64,
    /// The time in which the counters grew, in microseconds: from one answer of a core to the next,
    /// as a mean over all cores, each weighed by its work. 0 if unknown.
    pub grown_us: u64,
    /// Counters of the users.
    pub counters: LoadCounters,
    /// Counters of the event loops.
    pub core: CoreCounters,
    /// Errors of established connections by kind; failed connects are in `connect_failed` only.
    #[serde(skip_serializing_if = "no_tally")]
    pub errors: Tally,
    /// Failed connects by errno, or `timeout`.
    #[serde(skip_serializing_if = "no_tally")]
    pub connect_failed: Tally,
    /// Answers to HTTP requests by their status, expected or not.
    #[serde(skip_serializing_if = "no_tally")]
    pub http_statuses: Tally,
    /// The latencies of each operation, and the waits without an end.
    #[serde(flatten)]
    pub times: OperationTimes,
    /// Counters over all probes.
    #[serde(skip_serializing_if = "no_probes")]
    pub probe: ProbeCounters,
    /// Probes that changed in the interval, each with its state so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeReport>,
    /// The latencies by the kernel's clock: until answers arrived, and not until the generator read
    /// them.
    #[serde(skip_serializing_if = "ArrivalLatencies::is_empty")]
    pub arrival: ArrivalLatencies,
    /// Steps with a name and transactions, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepInterval>,
    /// Latencies whose values are not known, by the names that thresholds use: `connect`,
    /// `step.login`. Only imported runs have them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_stats: BTreeMap<String, LatencyStats>,
    /// Lag of the generator's own steps: the delay of actions that depend on no answer.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub lag: Histogram,
    /// The longest time in which requests waited and none of them was answered, among those whose
    /// end the generator saw in the interval; absent if it is short. Messages that no request asked
    /// for are no answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_gap: Option<AnswerGap>,
    /// When the target went away and came back; absent if it did neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// A sample of the connections that the target ended too early in the interval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub early_closes: Vec<EarlyClose>,
    /// Answers on the connections that the generator follows.
    #[serde(skip_serializing_if = "FollowedAnswers::is_empty")]
    pub followed: FollowedAnswers,
    /// Connects to each address of the target, if its name has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressConnects>,
    /// The scenario's own limits, if it has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitUse>,
    /// The scenario's barriers and signals, if it has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cues: Vec<CueWaits>,
    /// The first and the last error of each kind in the interval, failed connects included.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub error_times: BTreeMap<String, ErrorTimes>,
    /// The generator's process.
    pub process: ProcessUse,
    /// CPU time of each core's thread since it began, in microseconds; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_us_per_core: Vec<u64>,
    /// The counters of each class of users, if there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, ClassCounters>,
    /// The operations of the classes of users that a threshold is about.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub class_operations: BTreeMap<String, PerOperation<OperationInterval>>,
    /// What each machine has done, if several make the run; everything else is their sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineInterval>,
}

impl LoadInterval {
    /// Returns the latencies of an operation by the best available clock: until the answers reached
    /// this machine if the kernel timed all of them, else until the generator read them.
    pub fn latency(&self, operation: Operation) -> &Histogram {
        better_clock(&self.times[operation], &self.arrival[operation])
    }

    /// Reports whether users have begun an operation by now.
    pub fn has_begun(&self, operation: Operation) -> bool {
        let counters = &self.counters;
        match operation {
            Operation::Message => counters.messages_sent + counters.messages_expected > 0,
            Operation::Broadcast => self.probe.intended > 0,
            other => other.counts(counters).is_some_and(|counts| counts.started > 0),
        }
    }

    /// Returns the number of messages, joins, pushes, requests and probes that have a latency.
    pub fn answers(&self) -> u64 {
        Operation::answered().map(|operation| self.times[operation].count()).sum()
    }

    /// Returns the latencies of each operation by both clocks: until the generator read the answer,
    /// and until it arrived.
    fn both_clocks(&self) -> impl Iterator<Item = (&Histogram, &Histogram)> {
        self.arrival.latencies.iter().map(|(operation, arrived)| (&self.times[operation], arrived))
    }

    /// Reports whether each answer has a latency until it arrived.
    pub(crate) fn has_all_arrivals(&self) -> bool {
        self.both_clocks().all(|(seen, arrived)| seen.count() == arrived.count())
    }

    /// Reports whether each answer has one latency until it was read and one until it arrived, and
    /// no percentile of the latter is larger. Where no arrival is recorded at all, there is nothing
    /// to compare.
    pub fn clocks_agree(&self) -> bool {
        let steps = self.steps.iter().map(|step| (&step.latency, &step.arrival));
        let classes = self.class_operations.values().flat_map(PerOperation::iter);
        self.both_clocks()
            .chain(steps)
            .chain(classes.map(|(_, of)| (&of.latency, &of.arrival)))
            .all(|(seen, arrived)| arrived.is_empty() || arrived.is_at_most(seen))
    }

    /// Drops the latencies until the arrival of each kind that do not cover each answer, or that
    /// exceed those until the answer was read. Returns true if there was such a kind.
    pub(crate) fn drop_samples(&mut self) -> bool {
        if self.clocks_agree() {
            return false;
        }
        let by_kernel = self.arrival.by_kernel();
        for (operation, arrived) in self.arrival.latencies.iter_mut() {
            if !arrived.is_at_most(&self.times[operation]) {
                *arrived = Histogram::new();
            }
        }
        for step in &mut self.steps {
            if !step.arrival.is_at_most(&step.latency) {
                step.arrival = Histogram::new();
            }
        }
        for (_, of) in self.class_operations.values_mut().flat_map(PerOperation::iter_mut) {
            if !of.arrival.is_at_most(&of.latency) {
                of.arrival = Histogram::new();
            }
        }
        self.arrival.by_own_clock = self.arrival.answers().saturating_sub(by_kernel);
        true
    }

    /// Reports whether all users were leaving when the interval ended.
    pub fn is_leaving(&self) -> bool {
        self.phase == LEAVING
    }

    /// Converts its times from another clock to the run's clock; the run began at `began_ms` of the
    /// other clock.
    pub fn rebase(&mut self, began_ms: u64) {
        // The first users may be answered before the recording begins.
        self.answer_gap = self.answer_gap.filter(|gap| gap.to_ms > began_ms).map(|gap| AnswerGap {
            from_ms: gap.from_ms.saturating_sub(began_ms),
            to_ms: gap.to_ms - began_ms,
        });
        for times in self.error_times.values_mut() {
            times.first_ms = times.first_ms.saturating_sub(began_ms);
            times.last_ms = times.last_ms.saturating_sub(began_ms);
        }
        if let Some(outage) = &mut self.outage {
            let moments = [
                &mut outage.lost_ms,
                &mut outage.refused_ms,
                &mut outage.refused_last_ms,
                &mut outage.back_ms,
            ];
            for moment in moments.into_iter().flatten() {
                *moment = moment.saturating_sub(began_ms);
            }
        }
    }

    /// Returns the totals since the start, without the values that cover this interval alone.
    pub fn without_measured(&self) -> Self {
        Self {
            phase: self.phase.clone(),
            paused: self.paused,
            cores: self.cores,
            cores_silent: self.cores_silent,
            counters: self.counters.clone(),
            core: self.core.clone(),
            errors: self.errors.clone(),
            connect_failed: self.connect_failed.clone(),
            http_statuses: self.http_statuses.clone(),
            probe: self.probe.clone(),
            followed: self.followed,
            addresses: self.addresses.clone(),
            limits: self.limits.clone(),
            cues: self.cues.clone(),
            process: self.process.clone(),
            cpu_us_per_core: self.cpu_us_per_core.clone(),
            classes: self.classes.clone(),
            machines: self.machines.clone(),
            class_operations: self
                .class_operations
                .iter()
                .map(|(class, of)| (class.clone(), of.without_measured()))
                .collect(),
            steps: self.steps.iter().map(StepInterval::without_measured).collect(),
            ..Self::default()
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn no_probes(counters: &ProbeCounters) -> bool {
    *counters == ProbeCounters::default()
}

fn no_tally(tally: &Tally) -> bool {
    tally.0.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;

    #[test]
    fn an_interval_comes_back_from_json() {
        let mut load = LoadInterval { phase: "hold".into(), cores: 2, ..Default::default() };
        load.times[Operation::Connect].record_us(321);
        load.connect_failed.add("ECONNREFUSED", 2);
        let interval = Interval {
            at_ms: 1000,
            span_ms: 1000,
            load: Some(load),
            server: Some(ServerSnapshot { listen: "127.0.0.1:5555".into(), ..Default::default() }),
            kernel: [(Metric::LISTENER_SYN_RECV, 7)].into(),
            ..Default::default()
        };
        let json = serde_json::to_string(&interval).unwrap();
        assert_eq!(serde_json::from_str::<Interval>(&json).unwrap(), interval);
        assert!(!json.contains("\"message\":"), "an empty histogram is left out: {json}");
    }

    #[test]
    fn a_server_without_counters_for_an_interval_is_not_the_generator() {
        let of = |n: i64| KernelCounters::from([(Metric::LISTENER_COUNT, n)]);
        let shared = Interval { kernel: of(500), ..Interval::default() };
        let apart = Interval { server_kernel: of(7), ..shared.clone() };
        let values = |intervals: &[Interval]| -> Vec<Option<i64>> {
            let kernel = server_side(intervals);
            intervals.iter().map(|interval| kernel(interval).get(Metric::LISTENER_COUNT)).collect()
        };
        assert_eq!(values(&[shared.clone(), shared.clone()]), [Some(500), Some(500)]);
        assert_eq!(values(&[shared, apart]), [None, Some(7)]);
    }

    #[test]
    fn moments_are_moved_to_the_clock_of_the_run() {
        let mut load = LoadInterval {
            answer_gap: Some(AnswerGap { from_ms: 70_500, to_ms: 71_000 }),
            outage: Some(Outage { lost_ms: Some(70_200), ..Outage::default() }),
            ..LoadInterval::default()
        };
        load.rebase(70_000);
        assert_eq!(load.answer_gap, Some(AnswerGap { from_ms: 500, to_ms: 1_000 }));
        assert_eq!(load.outage, Some(Outage { lost_ms: Some(200), ..Outage::default() }));
        let mut early = |from_ms, to_ms| {
            load.answer_gap = Some(AnswerGap { from_ms, to_ms });
            load.rebase(70_000);
            load.answer_gap
        };
        assert_eq!(early(69_900, 70_400), Some(AnswerGap { from_ms: 0, to_ms: 400 }));
        assert_eq!(early(69_700, 69_900), None, "it ended before the run began");
    }

    #[test]
    fn fields_of_a_newer_version_are_passed_over() {
        let json = r#"{"at_ms":1,"span_ms":1,"weather":"fine","load":{"phase":"p","mood":1}}"#;
        assert_eq!(serde_json::from_str::<Interval>(json).unwrap().load.unwrap().phase, "p");
    }
}
