//! `throng report`: shows a run file as text, as a page, or as the summary that `throng run --json`
//! writes.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use throng_lab::{RunContent, RunResult};
use throng_report::runfile::{HEAD_BYTES, is_run_file};

use crate::exit::exit_codes;
use crate::{Exit, Failure, output};

/// Show the report of a run file, even of a run that was killed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// The file written by `throng run`
    #[arg(value_name = "RUN.jsonl", default_value = "run.jsonl")]
    file: PathBuf,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Write the report as a page: one HTML file that needs no network
    #[arg(long, short, value_name = "FILE.html", conflicts_with = "json")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  throng report
  throng report monday.jsonl
  throng report run.jsonl -o report.html
  throng report run.jsonl --json | jq .connect.latency_us.p99

The exit code is that of the run, or 2 if the file cannot be read. A file without its last line is
that of a run that was killed or is still running: it is incomplete.

",
    exit_codes!()
);

impl Report {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let fail =
            |why: String| Failure::new(format!("cannot read {}: {why}", self.file.display()));
        let file = File::open(&self.file).map_err(|error| fail(error.to_string()))?;
        let (content, result) = RunContent::read(BufReader::new(file), self.output.is_some())
            .map_err(|error| fail(error.to_string()))?;
        if let Some(path) = &self.output {
            write_page(&content, &result, path).map_err(|error| {
                Failure::new(format!("cannot write {}: {error}", path.display()))
            })?;
            output::say(format!("{}", path.display()));
        } else if self.json {
            output::say_json(&result.json());
        } else {
            let summary = &result.summary;
            let run = &summary.run;
            let what = [&run.scenario, &run.target, &run.started].map(String::as_str);
            let what: Vec<_> = what.into_iter().filter(|part| !part.is_empty()).collect();
            let mut text = result.text();
            if let Some(sentence) = summary.shortcoming() {
                text += &format!("\n{sentence}");
            }
            output::say(format!("{text}\n{}", what.join(", ")));
        }
        Ok(result.exit().into())
    }
}

fn write_page(content: &RunContent, result: &RunResult, path: &Path) -> io::Result<()> {
    if is_run_file_at(path) {
        return Err(io::Error::other("it is a run file; name another file for the page"));
    }
    let mut file = BufWriter::new(File::create(path)?);
    throng_view::write_page(content, result, &mut file)?;
    file.flush()
}

/// Reports whether a run file is at `path`: a page would destroy it.
fn is_run_file_at(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = File::open(path).map(|file| file.take(HEAD_BYTES as u64));
    file.is_ok_and(|mut file| file.read_to_end(&mut head).is_ok_and(|read| read > 0))
        && is_run_file(&head)
}
