//! The phases of a load: how many users there are at each moment.

use std::sync::Arc;
use std::time::Duration;

use crate::scenario::node::Node;

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
        /// True if the phase also ends when all users have ended; then it is the last one.
        until_done: bool,
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
    /// Returns the length of all phases.
    pub fn length_of(phases: &[Self]) -> Duration {
        phases.iter().fold(Duration::ZERO, |sum, phase| sum.saturating_add(phase.length()))
    }

    /// Returns the length of the phase.
    pub fn length(&self) -> Duration {
        match *self {
            Self::Ramp { over, .. } => over,
            Self::Spike { over, span, .. } => over.saturating_mul(2).saturating_add(span),
            Self::Hold { span, .. }
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
    pub(super) fn of_phase(phase: &Phase) -> Option<Self> {
        match phase {
            Phase::Ramp { .. } | Phase::Step { .. } | Phase::Spike { .. } => Some(Self::Closed),
            Phase::Arrivals { .. } | Phase::Recorded { .. } => Some(Self::Open),
            Phase::Hold { .. } => None,
        }
    }
}

/// A phase as it is written, with its node.
pub(super) struct PhaseNode<'n> {
    pub(super) node: &'n Node,
    pub(super) shape: PhaseShape<'n>,
}

/// What a written phase stands for.
pub(super) enum PhaseShape<'n> {
    /// Phases that do not depend on those before them.
    Plain(Vec<Phase>),
    /// A rise and a return to the level before.
    Spike(SpikeShape),
    /// Phases that are repeated.
    Loop { times: u64, phases: Vec<PhaseNode<'n>> },
}

/// A rise and a return, to a level that the phases before it decide.
#[derive(Clone, Copy)]
pub(super) struct SpikeShape {
    pub(super) to: Level,
    pub(super) over: Duration,
    pub(super) span: Duration,
    pub(super) spacing: Spacing,
}

/// A number of users, or a rate of arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Level {
    Users(u32),
    Rate(f64),
}

/// Maximum number of phases, with those of loops and stairs counted one by one.
pub(super) const PHASES_MAX: usize = 10_000;
