//! The user's next move in its program.

/// Next move of a user after a step, or after an input that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    /// Run the next op.
    Next,
    /// Run the present op, again or for the first time.
    Again,
    /// Run the op at this place.
    Go(u32),
    /// Run the next op after the caller has handed the output to the kernel.
    Flush,
    /// Wait in the present op.
    Wait,
    /// Wait before the op at this place.
    WaitAt(u32),
}
