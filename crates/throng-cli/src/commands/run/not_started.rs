//! The JSON of a run that was not started.

use serde::Serialize;

use crate::scenario_warning::ScenarioWarning;

/// Why a run was not started, and what was done nevertheless.
#[derive(Debug, Serialize)]
pub(super) struct NotStarted {
    schema: &'static str,
    /// The reason, as it was printed.
    error: String,
    /// The warnings about the scenario.
    warnings: Vec<ScenarioWarning>,
    /// How `teardown` ended; `None` if the scenario has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    teardown: Option<TeardownEnd>,
}

/// How `teardown` ended, or why it was not taken.
#[derive(Debug, Serialize)]
pub(super) struct TeardownEnd {
    ok: bool,
    error: Option<String>,
}

impl NotStarted {
    pub(super) fn new(error: String, warnings: Vec<ScenarioWarning>) -> Self {
        Self { schema: SCHEMA, error, warnings, teardown: None }
    }

    pub(super) fn with_teardown(self, teardown: Option<TeardownEnd>) -> Self {
        Self { teardown, ..self }
    }
}

impl TeardownEnd {
    /// Creates it with the error, or without one if all steps were taken and none failed.
    pub(super) fn new(error: Option<String>) -> Self {
        Self { ok: error.is_none(), error }
    }
}

/// The name and version of the format.
const SCHEMA: &str = "throng.not_started/1";
