//! How large steps are once `foreach` has repeated them: counted before they are.

use std::ops::Range;

use super::node::{Kind, Node};
use super::reader::Reader;
use super::step::Step;

/// The size of steps in the program, where those of a `foreach` stand once for each value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExpandedSize {
    steps: u64,
    /// Bytes of their texts.
    bytes: u64,
}

impl ExpandedSize {
    /// Returns the size of a step that has no steps in it.
    pub(super) fn of_step(node: &Node) -> Self {
        Self { steps: 1, bytes: text_bytes(node) }
    }

    /// Returns the size of a step that has steps of this size in it.
    pub(super) fn of_body(inner: Self) -> Self {
        Self { steps: 1, bytes: 0 }.plus(inner)
    }

    /// Returns the size of a list of steps.
    pub(crate) fn of_list(steps: &[Step]) -> Self {
        steps.iter().fold(Self::default(), |size, step| size.plus(step.size))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            steps: self.steps.saturating_add(other.steps),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Returns the size of steps of this size that stand once for each of so many values.
    pub(crate) fn repeated(self, values: usize) -> Self {
        let values = values as u64;
        Self { steps: self.steps.saturating_mul(values), bytes: self.bytes.saturating_mul(values) }
    }
}

impl Reader<'_> {
    /// Adds the size of a step that stands in no other one. Reports the step with which the
    /// scenario is too large.
    pub(super) fn add_size(&mut self, step: &Step) -> bool {
        let was_small = problem(self.size).is_none();
        self.size = self.size.plus(step.size);
        let problem = problem(self.size).filter(|_| was_small);
        if let Some((title, label)) = &problem {
            let label = format!("{label}, and passes them here");
            self.error(step.span.clone(), format!("the scenario has {title}"), label).help =
                Some(HELP.to_owned());
        }
        problem.is_none()
    }

    /// Reports a step that is too large by itself. `name` is the place of its name.
    pub(super) fn check_size(&mut self, step: &Step, name: Range<usize>) -> bool {
        let problem = problem(step.size);
        if let Some((title, label)) = &problem {
            let title = format!("this `{}` has {title}", step.name);
            self.error(name, title, &**label).help = Some(HELP.to_owned());
        }
        problem.is_none()
    }
}

/// Returns what is too large, and the limit.
fn problem(size: ExpandedSize) -> Option<(String, String)> {
    if size.steps > STEPS_MAX {
        let title = format!("{} steps", size.steps);
        return Some((title, format!("a scenario has at most {STEPS_MAX}")));
    }
    (size.bytes > STEP_BYTES_MAX).then(|| {
        let title = format!("{} MiB of texts", size.bytes >> 20);
        (title, format!("the steps of a scenario have at most {} MiB", STEP_BYTES_MAX >> 20))
    })
}

fn text_bytes(node: &Node) -> u64 {
    match &node.kind {
        Kind::Nothing => 0,
        Kind::Scalar(text) => text.len() as u64,
        Kind::List(items) => items.iter().map(text_bytes).sum(),
        Kind::Map(entries) => {
            entries.iter().map(|(key, value)| text_bytes(key) + text_bytes(value)).sum()
        }
    }
}

/// Most steps of a scenario: those of a `foreach` count once for each value.
const STEPS_MAX: u64 = 100_000;

/// Most bytes of the texts of all steps, counted in the same way.
const STEP_BYTES_MAX: u64 = 64 << 20;

const HELP: &str = "the steps of a `foreach` count once for each value; `repeat` and `every` \
                    count their steps once, and a data file gives users values";
