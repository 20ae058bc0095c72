//! The file that says what to run: a scenario, or a file of another tool, which is imported.

use std::io::ErrorKind;
use std::path::Path;
use std::string::FromUtf8Error;

use clap::Args;
use throng_base::input_file::{self, SCENARIO_BYTES_MAX};
use throng_base::units::{nearest, show_count, show_rate};
use throng_import::{FidelityReport, ImportOptions, import, is_log, recognise};
use throng_load::scenario::{
    Diagnostic, Diagnostics, LoadPeak, Params, Quantity, Scenario, Target, evaluate, read_params,
    with_params,
};

use crate::{Failure, quantity};

/// What a command changes of the scenario.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ScenarioChanges {
    /// Largest number of users, in place of the scenario's own; all levels of the load change by
    /// the same factor
    #[arg(long = "users", value_name = "N", value_parser = quantity::users)]
    peak_users: Option<u32>,
    /// Highest rate of arrivals, in place of the scenario's own; all rates of the load change by
    /// the same factor
    #[arg(long = "arrivals", value_name = "RATE", value_parser = quantity::rate,
        conflicts_with = "peak_users")]
    peak_arrivals: Option<f64>,
    /// Value of a parameter of the scenario; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = read_parameter)]
    set: Vec<(String, Quantity)>,
}

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
            ScenarioFileError::Mistakes(mistakes) => Self::mistakes(mistakes),
        }
    }
}

impl ScenarioFile {
    /// Reads the file at `path`, and imports it if it is one of another tool. `target` is the
    /// target that the user of the command wants.
    pub(crate) fn read(path: &Path, target: Option<&Target>) -> Result<Self, ScenarioFileError> {
        let name = path.display().to_string();
        let bytes = input_file::read(path, SCENARIO_BYTES_MAX).map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::NotFound => "\n  `throng init URL` writes a first scenario",
                _ => "",
            };
            let text = format!("cannot read {name}: {error}{remedy}");
            ScenarioFileError::Unreadable(Failure::new(text))
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|error| ScenarioFileError::Mistakes(not_utf8(&name, &error)))?;
        if recognise(&text, &name).is_none() && !is_log(&text, &name) {
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

    /// Returns the scenario with these changes, and keeps them in the text.
    pub(crate) fn changed(
        &mut self,
        changes: &ScenarioChanges,
    ) -> Result<Scenario, ScenarioFileError> {
        if !changes.set.is_empty() {
            let known = read_params(&self.text, &self.name).map_err(ScenarioFileError::Mistakes)?;
            changes.check(&self.name, &known).map_err(ScenarioFileError::Unreadable)?;
            self.text = with_params(&self.text, &changes.set);
        }
        let peak = changes.peak();
        let scenario = Scenario::parse_with_peak(&self.text, &self.name, peak)
            .map_err(ScenarioFileError::Mistakes)?;
        match peak {
            Some(LoadPeak::Users(users)) => {
                self.add_comment(&format!("--users {}", show_count(users.into())));
            }
            Some(LoadPeak::Arrivals(rate)) => {
                self.add_comment(&format!("--arrivals {}", show_rate(rate)));
            }
            None => {}
        }
        Ok(scenario)
    }

    /// Adds a comment at the end, where it moves no line.
    fn add_comment(&mut self, flag: &str) {
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(&format!("# This run had {flag}: the peak of the load.\n"));
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

impl ScenarioChanges {
    /// Returns the peak of the load in place of the scenario's own.
    pub(crate) fn peak(&self) -> Option<LoadPeak> {
        let arrivals = || self.peak_arrivals.map(LoadPeak::Arrivals);
        self.peak_users.map(LoadPeak::Users).or_else(arrivals)
    }

    /// Refuses a parameter that the scenario does not have.
    fn check(&self, file: &str, known: &Params) -> Result<(), Failure> {
        let names = || known.iter().map(|(name, _)| name.as_str());
        let Some((name, _)) = self.set.iter().find(|(name, _)| !names().any(|one| one == name))
        else {
            return Ok(());
        };
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "it has no `params`".to_owned(),
            None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
        };
        Err(Failure::new(format!("--set {name}: {file} has no such parameter; {hint}")))
    }
}

/// Returns the mistake in a file whose text is not UTF-8, at the first byte at fault.
fn not_utf8(name: &str, error: &FromUtf8Error) -> Diagnostics {
    let at = error.utf8_error().valid_up_to();
    let byte = error.as_bytes()[at];
    // What is shown in place of the byte has three of them.
    let text = String::from_utf8_lossy(error.as_bytes());
    let span = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
    let mistake = Diagnostic::new(span, "the text is not UTF-8", format!("the byte 0x{byte:02x}"))
        .help(format!("save it as UTF-8; from Latin-1: iconv -f latin1 -t utf-8 {name}"));
    Diagnostics::new(name, &text, vec![mistake])
}

/// Parses the value of `--set`: `users=10k`.
fn read_parameter(text: &str) -> Result<(String, Quantity), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as users=10k")?;
    let value = evaluate(value, &|_| None).map_err(|error| error.problem)?;
    Ok((name.trim().to_owned(), value))
}
