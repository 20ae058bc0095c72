//! The names of steps and transactions by number.

/// Index of the name of a step or transaction in
/// [`Program::step_names`](super::Program::step_names).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepIndex(u8);

impl StepIndex {
    /// Returns the index of name number `number`. A scenario has at most
    /// [`STEP_NAMES_MAX`](throng_measure::STEP_NAMES_MAX) of them.
    pub(super) fn new(number: u32) -> Self {
        Self(u8::try_from(number).expect("the reader has counted the names"))
    }

    /// Returns the number.
    pub fn get(self) -> usize {
        self.0.into()
    }
}
