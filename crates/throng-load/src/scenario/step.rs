//! A step: how its kind is written, what it does, and what follows from a list of steps.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use throng_measure::Operation;

use super::Protocol;
use super::expanded_size::ExpandedSize;
use super::flow::Flow;
use super::node::Node;
use super::reader::Reader;
use super::step_list::StepPlace;
use crate::program::compiler::Compiler;

/// A kind of step.
#[derive(Debug)]
pub(crate) struct StepKind {
    /// Name in a scenario.
    pub(crate) name: &'static str,
    /// Example, shown where the value is missing.
    pub(crate) example: &'static str,
    /// Form in which it is written, with its reader.
    pub(crate) form: StepForm,
    /// What its time is measured as.
    pub(crate) measured: StepMeasure,
}

impl StepKind {
    /// Creates a kind whose time is not measured.
    pub(crate) const fn new(name: &'static str, example: &'static str, form: StepForm) -> Self {
        Self { name, example, form, measured: StepMeasure::No }
    }

    /// Sets what its time is measured as.
    #[must_use]
    pub(crate) const fn measured(self, measured: StepMeasure) -> Self {
        Self { measured, ..self }
    }
}

/// What the time of a step is measured as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepMeasure {
    /// Nothing: it does not wait for the server.
    No,
    /// Nothing but the name that a scenario gives it.
    ByName,
    /// An operation, and the name that a scenario gives it.
    As(Operation),
}

/// Returns the steps that a list of users of a protocol may have, in groups.
pub(crate) type StepsOf = fn(Protocol) -> &'static [&'static [StepKind]];

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

    /// Returns the size of the steps in it, as they stand in the program.
    fn inner_size(&self) -> ExpandedSize {
        ExpandedSize::default()
    }

    /// Appends the step's ops, each with its facts.
    fn compile(&self, compiler: &mut Compiler<'_>);
}

/// A step of a user.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) name: &'static str,
    /// First line of the step in the source.
    pub(super) span: Range<usize>,
    /// Number of that line, from 1.
    pub(crate) line: u32,
    pub(crate) action: Arc<dyn Action>,
    /// Size of the step and of those in it.
    pub(super) size: ExpandedSize,
    /// Name that the scenario gives it, to measure it apart.
    pub(super) own_name: Option<String>,
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

/// Returns the size of a list of steps.
pub(crate) fn size_of(steps: &[Step]) -> ExpandedSize {
    steps.iter().fold(ExpandedSize::default(), |size, step| size.plus(step.size))
}

/// Appends the ops of steps.
pub(crate) fn compile_steps(steps: &[Step], compiler: &mut Compiler<'_>) {
    for (index, step) in steps.iter().enumerate() {
        compiler.step(index + 1, step.name, step.line, |compiler| {
            compiler.begin_step(step.own_name.as_deref());
            step.action.compile(compiler);
        });
    }
}
