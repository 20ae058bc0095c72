//! `throng report`: a run file in words, or as the summary that `throng run --json` writes.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use throng_report::render::render_text;
use throng_report::{Grade, Summary};

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
        let summary =
            Summary::read(BufReader::new(file)).map_err(|error| fail(error.to_string()))?;
        if self.json {
            output::say_json(&summary);
        } else {
            let run = &summary.run;
            let what = [&run.scenario, &run.target, &run.started].map(String::as_str);
            let what: Vec<_> = what.into_iter().filter(|part| !part.is_empty()).collect();
            output::say(format!("{}\n\n{}", what.join(", "), render_text(&summary, &[])));
        }
        Ok(match summary.validity.grade {
            Grade::Invalid => Exit::Invalid,
            Grade::Valid | Grade::Degraded => Exit::Met,
        })
    }
}
