//! One line of the run file: what everybody said about one second.
//!
//! Counters and tallies are as of the end of the interval and count from the start, so a lost line
//! costs their resolution and nothing else. Histograms are of the interval alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AnswerGap, ArrivalLatencies, ClassCounters, CoreCounters, Histogram, Latencies, LoadCounters,
    MachineUse, Outage, ProbeCounters, ProbeReport, ProcessUse, ProgramUse, RunEvent,
    ServerSnapshot, Tally, UnansweredWaits,
};

/// The phase of a run whose schedule is over, or was ended: nobody begins anything, whoever is connected leaves,
/// and no latency is recorded. Its intervals count for no rate, no cost and no lateness.
pub const LEAVING: &str = "everybody leaves";

/// What was measured in one interval, usually one second.
///
/// A run begins with an interval of no length (`at_ms` and `span_ms` 0): the counters of processes
/// and of the machine before anything happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The interval's end, in milliseconds since the run began.
    pub at_ms: u64,
    /// Its length in milliseconds.
    pub span_ms: u64,
    /// The generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadInterval>,
    /// The server, when it is a throng server that could be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSnapshot>,
    /// The generator's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// Counters and gauges of the generator's kernel by name (`TcpExt.ListenOverflows`, `listener.syn_recv`, …).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel: BTreeMap<String, i64>,
    /// The server's, where that is another machine or another network namespace; see [`server_side`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_kernel: BTreeMap<String, i64>,
    /// The server's machine, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_machine: Option<MachineUse>,
    /// Programs on the generator's machine that are neither end and took the most CPU time; looked
    /// for only while the two ends do not explain how busy the machine is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramUse>,
    /// The same on the server's machine, where that is another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_programs: Vec<ProgramUse>,
    /// What could not be read, and why; none where that is the same as before, and an empty list where all of it can be read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Vec<String>>,
    /// What happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RunEvent>,
}

/// Where the intervals of a run have the kernel that the server runs on: in one of its own, if any of them has that, else in the
/// generator's. An interval in which the server's own was not heard of then has nothing of it, and never the generator's instead.
pub fn server_side(intervals: &[Interval]) -> impl Fn(&Interval) -> &BTreeMap<String, i64> {
    let is_apart = intervals.iter().any(|interval| !interval.server_kernel.is_empty());
    move |interval| if is_apart { &interval.server_kernel } else { &interval.kernel }
}

/// The generator's share of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadInterval {
    /// The phase of the load at the end of the interval, as in the scenario: `ramp to 100k`; at last [`LEAVING`].
    pub phase: String,
    /// Whether the load was paused by hand (`throng ctl pause`) at the end of the interval: no user begins.
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Cores that run.
    pub cores: u64,
    /// Cores that did not answer in time: what they counted is as of their last answer, and what
    /// they did meanwhile is in a later interval.
    pub cores_silent: u64,
    /// The time in which the counters grew, in microseconds: from one answer of a core to its next,
    /// the mean over all cores, each weighed by what it did. 0 when not known.
    pub grown_us: u64,
    /// What the users did.
    pub counters: LoadCounters,
    /// What the loops counted.
    pub core: CoreCounters,
    /// Errors of established connections by kind; failed connects are in `connect_failed` only.
    #[serde(skip_serializing_if = "no_tally")]
    pub errors: Tally,
    /// Failed connects by errno, or `timeout`.
    #[serde(skip_serializing_if = "no_tally")]
    pub connect_failed: Tally,
    /// From the intended moment of a connect until it was established; for a WebSocket, until its upgrade was checked.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub connect: Histogram,
    /// The part of that until TCP was established; of WebSockets only.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub tcp: Histogram,
    /// From the intended moment of a message until its answer was whole.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub message: Histogram,
    /// From the intended moment of a join until it was answered ok.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub join: Histogram,
    /// From the intended moment of a push until it was answered ok.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub push: Histogram,
    /// How long users waited for what they did not get, until it timed out or they were stopped.
    #[serde(skip_serializing_if = "UnansweredWaits::is_empty")]
    pub unanswered: UnansweredWaits,
    /// From the intended moment of a probe until each user had it.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub broadcast: Histogram,
    /// What was counted of all probes.
    #[serde(skip_serializing_if = "no_probes")]
    pub probe: ProbeCounters,
    /// The probes of which something was heard in the interval, each as far as it has come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeReport>,
    /// The same by the kernel's clock: until answers arrived, and not until the generator saw them.
    #[serde(skip_serializing_if = "ArrivalLatencies::is_empty")]
    pub arrival: ArrivalLatencies,
    /// How much later than intended the generator did what depended on nobody else.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub lag: Histogram,
    /// The longest time in which users waited and none of them was answered, of those that ended in
    /// the interval; absent when it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_gap: Option<AnswerGap>,
    /// When the target went away and came back; absent when it did neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The generator's process.
    pub process: ProcessUse,
    /// The counters of each class of users, when there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, ClassCounters>,
}

impl LoadInterval {
    /// Returns the latencies by the best clock that there is: of each kind until the answer reached this
    /// machine, where the kernel's clock was asked, and else until the generator saw it.
    pub fn latencies(&self) -> Latencies<'_> {
        let Self { connect, tcp, message, join, push, broadcast, arrival, .. } = self;
        fn best<'a>(seen: &'a Histogram, arrived: &'a Histogram) -> &'a Histogram {
            if arrived.is_empty() { seen } else { arrived }
        }
        Latencies {
            connect: best(connect, &arrival.connect),
            tcp: best(tcp, &arrival.tcp),
            message: best(message, &arrival.message),
            join: best(join, &arrival.join),
            push: best(push, &arrival.push),
            broadcast: best(broadcast, &arrival.broadcast),
        }
    }

    /// Whether everybody was leaving when the interval ended.
    pub fn is_leaving(&self) -> bool {
        self.phase == LEAVING
    }

    /// Moves its moments from another clock to that of the run, which began at `began_ms` of it.
    pub fn rebase(&mut self, began_ms: u64) {
        if let Some(gap) = &mut self.answer_gap {
            gap.from_ms = gap.from_ms.saturating_sub(began_ms);
            gap.to_ms = gap.to_ms.saturating_sub(began_ms);
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

    /// What counts from the start, without what is of the interval alone.
    pub fn without_measured(&self) -> Self {
        Self {
            phase: self.phase.clone(),
            paused: self.paused,
            cores: self.cores,
            counters: self.counters.clone(),
            core: self.core.clone(),
            errors: self.errors.clone(),
            connect_failed: self.connect_failed.clone(),
            probe: self.probe.clone(),
            process: self.process.clone(),
            classes: self.classes.clone(),
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

    #[test]
    fn an_interval_comes_back_from_json() {
        let mut load = LoadInterval { phase: "hold".into(), cores: 2, ..Default::default() };
        load.connect.record_us(321);
        load.connect_failed.add("ECONNREFUSED", 2);
        let interval = Interval {
            at_ms: 1000,
            span_ms: 1000,
            load: Some(load),
            server: Some(ServerSnapshot { listen: "127.0.0.1:5555".into(), ..Default::default() }),
            kernel: [("syn_recv".to_owned(), 7)].into(),
            ..Default::default()
        };
        let json = serde_json::to_string(&interval).unwrap();
        assert_eq!(serde_json::from_str::<Interval>(&json).unwrap(), interval);
        assert!(!json.contains("\"message\":"), "an empty histogram is left out: {json}");
    }

    #[test]
    fn a_server_that_was_not_heard_of_for_an_interval_is_not_the_generator() {
        let of = |n: i64| BTreeMap::from([("n".to_owned(), n)]);
        let shared = Interval { kernel: of(500), ..Interval::default() };
        let apart = Interval { server_kernel: of(7), ..shared.clone() };
        let values = |intervals: &[Interval]| -> Vec<Option<i64>> {
            let kernel = server_side(intervals);
            intervals.iter().map(|interval| kernel(interval).get("n").copied()).collect()
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
    }

    #[test]
    fn fields_of_a_newer_version_are_passed_over() {
        let json = r#"{"at_ms":1,"span_ms":1,"weather":"fine","load":{"phase":"p","mood":1}}"#;
        assert_eq!(serde_json::from_str::<Interval>(json).unwrap().load.unwrap().phase, "p");
    }
}
