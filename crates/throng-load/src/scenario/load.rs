//! `load`: the phases, and how they are written.

mod arrivals;
mod by_class;
mod levels;
mod name;
mod order;
mod peak;
mod phase;
mod pieces;
mod ramp;
mod stairs;
mod times;

use std::path::Path;
use std::time::Duration;

use super::node::{Kind, Node};
use super::reader::{Fields, Reader, WHOLE};
use super::values::positive_duration;
use levels::read_above_zero;
pub(crate) use levels::read_curve;
pub(crate) use name::{outline, phase_name};
use order::PhaseList;
pub use peak::{LoadPeak, peak_arrivals, peak_users};
pub use phase::{Curve, Model, Phase, Spacing};
use phase::{PhaseNode, PhaseShape};
pub use pieces::LoadPiece;

/// The load of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum ScenarioLoad {
    /// Phases of all users; the classes share these users by their weights.
    Shared(Vec<Phase>),
    /// A load of its own for each class, in the order of the classes.
    ByClass(Vec<ClassLoad>),
}

/// The load of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassLoad {
    /// Name of the class.
    pub class: String,
    /// Its phases.
    pub phases: Vec<Phase>,
}

impl ScenarioLoad {
    /// Returns the phases of all users; none if each class has its own.
    pub fn shared(&self) -> &[Phase] {
        match self {
            Self::Shared(phases) => phases,
            Self::ByClass(_) => &[],
        }
    }

    /// Returns the lists of phases that run beside one another: one, or that of each class.
    pub fn lanes(&self) -> impl Iterator<Item = &[Phase]> {
        let (shared, by_class) = match self {
            Self::Shared(phases) => (Some(&phases[..]), &[][..]),
            Self::ByClass(classes) => (None, &classes[..]),
        };
        shared.into_iter().chain(by_class.iter().map(|class| &class.phases[..]))
    }

    /// Returns the phases of a class.
    pub fn of_class(&self, class: usize) -> &[Phase] {
        match self {
            Self::Shared(phases) => phases,
            Self::ByClass(classes) => &classes[class].phases,
        }
    }

    /// Returns the model of the load: open if users of any class arrive by the clock.
    pub fn model(&self) -> Model {
        let is_open = self.lanes().any(|phases| Model::of(phases) == Model::Open);
        if is_open { Model::Open } else { Model::Closed }
    }

    /// Returns the length of the longest list of phases.
    pub fn length(&self) -> Duration {
        self.lanes().map(Phase::length_of).max().unwrap_or_default()
    }

    /// Returns the moment from which the load is over once all users have ended: every class has
    /// ended or is in a last phase that ends with its users. `None` if no phase does.
    pub fn ends_with_users_from(&self) -> Option<Duration> {
        let is_last = |phase: &Phase| matches!(phase, Phase::Hold { until_done: true, .. });
        let end = |phases: &[Phase]| match phases.split_last() {
            Some((last, before)) if is_last(last) => (Phase::length_of(before), true),
            _ => (Phase::length_of(phases), false),
        };
        let ends = || self.lanes().map(end);
        ends().any(|(_, awaits)| awaits).then(|| ends().map(|(at, _)| at).max()).flatten()
    }

    /// Returns the load cut where a class begins another phase.
    pub fn pieces(&self) -> Vec<LoadPiece> {
        pieces::of(self)
    }

    /// Returns the load in a line: the names of the phases, each repeated part once.
    pub(crate) fn outline(&self) -> String {
        match self {
            Self::Shared(phases) => outline(phases),
            Self::ByClass(classes) => {
                let of = |class: &ClassLoad| format!("{}: {}", class.class, outline(&class.phases));
                classes.iter().map(of).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// Reads the load of all users, or that of each class. Files with moments are relative to `folder`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    folder: &Path,
    peak: Option<LoadPeak>,
) -> Option<ScenarioLoad> {
    if let Some(users) = fields.get("users").filter(|users| by_class::is_written(users)) {
        if peak.is_some() {
            let label = "each class has its own; write the number as a parameter, and --set it";
            reader.error(fields.key_span("users"), peak::REFUSED, label);
        }
        return by_class::read(reader, fields, users, folder);
    }
    let example = "load: [{ramp: {to: 100, over: 10s}}]";
    let node = reader.require(fields, "load", WHOLE, example)?;
    let mut phases = read_phases(reader, node, folder)?;
    if let Some(peak) = peak {
        peak::set_peak(reader, node, &mut phases, peak);
    }
    Some(ScenarioLoad::Shared(phases))
}

/// Reads the list of phases and checks their order.
fn read_phases(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<Vec<Phase>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(
            node,
            "`load`",
            "a list of phases such as `- ramp: {to: 100, over: 10s}`",
        );
        return None;
    };
    if items.is_empty() {
        reader.error(node.span.clone(), "`load` has no phase", "add at least one");
        return None;
    }
    let written = read_list(reader, items, folder)?;
    let mut phases = PhaseList::default();
    phases.append(reader, &written);
    Some(phases.into_phases())
}

fn read_list<'n>(
    reader: &mut Reader<'_>,
    items: &'n [Node],
    folder: &Path,
) -> Option<Vec<PhaseNode<'n>>> {
    // All are read before one is missed, so that all mistakes are shown.
    let phases: Vec<_> = items.iter().map(|item| read_phase(reader, item, folder)).collect();
    phases.into_iter().collect()
}

fn read_phase<'n>(reader: &mut Reader<'_>, node: &'n Node, folder: &Path) -> Option<PhaseNode<'n>> {
    let what = "a load phase";
    let Kind::Map(entries) = &node.kind else {
        match node.scalar() {
            Some(name) if !PHASES.contains(&name) => {
                reader.unknown(node.span.clone(), &format!("load phase `{name}`"), name, &PHASES);
            }
            Some("hold") => {
                reader.wrong_kind(node, "`hold`", "a mapping such as `hold: {for: 1m}`")
            }
            _ => reader.wrong_kind(node, what, "a mapping such as `ramp: {to: 100, over: 10s}`"),
        }
        return None;
    };
    reader.fields(node, what, &PHASES)?;
    if let [_, (second, _), ..] = &entries[..] {
        reader.error(
            second.span.clone(),
            "each phase needs its own list item",
            "start this one with `- `",
        );
        return None;
    }
    let (key, value) = entries.first()?;
    let mistakes_before = reader.mistakes.len();
    let plain = |phase| PhaseShape::Plain(vec![phase]);
    let shape = match key.scalar()? {
        "ramp" => ramp::read(reader, value).map(plain),
        "hold" => read_hold(reader, value).map(plain),
        "arrivals" => arrivals::read(reader, value, folder).map(plain),
        "steps" => stairs::read(reader, value).map(PhaseShape::Plain),
        "spike" => ramp::read_spike(reader, value).map(PhaseShape::Spike),
        "loop" => read_loop(reader, value, folder),
        _ => None,
    };
    if let (Kind::Scalar(_), [mistake]) = (&value.kind, &mut reader.mistakes[mistakes_before..]) {
        let examples = PHASES.iter().zip(EXAMPLES);
        let mut examples = examples.filter(|(name, _)| key.scalar() == Some(**name));
        mistake.help = examples.next().map(|(_, example)| format!("for example `{example}`"));
    }
    Some(PhaseNode { node, shape: shape? })
}

fn read_hold(reader: &mut Reader<'_>, node: &Node) -> Option<Phase> {
    let fields = reader.fields(node, "`hold`", &["for", "until"])?;
    let until_done = reader.value_or(&fields, "until", false, |reader, node| {
        reader.one_of(node, "`until`", &[("done", true)])
    });
    let node = reader.require(&fields, "for", "`hold`", "hold: {for: 1m}")?;
    let span = positive_duration(reader, node, "`for`");
    Some(Phase::Hold { span: span?, until_done: until_done? })
}

fn read_loop<'n>(reader: &mut Reader<'_>, node: &'n Node, folder: &Path) -> Option<PhaseShape<'n>> {
    let fields = reader.fields(node, "`loop`", &["times", "do"])?;
    let times = reader.require(&fields, "times", "`loop`", "times: 3");
    let times = times.and_then(|node| read_above_zero(reader, node, "`times`"));
    let example = "do: [ramp: {to: 100, over: 1m}, ramp: {to: 0, over: 1m}]";
    let phases = match reader.require(&fields, "do", "`loop`", example) {
        Some(Node { kind: Kind::List(items), .. }) if !items.is_empty() => {
            read_list(reader, items, folder)
        }
        Some(Node { kind: Kind::List(_), span, .. }) => {
            reader.error(span.clone(), "`do` has no phase", "add at least one");
            None
        }
        Some(node) => {
            reader.wrong_kind(node, "`do`", "a list of phases");
            None
        }
        None => None,
    };
    Some(PhaseShape::Loop { times: times?, phases: phases? })
}

const PHASES: [&str; 6] = ["ramp", "hold", "arrivals", "steps", "spike", "loop"];

/// An example of each phase.
const EXAMPLES: [&str; 6] = [
    "ramp: {to: 100, over: 10s}",
    "hold: {for: 1m}",
    "arrivals: {rate: 50/s, for: 1m}",
    "steps: {from: 100, to: 1k, by: 100, each: 30s}",
    "spike: {to: 5k, for: 30s}",
    "loop: {times: 3, do: [ramp: {to: 100, over: 1m}, ramp: {to: 0, over: 1m}]}",
];
