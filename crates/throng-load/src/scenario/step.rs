//! A step: how its kind is written, what it does, and what follows from a list of steps.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use super::Protocol;
pub(crate) use super::flow::Flow;
pub(crate) use super::node::Node;
pub(crate) use super::reader::Reader;
pub(crate) use super::step_list::StepPlace;
pub(crate) use crate::program::compiler::Compiler;

/// A kind of step.
#[derive(Debug)]
pub(crate) struct StepKind {
    /// Name in a scenario.
    pub(crate) name: &'static str,
    /// Example, shown where the value is missing.
    pub(crate) example: &'static str,
    /// Protocols that have the step.
    pub(crate) protocols: &'static [Protocol],
    /// Form in which it is written, with its reader.
    pub(crate) form: StepForm,
}

/// Form of a step, with the function that reads it.
#[derive(Debug)]
pub(crate) enum StepForm {
    /// `name: value`.
    Value(fn(&mut Reader<'_>, &Node) -> ReadAction),
    /// `name`, or `name: value`.
    OptionalValue(fn(&mut Reader<'_>, Option<&Node>) -> ReadAction),
    /// `name: {..., do: [...]}`, with further steps in it.
    Body(fn(&mut Reader<'_>, &Node, &StepPlace) -> ReadAction),
}

/// Result of reading a step; `None` after a mistake, which has been reported.
pub(crate) type ReadAction = Option<Box<dyn Action>>;

/// What a step does, with its values.
pub(crate) trait Action: Debug + Send + Sync {
    /// Reports the step if it is impossible at its place. Tells `flow` what holds after it.
    fn check(&self, flow: &mut Flow<'_, '_>);

    /// Appends the step's ops.
    fn compile(&self, compiler: &mut Compiler<'_>);

    /// Returns what capacity and calibration must know of the step.
    fn facts(&self) -> StepFacts;
}

/// A step of a user.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) name: &'static str,
    /// First line of the step in the source.
    pub(super) span: Range<usize>,
    pub(crate) action: Arc<dyn Action>,
}

/// What capacity and calibration must know of a step, or of steps that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepFacts {
    /// Shortest time that it takes; `None` if it has no end.
    pub(crate) time_min: Option<Duration>,
    /// True if it closes the connection.
    pub(crate) closes: bool,
    /// Messages that it sends or waits for.
    pub(crate) traffic: Traffic,
}

/// The messages of a scenario's users, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traffic {
    /// No messages.
    #[default]
    Silent,
    /// Messages without an answer, or whose answers no user waits for.
    Sent,
    /// Messages whose answers the users wait for.
    Answered,
}

impl StepFacts {
    /// Returns the facts of a step that takes no time of its own and leaves the connection open.
    pub(crate) const fn at_once(traffic: Traffic) -> Self {
        Self { time_min: Some(Duration::ZERO), closes: false, traffic }
    }

    /// Returns the facts of steps that follow one another.
    pub(crate) fn of(steps: &[Step]) -> Self {
        steps.iter().map(|step| step.action.facts()).fold(
            Self::at_once(Traffic::Silent),
            |all, next| Self {
                time_min: all.time_min.zip(next.time_min).map(|(a, b)| a.saturating_add(b)),
                closes: all.closes || next.closes,
                traffic: all.traffic.max(next.traffic),
            },
        )
    }

    /// Reports whether users with these steps close their connections before the run ends.
    pub(crate) fn ends_before_run(&self) -> bool {
        self.closes || self.time_min.is_some()
    }
}

/// Reports every step that is impossible at its place.
pub(crate) fn check_steps(steps: &[Step], flow: &mut Flow<'_, '_>) {
    for step in steps {
        if !flow.reach(step.name, &step.span) {
            return;
        }
        step.action.check(flow);
    }
}

/// Appends the ops of steps.
pub(crate) fn compile_steps(steps: &[Step], compiler: &mut Compiler<'_>) {
    steps.iter().for_each(|step| step.action.compile(compiler));
}
