//! `throng report`: a run file in words, or as the summary that `throng run --json` writes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use clap::Args;
use throng_doctor::{History, diagnose};
use throng_load::scenario::Scenario;
use throng_report::render::render_text;
use throng_report::runfile::{ReadError, RunFileReader, ScenarioSource};
use throng_report::{Diagnosis, Judgement, RunExit, Summary, SummaryFold};

use super::run::text;
use crate::exit::exit_codes;
use crate::{Exit, Failure, output};

/// Show what a run file says, even one whose run was killed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// The file that `throng run` wrote
    #[arg(value_name = "RUN.jsonl", default_value = "run.jsonl")]
    file: PathBuf,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  throng report
  throng report monday.jsonl
  throng report run.jsonl --json | jq .connect.latency_us.p99

The exit code is that of the run, or 2 where the file cannot be read. A file without its last line is of a run that
was killed, or that still goes on: it is incomplete.

",
    exit_codes!()
);

impl Report {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let fail =
            |why: String| Failure::new(format!("cannot read {}: {why}", self.file.display()));
        let file = File::open(&self.file).map_err(|error| fail(error.to_string()))?;
        let RunContent { summary, judgements, diagnosis } =
            read(BufReader::new(file)).map_err(|error| fail(error.to_string()))?;
        if self.json {
            output::say_json(&text::summary_json(&summary, &judgements, &diagnosis));
        } else {
            let run = &summary.run;
            let what = [&run.scenario, &run.target, &run.started].map(String::as_str);
            let what: Vec<_> = what.into_iter().filter(|part| !part.is_empty()).collect();
            let mut text = render_text(&summary, &judgements, Some(&diagnosis));
            if let Some(sentence) = summary.shortcoming() {
                text += &format!("\n{sentence}");
            }
            output::say(format!("{text}\n{}", what.join(", ")));
        }
        Ok(RunExit::of(&summary, &judgements).into())
    }
}

/// What a run file comes to.
struct RunContent {
    summary: Summary,
    judgements: Vec<Judgement>,
    diagnosis: Diagnosis,
}

/// Line by line, so that a run of any length is read.
fn read(input: impl BufRead) -> Result<RunContent, ReadError> {
    let mut reader = RunFileReader::open(input)?;
    let mut fold = SummaryFold::new(reader.header());
    let mut history = History::new(reader.header().clone());
    while let Some(interval) = reader.next_interval()? {
        fold.add(&interval);
        history.add(&interval);
    }
    // The scenario is in the file as it was read; one of another version may not be understood any more.
    let ScenarioSource { path, source } = &reader.header().scenario;
    let thresholds =
        Scenario::parse(source, path).map_or_else(|_| Vec::new(), |scenario| scenario.thresholds);
    fold.judge_by(&thresholds);
    let summary = fold.finish_read(reader.end(), reader.lines_torn());
    let judgements: Vec<_> = thresholds.iter().map(|threshold| threshold.judge(&summary)).collect();
    let diagnosis = diagnose(&history, &summary, &judgements);
    Ok(RunContent { summary, judgements, diagnosis })
}
