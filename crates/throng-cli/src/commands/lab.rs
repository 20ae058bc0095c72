//! `throng lab`: the bundled experiments, both ends on this machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use throng_lab::{LabOptions, LabProgress, labs};
use throng_report::Grade;
use throng_report::render::{Align, Table};

use crate::interrupt::Interrupt;
use crate::output::JsonOut;
use crate::progress::Progress;
use crate::{Exit, Failure, output, quantity};

/// List the bundled experiments, or run one with both ends on this machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Lab {
    /// Which one; without it they are listed
    name: Option<String>,
    /// Users [default: what suits the machine, up to the article's number]
    #[arg(long, value_name = "N", requires = "name", value_parser = quantity::count)]
    users: Option<usize>,
    /// Seconds that each row of the table lasts [default: so that all take a minute or two]
    #[arg(long, value_name = "N", requires = "name", value_parser = quantity::seconds)]
    seconds: Option<u64>,
    /// Run each end in a network namespace of its own; needs root, leaves nothing behind
    #[arg(long, requires = "name")]
    isolate: bool,
    /// Try a size that this machine should not hold
    #[arg(long, requires = "name")]
    force: bool,
    /// Keep scenarios, run files and the ends' output in this folder
    #[arg(long, value_name = "DIR", requires = "name")]
    keep: Option<PathBuf>,
    /// Write the result as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", value_parser = JsonOut::parse)]
    json: Option<JsonOut>,
}

const EXAMPLES: &str = "\
Examples:
  throng lab
  throng lab stressgrid-100k
  throng lab connscale --users 200k --seconds 60
  throng lab phoenix-2m --users 200k --keep results
  sudo throng lab fast-connect --isolate --json result.json

Ctrl-C ends the load early and reports what was measured.

Exit codes:
  0  it was run    2  it could not run    3  the result is invalid    4  it was ended early";

impl Lab {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let quiet = self.json == Some(JsonOut::Stdout);
        let Some(name) = &self.name else {
            return self.list(quiet);
        };
        if let Some(json) = &self.json {
            json.check()?;
        }
        let options = LabOptions {
            users: self.users.map(|users| users as u64),
            seconds: self.seconds,
            isolate: self.isolate,
            keep_files: self.keep.clone(),
            force: self.force,
            ..LabOptions::default()
        };
        Interrupt::install(false)?.also_set(&Arc::clone(&options.stop))?;
        let mut shown = Shown { quiet, progress: Progress::new(Duration::ZERO, quiet) };
        let report = throng_lab::run(name, &options, &mut |event| shown.show(&event));
        shown.progress.finish();
        let report = report.map_err(|error| Failure::new(error.to_string()))?;
        match quiet {
            true => output::complain(report.to_string()),
            false => output::say(report.to_string()),
        }
        if let Some(json) = &self.json {
            json.write(&report)?;
        }
        Ok(match (report.interrupted, report.grade) {
            (true, _) => Exit::Incomplete,
            (false, Grade::Invalid) => Exit::Invalid,
            (false, Grade::Valid | Grade::Degraded) => Exit::Met,
        })
    }

    fn list(&self, quiet: bool) -> Result<Exit, Failure> {
        if let Some(json) = &self.json {
            json.write(&labs())?;
        }
        if !quiet {
            let mut table = Table::new().aligned(&[Align::Left, Align::Left]);
            labs().iter().for_each(|lab| table.row([lab.name, lab.summary]));
            output::say(table.to_string());
        }
        Ok(Exit::Met)
    }
}

/// How far the lab is.
struct Shown {
    quiet: bool,
    progress: Progress,
}

impl Shown {
    fn show(&mut self, event: &LabProgress<'_>) {
        match event {
            LabProgress::Note(note) => self.progress.note(note),
            LabProgress::Row { name, number, of, seconds } => {
                self.progress.finish();
                self.progress = Progress::new(Duration::from_secs(*seconds), self.quiet);
                self.progress.note(&format!("{number}/{of}: {name}, about {seconds} s"));
            }
            LabProgress::Interval { interval, previous, .. } => {
                self.progress.tick();
                self.progress.show(interval, *previous);
            }
        }
    }
}
