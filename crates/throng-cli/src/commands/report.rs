//! `throng report`: shows a run file as text, as a page, or in a format for other programs.

use std::path::PathBuf;

use clap::Args;
use throng_report::export::ReportFormat;
use throng_report::render::search_sentence;

use crate::exit::exit_codes;
use crate::report_files::{ReportFile, RunReader};
use crate::search_file::{self, is_search_file_at};
use crate::{Exit, Failure, output};

/// Show the report of a run file, even of a run that was killed, or of a search
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// The file written by `throng run` or `throng find`
    #[arg(value_name = "RUN.jsonl", default_value = "run.jsonl")]
    file: PathBuf,
    /// Print the summary as JSON: the same as `--format json`
    #[arg(long, conflicts_with_all = ["format", "output"])]
    json: bool,
    /// Format: text, html, json, csv, markdown, junit, github, annotations or codequality [default:
    /// by the extension of -o, else text]
    #[arg(long, value_name = "FORMAT", value_parser = ReportFormat::named)]
    format: Option<ReportFormat>,
    /// Write the report to a file; its extension says the format: .html, .htm, .json, .csv, .md,
    /// .markdown, .xml or .txt; `-` is standard output; repeatable
    #[arg(long, short, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Append the report to the summary of a step of GitHub Actions, the file that
    /// $GITHUB_STEP_SUMMARY names
    #[arg(long)]
    step_summary: bool,
    /// Show the whole report as text: all tables and percentiles, costs, probes, and the evidence
    /// and remedy of each finding [default: one screen of it]
    #[arg(long, conflicts_with_all = ["json", "check"])]
    details: bool,
    /// Print only the outcome and its reasons, in a few lines; -o writes its files all the same
    #[arg(long, conflicts_with = "json")]
    check: bool,
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  throng report
  throng report monday.jsonl --details
  throng report run.jsonl -o report.html
  throng report run.jsonl -o tests.xml -o rows.csv --step-summary
  throng report run.jsonl --check && ./deploy.sh
  throng report run.jsonl --format annotations
  throng report run.jsonl --format codequality -o gl-code-quality-report.json
  throng report run.jsonl --format markdown | gh pr comment --body-file -
  throng report run.jsonl --json | jq .connect.latency_us.p99
  throng report find.jsonl -o knee.html

The exit code is that of the run, or 2 if the file cannot be read. A file without its last line is
that of a run that was killed or is still running: it is incomplete.

",
    exit_codes!()
);

impl Report {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let format = if self.json { Some(ReportFormat::Json) } else { self.format };
        if self.check && self.output.is_empty() && format.is_some() {
            return Err(Failure::new(
                "--check prints the outcome alone, so --format says nothing: name a file with -o, \
                 or leave out one of both",
            ));
        }
        let mut files = Vec::new();
        for path in &self.output {
            files.push(ReportFile::new(path, format)?);
        }
        if self.step_summary {
            files.push(ReportFile::step_summary()?);
        }
        // What was asked for is in files: the screen would say it twice.
        let default = files.is_empty().then_some(ReportFormat::Text);
        let printed = format.filter(|_| self.output.is_empty()).or(default);
        if let Some(format) = printed.filter(|_| !self.check) {
            files.push(ReportFile::stdout(format));
        }
        if is_search_file_at(&self.file) {
            return self.report_search(&files);
        }
        let reader = RunReader { path: &self.file, with_details: self.details };
        let run = reader.write(&files)?;
        for file in &files {
            if let Some(path) = file.path() {
                output::say(format!("{}", path.display()));
            }
        }
        let shows_warnings = |file: &ReportFile| file.format().shows_warnings();
        if !files.iter().any(shows_warnings) {
            run.warnings.iter().for_each(output::print_error);
        }
        if self.check {
            output::say(&run.outcome);
        }
        Ok(run.exit.into())
    }

    /// Writes the reports of a search: `throng find` wrote the file.
    fn report_search(&self, files: &[ReportFile]) -> Result<Exit, Failure> {
        let record = search_file::read(&self.file)?;
        files.iter().try_for_each(search_file::check)?;
        for file in files {
            search_file::write(&record, file)?;
            if let Some(path) = file.path() {
                output::say(format!("{}", path.display()));
            }
        }
        if self.check {
            output::say(search_sentence(&record));
        }
        Ok(Exit::of_search(&record))
    }
}
