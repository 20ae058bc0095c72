//! The machines of a fleet, each by itself.

use serde::{Deserialize, Serialize};
use throng_measure::{LoadInterval, MachineInterval, RunEvent, RunEventKind, RunMachine};

/// A machine of a fleet: its totals, and the worst of its intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunMachineSummary {
    /// The name of its agent.
    pub name: String,
    /// The name of the machine.
    pub host: String,
    /// Its part of the load, from 0 to 1.
    pub share: f64,
    /// How much earlier or later than the others it may have begun, in microseconds: the error of
    /// its clock's offset.
    pub start_error_us: u64,
    /// Users that started.
    pub users_started: u64,
    /// The most users at the end of an interval.
    pub users_most: u64,
    /// The most connections at the end of an interval.
    pub connected_most: u64,
    /// Connects established.
    pub connects_ok: u64,
    /// Connects that failed.
    pub connects_failed: u64,
    /// Requests of all kinds that were answered.
    pub answered: u64,
    /// Errors of established connections.
    pub errors: u64,
    /// Connects established per second in the best second.
    pub connects_per_s_most: Option<f64>,
    /// The lag that 99 % did not exceed in the worst interval, in microseconds.
    pub lag_us_p99_most: Option<u64>,
    /// The latency of connects that 99 % did not exceed in the worst interval, in microseconds.
    pub connect_us_p99_most: Option<u64>,
    /// The same of messages, pushes and HTTP requests.
    pub message_us_p99_most: Option<u64>,
    /// CPU time of its busiest core in the interval in which that was most, as a share of a CPU.
    pub busiest_core_most: Option<f64>,
    /// CPUs that its generator kept busy on average.
    pub cpu_cores_used: Option<f64>,
    /// Most resident memory of its generator.
    pub rss_bytes_most: Option<u64>,
    /// The times in which it was lost.
    pub lost: Vec<LostTime>,
}

/// A time in which a machine was lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LostTime {
    /// Its beginning, in seconds since the run began.
    pub from_s: f64,
    /// Its end; `null` if the machine did not come back.
    pub until_s: Option<f64>,
    /// The reason why it counted as lost.
    pub reason: String,
}

/// The machines of a run, under construction.
#[derive(Debug, Default)]
pub(super) struct MachinesFold(Vec<MachineFold>);

#[derive(Debug, Default)]
struct MachineFold {
    summary: RunMachineSummary,
    last: MachineInterval,
    /// Connects in the present stretch, and its time.
    connects: u64,
    stretch_us: u64,
    /// CPU time in the intervals with a report, and their time.
    cpu_us: u64,
    grown_us: u64,
}

impl MachinesFold {
    pub(super) fn new(machines: &[RunMachine]) -> Self {
        let fold = |machine: &RunMachine| MachineFold {
            summary: RunMachineSummary {
                name: machine.name.clone(),
                host: machine.host.clone(),
                share: machine.share,
                start_error_us: machine.start_error_us,
                ..RunMachineSummary::default()
            },
            ..MachineFold::default()
        };
        Self(machines.iter().map(fold).collect())
    }

    pub(super) fn add(&mut self, load: &LoadInterval) {
        for now in &load.machines {
            if let Some(fold) = self.named(&now.name) {
                fold.add(now, load.is_leaving());
            }
        }
    }

    pub(super) fn add_event(&mut self, event: &RunEvent) {
        let at_s = event.at_ms as f64 / 1000.0;
        match &event.kind {
            RunEventKind::AgentLost { agent, reason, from_ms, .. } => {
                if let Some(fold) = self.named(agent) {
                    let (from_s, reason) = (*from_ms as f64 / 1000.0, reason.clone());
                    fold.summary.lost.push(LostTime { from_s, until_s: None, reason });
                }
            }
            RunEventKind::AgentBack { agent } => {
                if let Some(lost) = self.named(agent).and_then(|fold| fold.summary.lost.last_mut())
                {
                    lost.until_s.get_or_insert(at_s);
                }
            }
            _ => {}
        }
    }

    pub(super) fn summaries(&self) -> Vec<RunMachineSummary> {
        self.0.iter().map(MachineFold::summary).collect()
    }

    fn named(&mut self, name: &str) -> Option<&mut MachineFold> {
        self.0.iter_mut().find(|fold| fold.summary.name == name)
    }
}

impl MachineFold {
    fn add(&mut self, now: &MachineInterval, is_leaving: bool) {
        let MachineFold { summary, last, .. } = self;
        summary.users_started = now.users_started;
        summary.connects_ok = now.connects_ok;
        summary.connects_failed = now.connects_failed;
        summary.answered = now.answered;
        summary.errors = now.errors;
        if !now.lost {
            summary.users_most = summary.users_most.max(now.users_active);
            summary.connected_most = summary.connected_most.max(now.connected);
        }
        let busiest = now.busiest_core_permille.map(|permille| permille as f64 / 1000.0);
        if !is_leaving {
            // `None` is less than any value.
            summary.lag_us_p99_most = summary.lag_us_p99_most.max(now.lag_us_p99);
            summary.connect_us_p99_most = summary.connect_us_p99_most.max(now.connect_us_p99);
            summary.message_us_p99_most = summary.message_us_p99_most.max(now.message_us_p99);
            if busiest > summary.busiest_core_most {
                summary.busiest_core_most = busiest;
            }
        }
        if now.rss_bytes > 0 {
            summary.rss_bytes_most = summary.rss_bytes_most.max(Some(now.rss_bytes));
        }
        if now.grown_us > 0 && !is_leaving {
            self.connects += now.connects_ok.saturating_sub(last.connects_ok);
            self.stretch_us = self.stretch_us.saturating_add(now.grown_us);
            self.end_stretch(STRETCH_US);
            self.cpu_us += now.cpu_us.saturating_sub(self.last.cpu_us);
            self.grown_us = self.grown_us.saturating_add(now.grown_us);
        }
        self.last = now.clone();
    }

    /// Ends a stretch that is long enough.
    fn end_stretch(&mut self, least_us: u64) {
        if self.stretch_us < least_us.max(1) {
            return;
        }
        let rate = self.connects as f64 * 1e6 / self.stretch_us as f64;
        (self.connects, self.stretch_us) = (0, 0);
        let most = &mut self.summary.connects_per_s_most;
        if rate > 0.0 && Some(rate) > *most {
            *most = Some(rate);
        }
    }

    fn summary(&self) -> RunMachineSummary {
        let mut summary = self.summary.clone();
        let used = self.cpu_us as f64 / self.grown_us.max(1) as f64;
        summary.cpu_cores_used = (self.grown_us > 0).then_some(used);
        if summary.connects_per_s_most.is_none() && self.stretch_us > 0 && self.connects > 0 {
            // A run of less than a second.
            let rate = self.connects as f64 * 1e6 / self.stretch_us as f64;
            summary.connects_per_s_most = Some(rate);
        }
        summary
    }
}

/// The least time of a rate: a second, but for what an interval may be short of it.
const STRETCH_US: u64 = 990_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str) -> RunMachine {
        RunMachine { name: name.to_owned(), share: 0.5, ..RunMachine::default() }
    }

    fn interval(name: &str, connects_ok: u64, grown_us: u64) -> MachineInterval {
        MachineInterval {
            name: name.to_owned(),
            connects_ok,
            connected: connects_ok,
            grown_us,
            cpu_us: 10_000 + connects_ok,
            ..MachineInterval::default()
        }
    }

    fn add(fold: &mut MachinesFold, machines: Vec<MachineInterval>) {
        fold.add(&LoadInterval { machines, ..LoadInterval::default() });
    }

    #[test]
    fn each_machine_has_its_rate_by_the_time_in_which_it_counted() {
        let mut fold = MachinesFold::new(&[machine("a"), machine("b")]);
        add(&mut fold, vec![interval("a", 0, 0), interval("b", 0, 0)]);
        // The second report of `b` is late: two seconds come at once.
        add(&mut fold, vec![interval("a", 400, 1_000_000), interval("b", 0, 0)]);
        add(&mut fold, vec![interval("a", 500, 1_000_000), interval("b", 600, 2_000_000)]);
        let [a, b] = &fold.summaries()[..] else { panic!() };
        assert_eq!((a.connects_ok, a.connects_per_s_most), (500, Some(400.0)));
        assert_eq!((b.connects_ok, b.connects_per_s_most), (600, Some(300.0)));
        assert_eq!(b.cpu_cores_used, Some(0.0003), "what it used before the run does not count");
    }

    #[test]
    fn the_error_of_a_machines_clock_stands_in_the_summary() {
        let exact = RunMachine { start_error_us: 240, ..machine("a") };
        assert_eq!(MachinesFold::new(&[exact]).summaries()[0].start_error_us, 240);
    }

    #[test]
    fn the_worst_interval_stays_and_an_unknown_value_is_none() {
        let mut fold = MachinesFold::new(&[machine("a")]);
        for (lag, busiest) in [(Some(7), None), (Some(90), Some(950)), (None, Some(400))] {
            let of = interval("a", 0, 1_000_000);
            add(
                &mut fold,
                vec![MachineInterval { lag_us_p99: lag, busiest_core_permille: busiest, ..of }],
            );
        }
        let a = &fold.summaries()[0];
        assert_eq!((a.lag_us_p99_most, a.busiest_core_most), (Some(90), Some(0.95)));
        assert_eq!((a.message_us_p99_most, a.connects_per_s_most), (None, None));
    }

    #[test]
    fn a_machine_was_lost_from_one_event_to_the_next() {
        let mut fold = MachinesFold::new(&[machine("a")]);
        let mut event = |at_ms, kind| fold.add_event(&RunEvent::new(at_ms, kind));
        // The event comes when the agent was silent for a while.
        let lost = |from_ms| RunEventKind::AgentLost {
            agent: "a".to_owned(),
            percent: 50,
            from_ms,
            reason: "it no longer answers".to_owned(),
        };
        event(9_000, lost(4_000));
        event(9_500, RunEventKind::AgentBack { agent: "a".to_owned() });
        event(17_000, lost(12_000));
        let lost = fold.summaries().remove(0).lost;
        let times: Vec<_> = lost.iter().map(|lost| (lost.from_s, lost.until_s)).collect();
        assert_eq!(times, [(4.0, Some(9.5)), (12.0, None)]);
    }
}
