//! How large steps are once `foreach` has repeated them: counted before they are.

use super::node::{Kind, Node};

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

    /// Returns what is too large, and the limit.
    pub(super) fn problem(self) -> Option<(String, String)> {
        if self.steps > STEPS_MAX {
            let title = format!("{} steps", self.steps);
            return Some((title, format!("a scenario has at most {STEPS_MAX}")));
        }
        (self.bytes > STEP_BYTES_MAX).then(|| {
            let title = format!("{} MiB of texts", self.bytes >> 20);
            (title, format!("the steps of a scenario have at most {} MiB", STEP_BYTES_MAX >> 20))
        })
    }
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
