//! `throng compare`: shows what changed between runs, and how far chance can explain it.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use throng_base::input_file;
use throng_measure::RunEventKind;
use throng_report::compare::{CompareRun, Comparison, Regression, RunSample};
use throng_report::export::ReportFormat;
use throng_report::render::{compare_markdown, compare_text};
use throng_run::{RunContent, RunResult};

use crate::report_files::ReportFile;
use crate::{Exit, Failure, condition, output};

/// Compare runs by their files: what changed, and what may be chance
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// Run files; the first is the baseline. With --to, all of them are repeats of the baseline
    #[arg(value_name = "RUN.jsonl", required = true)]
    files: Vec<PathBuf>,
    /// Run files that are repeats of the other side
    #[arg(long, value_name = "RUN.jsonl", num_args = 1..)]
    to: Vec<PathBuf>,
    /// Exit with 1 if a figure changed by more: 'connect.p99 > +10%', 'errors > +0'; may be
    /// repeated
    #[arg(long, value_name = "CHANGE")]
    regression: Vec<String>,
    /// Print as text, Markdown or JSON
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    format: CompareFormat,
    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Also write a file; its extension says the format: .html or .htm (a page that needs no
    /// network), .md, .markdown, .json or .txt
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The form of a comparison on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompareFormat {
    Text,
    Markdown,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  throng compare before.jsonl after.jsonl
  throng compare before-*.jsonl --to after-*.jsonl
  throng compare main.jsonl mine.jsonl --regression 'connect.p99 > +10%' --regression 'errors > +0'
  throng compare monday.jsonl tuesday.jsonl wednesday.jsonl -o compare.html
  throng compare main.jsonl mine.jsonl --format markdown

A regression is the name of a figure, as in thresholds, and a signed change: in per cent of the
baseline (message.rate < -5%), or in the unit of the figure (connect.p99 > +5ms).

Exit codes:
  0  the runs were compared, and no change is a regression
  1  a change is beyond a --regression
  2  a file cannot be read, or a flag is wrong
  3  a run is invalid: it measures the generator, not the target";

impl Compare {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let regressions = self.regressions()?;
        let sides = self.sides()?;
        let file = self.output_file()?;
        let with_page = file.as_ref().is_some_and(|file| file.format() == ReportFormat::Html);
        let mut runs = Vec::new();
        let mut known: Vec<Vec<CompareRun>> = Vec::new();
        for files in sides {
            let mut side = Vec::new();
            for file in files {
                let (run, content, result) = read(file, with_page)?;
                side.push(run);
                if with_page {
                    runs.push((content, result));
                }
            }
            known.push(side);
        }
        let comparison = Comparison::of(&known, &regressions);
        if let Some(file) = &file {
            write(&comparison, &runs, file)?;
        }
        match if self.json { CompareFormat::Json } else { self.format } {
            CompareFormat::Json => output::say_json(&comparison),
            CompareFormat::Markdown => output::say(compare_markdown(&comparison)),
            CompareFormat::Text => output::say(compare_text(&comparison)),
        }
        if let Some(path) = &self.output {
            let is_text = !self.json && self.format == CompareFormat::Text;
            let what = if with_page { "page" } else { "comparison" };
            output::say_beside(!is_text, format!("{what}: {}", path.display()));
        }
        Ok(match (comparison.is_invalid(), comparison.has_regressed()) {
            (true, _) => Exit::Invalid,
            (false, true) => Exit::Missed,
            (false, false) => Exit::Met,
        })
    }

    /// Returns the file of `--output`, after a check that it can be written: the run files may be
    /// large.
    fn output_file(&self) -> Result<Option<ReportFile>, Failure> {
        let Some(path) = &self.output else { return Ok(None) };
        let unwritable =
            |why: &str| Err(Failure::new(format!("cannot write {}: {why}", path.display())));
        if path == Path::new("-") {
            return unwritable("name a file; --format says what standard output gets");
        }
        let format = ReportFormat::of_path(path).ok();
        let file = ReportFile::new(path, format.or(Some(ReportFormat::Html)))?;
        use ReportFormat::{Html, Json, Markdown, Text};
        match format {
            Some(Html | Json | Markdown | Text) => Ok(Some(file)),
            _ => unwritable("a comparison is written as .html, .md, .json or .txt"),
        }
    }

    /// Returns the files of each side.
    fn sides(&self) -> Result<Vec<&[PathBuf]>, Failure> {
        if !self.to.is_empty() {
            return Ok(vec![&self.files, &self.to]);
        }
        if let [file] = &self.files[..] {
            return Err(Failure::new(format!(
                "there is nothing to compare {} with: name a second run file",
                file.display()
            )));
        }
        Ok(self.files.chunks(1).collect())
    }

    /// Parses the regressions; shows the mistake of the first that is none.
    fn regressions(&self) -> Result<Vec<Regression>, Failure> {
        let parse = |text: &String| condition::parse("--regression", text);
        self.regression.iter().map(parse).collect()
    }
}

fn read(path: &Path, with_page: bool) -> Result<(CompareRun, RunContent, RunResult), Failure> {
    let fail = |why: String| Failure::new(format!("cannot read {}: {why}", path.display()));
    let file = input_file::open(path).map_err(|error| fail(error.to_string()))?;
    let (mut sample, mut steered) = (RunSample::new(), Vec::new());
    let read = RunContent::read_each(BufReader::new(file), with_page, |interval| {
        sample.add(interval);
        steered.extend(interval.events.iter().filter_map(|event| match &event.kind {
            RunEventKind::Steered { command } => Some(command.clone()),
            _ => None,
        }));
    });
    let (content, result) = read.map_err(|error| fail(error.to_string()))?;
    let run = CompareRun {
        file: path.display().to_string(),
        header: content.header().clone(),
        summary: result.summary.clone(),
        sample,
        steered,
        warnings: content.warnings().to_vec(),
    };
    Ok((run, content, result))
}

fn write(
    comparison: &Comparison,
    runs: &[(RunContent, RunResult)],
    file: &ReportFile,
) -> Result<(), Failure> {
    file.write_with(|mut out| match file.format() {
        ReportFormat::Html => throng_view::write_compare_page(comparison, runs, &mut out),
        ReportFormat::Json => {
            serde_json::to_writer_pretty(&mut out, comparison)?;
            writeln!(out)
        }
        ReportFormat::Markdown => writeln!(out, "{}", compare_markdown(comparison)),
        _ => writeln!(out, "{}", compare_text(comparison)),
    })
}
