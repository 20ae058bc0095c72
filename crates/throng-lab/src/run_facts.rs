//! A run that is over, and its measurements by name.

use throng_load::scenario::Quantity;
use throng_measure::runfile::RunFile;
use throng_measure::{Interval, Metric, ProbeReport};
use throng_report::{Summary, threshold};

use crate::measure::{MemoryEach, counter_growth, gauge_max};
use crate::run_watch::ServerHistory;
use crate::sized_scenario::SizedScenario;

/// A run that is over, and all that an analysis may look at.
pub(crate) struct RunFacts<'a> {
    pub(crate) run: &'a RunFile,
    pub(crate) summary: &'a Summary,
    pub(crate) sized: &'a SizedScenario,
    /// What happened to the servers.
    pub(crate) server: &'a ServerHistory,
}

impl RunFacts<'_> {
    pub(crate) fn intervals(&self) -> &[Interval] {
        &self.run.intervals
    }

    /// Returns the broadcasts of the run's probe.
    pub(crate) fn probes(&self) -> Vec<ProbeReport> {
        self.summary.broadcast.as_ref().map_or_else(Vec::new, |all| all.probes.clone())
    }

    /// Returns the measurement `name`; none for an unknown one. Names are those of thresholds, and
    /// `growth.COUNTER`, `most.GAUGE` of the server's kernel, `memory.PART` for each connection.
    pub(crate) fn metric(&self, name: &str) -> Option<Quantity> {
        let intervals = self.intervals();
        let known = |value: Option<f64>| value.map_or(Quantity::Unknown, Quantity::number);
        let whole = |value: Option<u64>| known(value.map(|value| value as f64));
        if let Some(counter) = name.strip_prefix("growth.") {
            return Some(whole(counter_growth(intervals, Metric::named(counter)?)));
        }
        if let Some(gauge) = name.strip_prefix("most.") {
            return Some(whole(gauge_max(intervals, Metric::named(gauge)?)));
        }
        let memory = || MemoryEach::of(intervals, self.summary);
        match name {
            "memory.server" => Some(known(memory().server)),
            "memory.load" => Some(known(memory().load)),
            "memory.machine" => Some(known(memory().machine)),
            _ => threshold::value(name, self.summary).map(known),
        }
    }
}
