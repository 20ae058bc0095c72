//! `throng compare`: shows what changed between runs, and how far chance can explain it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use throng_lab::{RunContent, RunResult};
use throng_load::scenario::{Diagnostic, Diagnostics};
use throng_report::RunEventKind;
use throng_report::compare::{CompareRun, Comparison, Regression, RunSample};
use throng_report::render::{compare_markdown, compare_text};
use throng_report::runfile::{HEAD_BYTES, is_run_file};

use crate::{Exit, Failure, output};

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
    /// Write a page, too: one HTML file that needs no network
    #[arg(long, short, value_name = "FILE.html")]
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

A regression has a name as thresholds do, and a change with its sign: in per cent of the baseline
(message.rate < -5%), or in the unit of the figure (connect.p99 > +5ms).

Exit codes:
  0  the runs were compared, and no change is a regression
  1  a change is beyond a --regression
  2  a file cannot be read, or a flag is wrong
  3  a run is invalid: it measures the generator, not the target";

impl Compare {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let regressions = self.regressions()?;
        let sides = self.sides()?;
        let mut runs = Vec::new();
        let mut known: Vec<Vec<CompareRun>> = Vec::new();
        for files in sides {
            let mut side = Vec::new();
            for file in files {
                let (run, content, result) = read(file, self.output.is_some())?;
                side.push(run);
                if self.output.is_some() {
                    runs.push((content, result));
                }
            }
            known.push(side);
        }
        let comparison = Comparison::of(&known, &regressions);
        if let Some(path) = &self.output {
            write_page(&comparison, &runs, path).map_err(|error| {
                Failure::new(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        match if self.json { CompareFormat::Json } else { self.format } {
            CompareFormat::Json => output::say_json(&comparison),
            CompareFormat::Markdown => output::say(compare_markdown(&comparison)),
            CompareFormat::Text => output::say(compare_text(&comparison)),
        }
        if let Some(path) = &self.output {
            let is_text = !self.json && self.format == CompareFormat::Text;
            output::say_beside(!is_text, format!("page: {}", path.display()));
        }
        Ok(match (comparison.is_invalid(), comparison.has_regressed()) {
            (true, _) => Exit::Invalid,
            (false, true) => Exit::Missed,
            (false, false) => Exit::Met,
        })
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
        let parse = |text: &String| {
            text.parse::<Regression>().map_err(|error| {
                let label = match &error.suggestion {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("expected {}", error.expected),
                };
                let mistake = Diagnostic::new(error.span, error.problem, label);
                let mistakes = Diagnostics::new("--regression", text, vec![mistake]);
                Failure::rendered(mistakes.render(output::stderr_has_colors()))
            })
        };
        self.regression.iter().map(parse).collect()
    }
}

fn read(path: &Path, with_page: bool) -> Result<(CompareRun, RunContent, RunResult), Failure> {
    let fail = |why: String| Failure::new(format!("cannot read {}: {why}", path.display()));
    let file = File::open(path).map_err(|error| fail(error.to_string()))?;
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

fn write_page(
    comparison: &Comparison,
    runs: &[(RunContent, RunResult)],
    path: &Path,
) -> io::Result<()> {
    if is_run_file_at(path) {
        return Err(io::Error::other("it is a run file; name another file for the page"));
    }
    let mut file = BufWriter::new(File::create(path)?);
    throng_view::write_compare_page(comparison, runs, &mut file)?;
    file.flush()
}

/// Reports whether a run file is at `path`: a page would destroy it.
fn is_run_file_at(path: &Path) -> bool {
    let mut head = Vec::new();
    // Only a file: to open a pipe would wait for its writer.
    if !path.is_file() {
        return false;
    }
    let file = File::open(path).map(|file| file.take(HEAD_BYTES as u64));
    file.is_ok_and(|mut file| file.read_to_end(&mut head).is_ok_and(|read| read > 0))
        && is_run_file(&head)
}
