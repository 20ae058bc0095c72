//! What a block `lab` can say about a run: measurements by name, and analyses.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use throng_load::scenario::Quantity;
use throng_report::runfile::RunFile;
use throng_report::{Interval, RunEventKind, Summary, Tally, threshold};

use super::SizedScenario;
use crate::broadcasts::{delivery_sentence, errors_sentence, growth, plateaus, to_all};
use crate::connect_limit::connect_limit;
use crate::handshake;
use crate::lateness::lateness;
use crate::measure::{MemoryEach, counter_growth, gauge_max};
use crate::message_window::MessageWindow;
use crate::reconcile::reconcile;
use crate::recovery::recovery;
use crate::user_cost::UserCost;

/// A run that is over, and all that an analysis may look at.
pub(crate) struct RunFacts<'a> {
    pub(crate) run: &'a RunFile,
    pub(crate) summary: &'a Summary,
    pub(crate) sized: &'a SizedScenario,
    /// The time without a server, if it was restarted.
    pub(crate) down: Option<Duration>,
}

type FactOf = fn(&RunFacts<'_>) -> Value;

/// The analyses.
const FACTS: &[(&str, FactOf)] = &[
    // The latest broadcasts.
    ("probes", |facts| json(facts.probes())),
    ("broadcasts", |facts| json(delivery_sentence(&facts.probes()))),
    ("broadcast_growth", |facts| json(growth(facts.intervals(), &facts.probes()))),
    ("broadcast_to_all", |facts| json(to_all(&facts.probes()))),
    ("all_joined_ms", |facts| {
        let users = facts.sized.param("users") as u64;
        let mut loads = facts.intervals().iter().filter_map(|i| Some((i.at_ms, i.load.as_ref()?)));
        json(loads.find(|(_, load)| load.counters.joined >= users).map(|(at_ms, _)| at_ms))
    }),
    ("connect_limit", |facts| json(connect_limit(facts))),
    ("cost", |facts| json(UserCost::of(facts.intervals(), facts.summary, facts.sized))),
    ("down_ms", |facts| json(facts.down.map(|down| down.as_millis() as u64))),
    ("errors_by_kind", |facts| json(errors_by_kind(facts.intervals()))),
    ("errors_sentence", |facts| json(errors_sentence(facts.summary))),
    ("handshakes", |facts| json(handshake::finding(facts.intervals()))),
    ("lateness", |facts| json(lateness(facts.run, facts.sized))),
    ("plateaus", |facts| json(plateaus(facts))),
    ("reconciled", |facts| json(reconcile(facts.intervals()))),
    ("recovery", |facts| json(recovery(facts.sized.param("users") as u64, facts.intervals()))),
    ("steered", |facts| {
        let mut events = facts.intervals().iter().flat_map(|interval| &interval.events);
        json(events.any(|event| matches!(event.kind, RunEventKind::Steered { .. })))
    }),
    // The window from the parameter `warm` to the end of the load.
    ("steady", |facts| {
        let [from, to] = ["warm", "length"].map(|name| (1e3 * facts.sized.param(name)) as u64);
        json(MessageWindow::between(facts.intervals(), from, to))
    }),
    // The most frequent error.
    ("worst_error", |facts| {
        let errors = errors_by_kind(facts.intervals());
        let worst = errors.0.iter().max_by_key(|(_, n)| **n);
        let total = errors.total();
        let worst = worst.map(|(kind, n)| json!({"kind": kind, "n": n, "total": total}));
        worst.unwrap_or_else(|| json!({"kind": Value::Null, "n": 0, "total": 0}))
    }),
];

impl RunFacts<'_> {
    pub(crate) fn intervals(&self) -> &[Interval] {
        &self.run.intervals
    }

    /// Returns the broadcasts of the run's probe.
    pub(crate) fn probes(&self) -> Vec<throng_report::ProbeReport> {
        self.summary.broadcast.as_ref().map_or_else(Vec::new, |all| all.probes.clone())
    }

    /// Returns the analysis `name`; none for an unknown one.
    pub(super) fn fact(&self, name: &str) -> Option<Value> {
        FACTS.iter().find(|(known, _)| *known == name).map(|(_, fact)| fact(self))
    }

    /// Returns the measurement `name`; none for an unknown one. Names are those of thresholds, and
    /// `growth.COUNTER`, `most.GAUGE` of the server's kernel, `memory.PART` for each connection.
    pub(super) fn metric(&self, name: &str) -> Option<Quantity> {
        let intervals = self.intervals();
        let known = |value: Option<f64>| value.map_or(Quantity::Unknown, Quantity::number);
        let whole = |value: Option<u64>| known(value.map(|value| value as f64));
        if let Some(counter) = name.strip_prefix("growth.") {
            return Some(whole(counter_growth(intervals, counter)));
        }
        if let Some(gauge) = name.strip_prefix("most.") {
            return Some(whole(gauge_max(intervals, gauge)));
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

/// Returns the failed connects by errno and the other errors by kind.
fn errors_by_kind(intervals: &[Interval]) -> Tally {
    let last = intervals.iter().rev().find_map(|interval| interval.load.as_ref());
    let mut errors = last.map_or_else(Tally::default, |load| load.errors.clone());
    for (errno, n) in last.iter().flat_map(|load| &load.connect_failed.0) {
        errors.add(&format!("connect {errno}"), *n);
    }
    errors
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("facts are plain data")
}
