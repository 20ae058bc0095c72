//! What a scenario without mistakes is warned of.

use serde_json::{Value, json};
use throng_load::scenario::Diagnostics;
use throng_report::export::warning_annotation;

use super::EndedRun;
use super::flags::Run;
use super::plan::RunPlan;
use crate::output;

impl EndedRun {
    /// Returns the JSON of the run, with the warnings about its scenario.
    pub(super) fn json(&self) -> Value {
        let mut value = self.outcome.result.json();
        value["warnings"] = json!(self.warnings);
        value
    }
}

impl Run {
    /// Prints the warnings about the scenario, each as an annotation too if that is wanted.
    pub(super) fn warn(&self, plan: &RunPlan) {
        let scenario = &plan.header.scenario;
        let warnings = plan.load.program().warnings(&scenario.path, &scenario.source);
        for warning in warnings.iter().filter(|_| self.annotations) {
            let text = format!("{}: {}", warning.title, warning.label);
            let path = &scenario.path;
            output::print_error(warning_annotation(path, warnings.line_of(warning), &text));
        }
        print_warnings(&warnings);
    }
}

/// Prints warnings about a scenario, if there are any.
pub(crate) fn print_warnings(warnings: &Diagnostics) {
    if !warnings.is_empty() {
        output::print_error(warnings.render(output::stderr_has_colors()));
    }
}
