//! A trial of a scenario: one user, once through its steps.

use std::time::Duration;

use super::plan::{LoadError, LoadOptions, LoadPlan};
use super::solo;
use crate::program::Program;
use crate::scenario::Scenario;

/// The one user of a trial, and how far its steps are cut.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Index of its class in the scenario.
    pub class: usize,
    /// Number of the user.
    pub user: u64,
    /// Turns of each loop at most.
    pub turns: u64,
    /// False to shorten each `wait` to nothing.
    pub waits: bool,
    /// Time after which the user is stopped.
    pub span: Duration,
}

impl Trial {
    /// Returns the number of the first user of class `class` in a run of the scenario.
    pub fn first_user_of(scenario: &Scenario, class: usize) -> u64 {
        let program = Program::compile(scenario);
        // A block of users as long as the sum of the weights has each class.
        (0..).find(|user| program.class_of(*user) == class).unwrap_or(0)
    }

    /// Plans the trial. It sends no probes.
    ///
    /// # Errors
    /// Those of [`LoadPlan::new`].
    pub fn plan(&self, scenario: &Scenario, options: &LoadOptions) -> Result<LoadPlan, LoadError> {
        let class = scenario.classes[self.class].clone();
        let mut plan = solo::plan(scenario, class, self.user, self.span, options)?;
        plan.program.cut_to_trial(self.turns, self.waits);
        Ok(plan)
    }
}
