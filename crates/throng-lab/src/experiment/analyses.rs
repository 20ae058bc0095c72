//! The analyses that a block `lab` may name: values of a run, and watches of it.

use serde::Serialize;
use serde_json::{Value, json};
use throng_measure::{Interval, RunEventKind, Tally};
use throng_run::test_bed::NextStep;

use crate::broadcasts::{delivery_sentence, errors_sentence, growth, plateaus, to_all};
use crate::connect_limit::{ConnectLimitWatch, connect_limit};
use crate::handshake;
use crate::lateness::{LatenessWatch, lateness};
use crate::message_window::MessageWindow;
use crate::reconcile::reconcile;
use crate::recovery::{RestartWatch, recovery};
use crate::restart_deliveries::restart_deliveries;
use crate::run_facts::RunFacts;
use crate::run_watch::{LabServer, RunWatch};
use crate::sized_scenario::SizedScenario;
use crate::user_cost::UserCost;

type AnalysisOf = fn(&RunFacts<'_>) -> Value;

/// The analyses by name.
const ANALYSES: &[(&str, AnalysisOf)] = &[
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
    ("down_ms", |facts| json(facts.server.down.map(|down| down.as_millis() as u64))),
    ("errors_by_kind", |facts| json(errors_by_kind(facts.intervals()))),
    ("errors_sentence", |facts| json(errors_sentence(facts.summary))),
    ("handshakes", |facts| json(handshake::finding(facts.intervals()))),
    ("lateness", |facts| json(lateness(facts.run, facts.sized))),
    ("plateaus", |facts| json(plateaus(facts))),
    ("reconciled", |facts| json(reconcile(facts.intervals()))),
    ("recovery", |facts| json(recovery(facts.sized.param("users") as u64, facts.intervals()))),
    ("restart_deliveries", |facts| {
        let users = facts.sized.param("users") as u64;
        json(restart_deliveries(users, facts.intervals(), &facts.probes(), facts.server))
    }),
    ("shared_after_ms", |facts| json(facts.server.shared_after_ms())),
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

/// Returns the analysis `name` of a run; none for an unknown one.
pub(super) fn analysis(name: &str, facts: &RunFacts<'_>) -> Option<Value> {
    ANALYSES.iter().find(|(known, _)| *known == name).map(|(_, of)| of(facts))
}

/// Returns the watch `name` of a block `lab`; none for an unknown name.
pub(super) fn watch(name: Option<&str>, sized: &SizedScenario) -> Option<Box<dyn RunWatch>> {
    Some(match name {
        None => Box::new(NoWatch),
        Some("connect_limit") => Box::new(ConnectLimitWatch::new(sized)),
        Some("lateness") => Box::new(LatenessWatch::new(sized)),
        Some("restart") => Box::new(RestartWatch::new(sized)),
        Some(_) => return None,
    })
}

struct NoWatch;

impl RunWatch for NoWatch {
    fn add(&mut self, _: &Interval, _: &mut LabServer<'_>) -> NextStep {
        NextStep::Continue
    }
}

/// Returns the failed connects by errno and the other errors by kind.
fn errors_by_kind(intervals: &[Interval]) -> Tally {
    let last = intervals.iter().rev().find_map(|interval| interval.load.as_ref());
    let mut errors = last.map_or_else(Tally::default, |load| load.errors.clone());
    for (errno, n) in last.iter().flat_map(|load| &load.connect_failed.0) {
        errors.add(format!("connect {errno}"), *n);
    }
    errors
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("facts are plain data")
}
