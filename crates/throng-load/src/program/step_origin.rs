//! The step of the scenario from which an op was compiled.

/// The place of a step in its scenario, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepOrigin {
    /// Number of the step in its class: `3`, or `5.2` for the second step in the loop that is step
    /// 5, or `on_message[1].2` for that of a rule; empty for the end of a program, which is no
    /// step.
    pub number: Box<str>,
    /// Name of the kind of step: `expect`.
    pub kind: &'static str,
    /// Line of the step in the file, from 1; 0 for the end of a program.
    pub line: u32,
}

impl StepOrigin {
    /// Returns the place of rule `number` of a class, whose steps are `on_message[2].1` and so on.
    pub(super) fn rule(number: usize, line: u32) -> Self {
        Self { number: format!("on_message[{number}]").into(), kind: "on_message", line }
    }

    /// Returns the place of step `number` of the list in this step.
    pub(super) fn inner(&self, number: usize, kind: &'static str, line: u32) -> Self {
        let number = match &*self.number {
            "" => number.to_string(),
            outer => format!("{outer}.{number}"),
        };
        Self { number: number.into(), kind, line }
    }
}
