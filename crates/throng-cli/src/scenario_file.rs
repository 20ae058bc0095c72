//! The file that says what to run: a scenario, or a file of another tool, which is imported.

use std::path::Path;

use throng_import::{FidelityReport, ImportOptions, import, recognise};
use throng_load::scenario::{Diagnostics, Scenario, Target};

use crate::{Failure, output};

/// The text of a scenario.
#[derive(Debug)]
pub(crate) struct ScenarioFile {
    /// Its path, as it was typed.
    pub(crate) name: String,
    /// The scenario in YAML.
    pub(crate) text: String,
    /// How exactly the text does what the file says, if the file is another tool's.
    pub(crate) fidelity: Option<FidelityReport>,
}

/// Why there is no scenario.
#[derive(Debug)]
pub(crate) enum ScenarioFileError {
    /// The file cannot be read.
    Unreadable(Failure),
    /// The file has mistakes.
    Mistakes(Diagnostics),
}

impl From<ScenarioFileError> for Failure {
    fn from(error: ScenarioFileError) -> Self {
        match error {
            ScenarioFileError::Unreadable(failure) => failure,
            ScenarioFileError::Mistakes(mistakes) => {
                Self::rendered(mistakes.render(output::stderr_has_colors()))
            }
        }
    }
}

impl ScenarioFile {
    /// Reads the file at `path`, and imports it if it is one of another tool. `target` is the
    /// target that the user of the command wants.
    pub(crate) fn read(path: &Path, target: Option<&Target>) -> Result<Self, ScenarioFileError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            ScenarioFileError::Unreadable(Failure::new(format!("cannot read {name}: {error}")))
        })?;
        if recognise(&text, &name).is_none() {
            return Ok(Self { name, text, fidelity: None });
        }
        let options = ImportOptions { target: target.cloned() };
        let imported = import(&text, &name, &options).map_err(ScenarioFileError::Mistakes)?;
        Ok(Self { name, text: imported.scenario, fidelity: Some(imported.fidelity) })
    }

    /// Returns the scenario.
    pub(crate) fn scenario(&self) -> Result<Scenario, ScenarioFileError> {
        Scenario::parse(&self.text, &self.name).map_err(ScenarioFileError::Mistakes)
    }

    /// Refuses a file whose import lacks traffic.
    pub(crate) fn check_whole(&self) -> Result<(), Failure> {
        let Some(report) = self.fidelity.as_ref().filter(|report| report.is_partial()) else {
            return Ok(());
        };
        let name = &self.name;
        Err(Failure::new(format!(
            "the scenario of {name} lacks a part of the file\n{report}\n  write the scenario with \
             `throng import {name} -o scenario.yaml`, add what is missing, and run it; --force \
             runs it as it is"
        )))
    }
}
