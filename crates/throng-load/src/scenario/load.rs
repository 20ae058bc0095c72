//! The phases of the load: how many users there are at each moment.

mod arrivals;
mod name;
mod order;
mod ramp;
mod stairs;
mod times;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throng_base::units::parse_count;

use super::node::{Kind, Node};
use super::reader::Reader;
use super::values::positive_duration;
pub(crate) use name::{outline, phase_name};
use order::PhaseList;

/// A phase of the load. Phases follow one another without a gap.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Closed model: the number of users changes linearly to `to`. A user that has finished its
    /// steps begins again.
    Ramp {
        /// Users at the end of the phase.
        to: u32,
        /// Length of the phase; more than zero.
        over: Duration,
        /// Form of the change.
        curve: Curve,
    },
    /// Closed model: the number of users is `to` from the beginning of the phase.
    Step {
        /// Users in the phase.
        to: u32,
        /// Length of the phase; more than zero.
        span: Duration,
    },
    /// Closed model: the number of users goes to `to`, stays there, and goes back.
    Spike {
        /// Users at the top.
        to: u32,
        /// Users before the phase and after it.
        back: u32,
        /// Time of each of the two changes; zero for a jump.
        over: Duration,
        /// Time at the top; more than zero.
        span: Duration,
    },
    /// The number of users stays constant; after `arrivals`, no new user arrives.
    Hold {
        /// Length of the phase; more than zero.
        span: Duration,
    },
    /// Open model: users arrive whether or not earlier ones have finished. Each runs its steps
    /// once.
    Arrivals {
        /// Arrivals per second at the beginning.
        from: f64,
        /// Arrivals per second at the end.
        to: f64,
        /// Form of the change between them.
        curve: Curve,
        /// Length of the phase; more than zero.
        span: Duration,
        /// Maximum number of arrivals in the phase; at least 1.
        most: Option<u64>,
        /// Distribution of the gaps between arrivals.
        spacing: Spacing,
    },
    /// Open model: users arrive at the moments of a file.
    Recorded {
        /// Nanoseconds from the beginning of the phase, in order; all are before its end.
        moments_ns: Arc<[u64]>,
        /// Length of the phase; more than zero.
        span: Duration,
    },
}

/// Form of a change from one level to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curve {
    /// The level grows by the same number in equal times.
    #[default]
    Linear,
    /// The level grows by the same factor in equal times. For users, the number plus one does.
    Exponential,
}

/// Distribution of the gaps between arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// At random, as independent people arrive: the gaps are exponentially distributed.
    #[default]
    Poisson,
    /// All gaps are equal.
    Even,
}

/// Model of the load: what decides when a user starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A fixed number of users that repeat their steps: a slow server slows the load.
    Closed,
    /// Arrivals by the clock: a slow server does not slow the load.
    Open,
}

impl Phase {
    /// Returns the length of the phase.
    pub fn length(&self) -> Duration {
        match *self {
            Self::Ramp { over, .. } => over,
            Self::Spike { over, span, .. } => over.saturating_mul(2).saturating_add(span),
            Self::Hold { span }
            | Self::Step { span, .. }
            | Self::Arrivals { span, .. }
            | Self::Recorded { span, .. } => span,
        }
    }
}

impl Model {
    /// Returns the model of these phases; a load of `hold` alone counts as closed.
    pub fn of(phases: &[Phase]) -> Self {
        let is_open = |phase: &Phase| Self::of_phase(phase) == Some(Self::Open);
        if phases.iter().any(is_open) { Self::Open } else { Self::Closed }
    }

    /// Returns the model of a phase; `hold` belongs to both.
    fn of_phase(phase: &Phase) -> Option<Self> {
        match phase {
            Phase::Ramp { .. } | Phase::Step { .. } | Phase::Spike { .. } => Some(Self::Closed),
            Phase::Arrivals { .. } | Phase::Recorded { .. } => Some(Self::Open),
            Phase::Hold { .. } => None,
        }
    }
}

/// A phase as it is written, with its node.
struct PhaseNode<'n> {
    node: &'n Node,
    shape: PhaseShape<'n>,
}

/// What a written phase stands for.
enum PhaseShape<'n> {
    /// Phases that do not depend on those before them.
    Plain(Vec<Phase>),
    /// A rise and a return to the level before.
    Spike(SpikeShape),
    /// Phases that are repeated.
    Loop { times: u64, phases: Vec<PhaseNode<'n>> },
}

/// A rise and a return, to a level that the phases before it decide.
#[derive(Clone, Copy)]
struct SpikeShape {
    to: Level,
    over: Duration,
    span: Duration,
    spacing: Spacing,
}

/// A number of users, or a rate of arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    Users(u32),
    Rate(f64),
}

/// Reads the list of phases and checks their order. Files with moments are relative to `folder`.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<Vec<Phase>> {
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
    Some(PhaseNode { node, shape: shape? })
}

fn read_hold(reader: &mut Reader<'_>, node: &Node) -> Option<Phase> {
    let fields = reader.fields(node, "`hold`", &["for"])?;
    let node = reader.require(&fields, "for", "`hold`", "hold: {for: 1m}")?;
    Some(Phase::Hold { span: positive_duration(reader, node, "`for`")? })
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

/// Reads a number of at least 1.
fn read_above_zero(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<u64> {
    let number = reader.quantity(node, what, parse_count)?;
    if number == 0 {
        reader.error(node.span.clone(), format!("{what} is zero"), "at least 1");
        return None;
    }
    Some(number)
}

/// Reads a number of users.
fn read_users(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<u32> {
    let users = reader.quantity(node, what, parse_count)?;
    let fits = u32::try_from(users).ok();
    if fits.is_none() {
        let most = u32::MAX;
        reader.error(node.span.clone(), "too many users", format!("at most {most}"));
    }
    fits
}

/// Reads a number of users, or a rate of arrivals: what has a unit of time is a rate.
fn read_level(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Level> {
    if node.scalar().is_some_and(|text| text.contains('/')) {
        return super::values::bounded_rate(reader, node, what).map(Level::Rate);
    }
    read_users(reader, node, what).map(Level::Users)
}

/// Reads the form of a change; linear if it is not written.
pub(crate) fn read_curve(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Curve> {
    let known = [("linear", Curve::Linear), ("exponential", Curve::Exponential)];
    node.map_or(Some(Curve::default()), |node| reader.one_of(node, "`curve`", &known))
}

/// Reads the distribution of the gaps between arrivals.
fn read_spacing(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Spacing> {
    let known = [("poisson", Spacing::Poisson), ("even", Spacing::Even)];
    node.map_or(Some(Spacing::default()), |node| reader.one_of(node, "`spacing`", &known))
}

const PHASES: [&str; 6] = ["ramp", "hold", "arrivals", "steps", "spike", "loop"];

/// Maximum number of phases, with those of loops and stairs counted one by one.
const PHASES_MAX: usize = 10_000;
