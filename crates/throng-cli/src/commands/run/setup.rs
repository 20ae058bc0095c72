//! `setup` and `teardown` of a run, and what is told of them.

use serde_json::Value;
use throng_load::run::{LoadOptions, SetupError, SetupWatch, set_up, tear_down};
use throng_load::scenario::Scenario;

use super::Run;
use super::not_started::{NotStarted, TeardownEnd};
use super::plan::RunPlan;
use crate::interrupt::Interrupt;
use crate::{Exit, Failure, output};

impl Run {
    /// Takes the steps of the scenario's `setup`. Returns what they store.
    pub(super) fn set_up(
        &self,
        plan: &mut RunPlan,
        interrupt: &Interrupt,
    ) -> Result<Vec<Vec<u8>>, SetupError> {
        if plan.scenario.setup.is_none() {
            return Ok(Vec::new());
        }
        self.note("taking the steps of `setup`");
        let mut is_interrupted = || interrupt.requested().is_some();
        let watch = SetupWatch::silent(&mut is_interrupted);
        let stored = set_up(&mut plan.scenario, &plan.options, watch)?;
        plan.load.take_setup(&plan.scenario);
        plan.header.started = throng_driver::utc_now();
        Ok(stored)
    }

    /// Tells why `setup` failed, and removes what it has made, as far as that can be.
    pub(super) fn end_after_setup(
        &self,
        error: &SetupError,
        plan: &RunPlan,
        interrupt: &Interrupt,
    ) -> Result<Exit, Failure> {
        output::print_error(format!("{error}\nthe run was not started"));
        let by = interrupt.requested();
        let mut teardown = None;
        if let Some(why) = error.teardown_refused(&plan.scenario) {
            let sentence = format!("`teardown` was not taken: {why}");
            output::print_error(&sentence);
            teardown = Some(TeardownEnd::new(Some(sentence)));
        } else if plan.scenario.teardown.is_some() {
            self.note("taking the steps of `teardown`");
            let torn_down = self.tear_down(&plan.scenario, &plan.options, interrupt);
            let error = torn_down.err().map(|error| error.to_string());
            match &error {
                Some(error) => output::print_error(error),
                None => self.note(TORN_DOWN),
            }
            teardown = Some(TeardownEnd::new(error));
        }
        let not_started = NotStarted::new(error.to_string(), plan.warnings());
        self.write_not_started(not_started.with_teardown(teardown))?;
        Ok(by.map_or(Exit::CannotRun, |_| Exit::Incomplete))
    }

    /// Takes the steps of `teardown` after the run, and says how they went.
    pub(super) fn tear_down_after_run(
        &self,
        scenario: &Scenario,
        options: &LoadOptions,
        interrupt: &Interrupt,
    ) -> Result<(), SetupError> {
        let torn_down = self.tear_down(scenario, options, interrupt);
        match &torn_down {
            Err(error) => output::print_error(format!("{error}\nthe run itself is whole")),
            Ok(()) if scenario.teardown.is_some() => self.note(TORN_DOWN),
            Ok(()) => {}
        }
        torn_down
    }

    /// Writes the JSON again, with how `teardown` ended.
    pub(super) fn write_teardown(
        &self,
        mut summary: Value,
        torn_down: Result<(), SetupError>,
    ) -> Result<(), Failure> {
        let Some(json) = &self.json else { return Ok(()) };
        let end = TeardownEnd::new(torn_down.err().map(|error| error.to_string()));
        summary["teardown"] = serde_json::json!(end);
        json.write(&summary)
    }

    /// Takes the steps of the scenario's `teardown`, until a further request to end.
    fn tear_down(
        &self,
        scenario: &Scenario,
        options: &LoadOptions,
        interrupt: &Interrupt,
    ) -> Result<(), SetupError> {
        let before = interrupt.requested();
        let mut is_interrupted = || interrupt.requested() != before;
        tear_down(scenario, options, SetupWatch::silent(&mut is_interrupted))
    }
}

/// Says that all steps of `teardown` were taken, and none failed.
const TORN_DOWN: &str = "`teardown`: ok, no step failed";
