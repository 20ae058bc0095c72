//! Warnings about a scenario, in JSON and on standard error.

use serde::Serialize;
use throng_load::program::Program;
use throng_load::scenario::Diagnostics;

use crate::output;

/// A warning about a scenario without mistakes, as it stands in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ScenarioWarning {
    /// The line, from 1.
    line: usize,
    /// What may happen.
    title: String,
    /// What the line has to do with it.
    label: String,
    /// What to do.
    help: Option<String>,
}

impl ScenarioWarning {
    /// Returns the warnings about the program of `source`.
    pub(crate) fn of_program(program: &Program, source: &str) -> Vec<Self> {
        Self::list(&program.warnings("", source))
    }

    /// Returns each warning.
    pub(crate) fn list(warnings: &Diagnostics) -> Vec<Self> {
        let each = warnings.iter().map(|warning| Self {
            line: warnings.line_of(warning),
            title: warning.title.clone(),
            label: warning.label.clone(),
            help: warning.help.clone(),
        });
        each.collect()
    }
}

/// Prints warnings about a scenario, if there are any.
pub(crate) fn print_warnings(warnings: &Diagnostics) {
    if !warnings.is_empty() {
        output::print_mistakes(warnings);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use throng_load::scenario::Diagnostic;

    use super::*;

    #[test]
    fn a_warning_has_its_line_and_its_words() {
        let warning = Diagnostic::new(4..5, "a title", "a label").help("some help");
        let list =
            ScenarioWarning::list(&Diagnostics::warnings("s.yaml", "one\ntwo", vec![warning]));
        let expected = json!([
            { "line": 2, "title": "a title", "label": "a label", "help": "some help" }
        ]);
        assert_eq!(json!(list), expected);
    }
}
