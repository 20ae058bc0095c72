//! What a scenario without mistakes is warned of.

use throng_report::export::warning_annotation;

use super::flags::Run;
use super::plan::RunPlan;
use crate::output;
use crate::scenario_warning::print_warnings;

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
