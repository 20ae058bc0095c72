//! Runs from the logs of other load generators.
//!
//! [`import_log`] recognises the tool of a log, reads it, and writes a run file of throng. What a
//! log does not say is absent in the run file, never 0 and never a guess. Every kind of log has a
//! module; [`LOG_IMPORTERS`] is the table of them.

mod artillery_report;
mod count;
mod counted_lines;
mod json_place;
mod k6_points;
mod k6_summary;
mod known_latency;
mod log_importer;
mod run_draft;
mod tsung_log;
mod utc;

use throng_load::scenario::{Diagnostic, Diagnostics};
use throng_measure::runfile::{HEAD_BYTES, is_run_file};

pub use log_importer::LogImporter;

use crate::source::Source;
use crate::tools::recognise;
use crate::translator::Translator;
use crate::{FidelityReport, ImportOptions};
use artillery_report::ARTILLERY_REPORT;
use k6_points::K6_POINTS;
use k6_summary::K6_SUMMARY;
use tsung_log::TSUNG_LOG;

/// All importers of logs. The first one that recognises a file reads it.
pub const LOG_IMPORTERS: &[LogImporter] = &[ARTILLERY_REPORT, K6_POINTS, K6_SUMMARY, TSUNG_LOG];

/// An imported log.
#[derive(Clone, Debug)]
pub struct LogImport {
    /// The run file of throng, as JSON lines.
    pub run_file: Vec<u8>,
    /// How exactly the run file says what the log says.
    pub fidelity: FidelityReport,
}

/// Imports the log `name` with this text. `tool` is the tool whose log it is, in letters of either
/// case; `None` recognises it.
///
/// # Errors
/// No importer recognises the log, or it has mistakes.
pub fn import_log(text: &str, name: &str, tool: Option<&str>) -> Result<LogImport, Diagnostics> {
    let source = Source { name, text };
    let found = recognise_log(&source, tool);
    let Some(importer) = found else {
        return Err(Diagnostics::new(name, text, vec![not_recognised(&source, tool)]));
    };
    let options = ImportOptions::default();
    let mut translator = Translator::new(source, &options);
    let run_file = (importer.read)(&mut translator);
    let Translator { mistakes, mut entries, .. } = translator;
    let Some(run_file) = run_file.filter(|_| mistakes.is_empty()) else {
        return Err(Diagnostics::new(name, text, mistakes));
    };
    entries.sort_by_key(|entry| entry.line);
    let fidelity = FidelityReport { tool: importer.tool, entries };
    Ok(LogImport { run_file, fidelity })
}

/// Reports whether an importer of logs recognises the file `name` with this text.
pub fn is_log(text: &str, name: &str) -> bool {
    recognise_log(&Source { name, text }, None).is_some()
}

/// Returns the importer that recognises the log, or the one of `tool`. A tool has several kinds of
/// logs: where none is recognised, the first reads it and says what is wrong.
fn recognise_log(source: &Source<'_>, tool: Option<&str>) -> Option<&'static LogImporter> {
    let is_of_tool =
        |importer: &&LogImporter| tool.is_none_or(|tool| tool.eq_ignore_ascii_case(importer.tool));
    let mut importers = LOG_IMPORTERS.iter().filter(is_of_tool);
    let recognised = importers.clone().find(|importer| (importer.recognises)(source));
    recognised.or_else(|| importers.next().filter(|_| tool.is_some()))
}

/// Returns the mistake of a log that is given for a scenario; `None` if the file is no log.
pub(crate) fn log_instead(source: &Source<'_>) -> Option<Diagnostic> {
    let importer = recognise_log(source, None)?;
    let title = format!("this is a log of {}, not a scenario", importer.tool);
    let label = "expected a scenario: what to load, not what was measured";
    let help = format!("import the log as a run: throng import-log {}", source.name);
    Some(Diagnostic::new(first_line(source), title, label).help(help))
}

fn not_recognised(source: &Source<'_>, tool: Option<&str>) -> Diagnostic {
    let Source { name, text } = source;
    let span = first_line(source);
    if text.trim().is_empty() {
        return Diagnostic::new(0..0, "this log is empty", "expected the log of a load generator");
    }
    let head = &text.as_bytes()[..text.len().min(HEAD_BYTES)];
    if is_run_file(head) {
        return Diagnostic::new(span, "this is a run file of throng already", "expected a log")
            .help(format!("show it: throng report {name}"));
    }
    if let Some(importer) = recognise(text, name) {
        let title = format!("this is a scenario of {}, not a log", importer.tool);
        return Diagnostic::new(span, title, "expected a log: what was measured, not what to load")
            .help(format!("import the scenario: throng import {name}"));
    }
    let kinds: Vec<_> = LOG_IMPORTERS.iter().map(|importer| importer.reads).collect();
    let title = match tool {
        Some(tool) => format!("there is no importer for logs of `{tool}`"),
        None => "no importer recognises this log".to_owned(),
    };
    Diagnostic::new(span, title, format!("expected one of these: {}", kinds.join("; ")))
        .help("--tool names the tool whose log it is")
}

fn first_line(source: &Source<'_>) -> std::ops::Range<usize> {
    0..source.text.lines().next().unwrap_or_default().len()
}
