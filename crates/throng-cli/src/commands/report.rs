//! `throng report`: a run file in words, or as the summary that `throng run --json` writes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use clap::Args;
use throng_doctor::{History, diagnose};
use throng_load::scenario::Scenario;
use throng_report::render::render_text;
use throng_report::runfile::{ReadError, RunFileReader, ScenarioSource};
use throng_report::{Diagnosis, Grade, Judgement, Summary, SummaryFold};

use super::run::words;
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

const EXAMPLES: &str = "\
Examples:
  throng report
  throng report monday.jsonl
  throng report run.jsonl --json | jq .connect.latency_us.p99

Exit codes:
  0  the run is valid or degraded    2  the file cannot be read    3  the run is invalid";

impl Report {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let fail =
            |why: String| Failure::new(format!("cannot read {}: {why}", self.file.display()));
        let file = File::open(&self.file).map_err(|error| fail(error.to_string()))?;
        let Read { summary, judgements, diagnosis } =
            read(BufReader::new(file)).map_err(|error| fail(error.to_string()))?;
        if self.json {
            output::say_json(&words::summary_json(&summary, &judgements, &diagnosis));
        } else {
            let run = &summary.run;
            let what = [&run.scenario, &run.target, &run.started].map(String::as_str);
            let what: Vec<_> = what.into_iter().filter(|part| !part.is_empty()).collect();
            let text = render_text(&summary, &judgements, Some(&diagnosis));
            output::say(format!("{text}\n{}", what.join(", ")));
        }
        Ok(match summary.validity.grade {
            Grade::Invalid => Exit::Invalid,
            Grade::Valid | Grade::Degraded => Exit::Met,
        })
    }
}

/// What a run file comes to.
struct Read {
    summary: Summary,
    judgements: Vec<Judgement>,
    diagnosis: Diagnosis,
}

/// Line by line, so that a run of any length is read.
fn read(input: impl BufRead) -> Result<Read, ReadError> {
    let mut reader = RunFileReader::open(input)?;
    let mut fold = SummaryFold::new(reader.header());
    let mut history = History::new(reader.header().clone());
    while let Some(interval) = reader.next_interval()? {
        fold.add(&interval);
        history.add(&interval);
    }
    let summary = fold.finish_read(reader.end(), reader.lines_torn());
    // The scenario is in the file as it was read; one of another version may not be understood any more.
    let ScenarioSource { path, source } = &reader.header().scenario;
    let thresholds =
        Scenario::parse(source, path).map_or_else(|_| Vec::new(), |scenario| scenario.thresholds);
    let judgements: Vec<_> = thresholds.iter().map(|threshold| threshold.judge(&summary)).collect();
    let diagnosis = diagnose(&history, &summary, &judgements);
    Ok(Read { summary, judgements, diagnosis })
}
