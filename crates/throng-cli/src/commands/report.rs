//! `throng report`: shows a run file as text, as a page, or as the summary that `throng run --json`
//! writes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use throng_doctor::{History, diagnose};
use throng_load::scenario::Scenario;
use throng_report::page::{self, PageBuilder};
use throng_report::render::render_text;
use throng_report::runfile::{
    HEAD_BYTES, ReadError, RunFileReader, RunHeader, ScenarioSource, is_run_file,
};
use throng_report::{Diagnosis, Judgement, RunExit, Summary, SummaryFold};

use super::run::text;
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
        let page = self.output.is_some().then(PageBuilder::new);
        let content = read(BufReader::new(file), page).map_err(|error| fail(error.to_string()))?;
        let RunContent { summary, judgements, diagnosis, page, .. } = &content;
        if let Some((path, page)) = self.output.as_ref().zip(page.as_ref()) {
            content.write_page(page, path).map_err(|error| {
                Failure::new(format!("cannot write {}: {error}", path.display()))
            })?;
            output::say(format!("{}", path.display()));
        } else if self.json {
            output::say_json(&text::summary_json(summary, judgements, diagnosis));
        } else {
            let run = &summary.run;
            let what = [&run.scenario, &run.target, &run.started].map(String::as_str);
            let what: Vec<_> = what.into_iter().filter(|part| !part.is_empty()).collect();
            let mut text = render_text(summary, judgements, Some(diagnosis));
            if let Some(sentence) = summary.shortcoming() {
                text += &format!("\n{sentence}");
            }
            output::say(format!("{text}\n{}", what.join(", ")));
        }
        Ok(RunExit::of(summary, judgements).into())
    }
}

/// The content of a run file.
struct RunContent {
    header: RunHeader,
    summary: Summary,
    judgements: Vec<Judgement>,
    diagnosis: Diagnosis,
    /// The data of the page, if one is written.
    page: Option<PageBuilder>,
    warnings: Vec<String>,
}

impl RunContent {
    fn write_page(&self, page: &PageBuilder, path: &Path) -> io::Result<()> {
        if is_run_file_at(path) {
            return Err(io::Error::other("it is a run file; name another file for the page"));
        }
        let summary = text::summary_json(&self.summary, &self.judgements, &self.diagnosis);
        let page = page.page(&self.header, &summary, &self.warnings);
        let mut file = BufWriter::new(File::create(path)?);
        page::html(PAGE, &page, &mut file)?;
        file.flush()
    }
}

/// Reports whether a run file is at `path`: a page would destroy it.
fn is_run_file_at(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = File::open(path).map(|file| file.take(HEAD_BYTES as u64));
    file.is_ok_and(|mut file| file.read_to_end(&mut head).is_ok_and(|read| read > 0))
        && is_run_file(&head)
}

/// The page that draws a run, or one that says how to build it.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/ui.html"));

/// Reads a run of any length, line by line.
fn read(input: impl BufRead, mut page: Option<PageBuilder>) -> Result<RunContent, ReadError> {
    let mut reader = RunFileReader::open(input)?;
    let mut fold = SummaryFold::new(reader.header());
    let mut history = History::new(reader.header().clone());
    while let Some(interval) = reader.next_interval()? {
        fold.add(&interval);
        history.add(&interval);
        if let Some(page) = &mut page {
            page.add(&interval);
        }
    }
    // The file contains the scenario's text. This version may not be able to parse one of another
    // version.
    let ScenarioSource { path, source } = &reader.header().scenario;
    let thresholds =
        Scenario::parse(source, path).map_or_else(|_| Vec::new(), |scenario| scenario.thresholds);
    fold.judge_by(&thresholds);
    let summary = fold.finish_read(reader.end(), reader.lines_torn());
    let judgements: Vec<_> = thresholds.iter().map(|threshold| threshold.judge(&summary)).collect();
    let diagnosis = diagnose(&history, &summary, &judgements);
    let (header, warnings) = (reader.header().clone(), reader.warnings().to_vec());
    Ok(RunContent { header, summary, judgements, diagnosis, page, warnings })
}
