//! `throng find`: searches for the largest load that still meets an SLO.
//!
//! Each run is a `throng run` of its own, in a process of its own, with its own run file. The file
//! of the search has a line for each of them, so that a search that was ended goes on.

mod knob;
mod step;

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use throng_base::units;
use throng_load::scenario::{Scenario, Target};
use throng_measure::runfile::ScenarioSource;
use throng_report::Threshold;
use throng_report::render::{search_sentence, search_text, show_value};
use throng_report::search::{
    RecordedRun, SEARCH_VERSION, SearchHeader, SearchMove, SearchRecord, SearchRules,
};

use crate::interrupt::{Interrupt, LOOK_EVERY};
use crate::output_place::{self, unwritable};
use crate::report_files::ReportFile;
use crate::scenario_file::ScenarioFile;
use crate::{Exit, Failure, condition, output, search_file};
use knob::Knob;
use step::{FindStep, StepEnd};

/// Search for the largest load that meets an SLO
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Find {
    /// The scenario file, or a file of another load generator
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// Condition that a run must meet, such as 'connect.p99 < 50ms'; repeatable [default: the
    /// scenario's thresholds]
    #[arg(long, value_name = "CONDITION")]
    slo: Vec<String>,
    /// What the search varies: `users`, `arrivals`, or a parameter of the scenario [default: users
    /// or arrivals, by the load]
    #[arg(long, value_name = "NAME")]
    knob: Option<String>,
    /// First value [default: the scenario's own]
    #[arg(long, value_name = "VALUE")]
    from: Option<String>,
    /// Largest value to try
    #[arg(long, value_name = "VALUE")]
    to: Option<String>,
    /// The search ends when a value that meets the SLO and one that misses it are this close
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = precision)]
    precision: f64,
    /// Most values to try; repeats of a value do not count
    #[arg(long, value_name = "N", default_value_t = 12,
        value_parser = clap::value_parser!(u16).range(2..=100))]
    steps: u16,
    /// Most runs of a value, if its first run is too close to decide; the majority counts
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=9))]
    repeats: u16,
    /// Pause after each run, in which the server recovers
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = units::parse_duration)]
    rest: Duration,
    /// File of the search; the same command continues a search that was interrupted
    #[arg(long, value_name = "FILE", default_value = "find.jsonl")]
    record: PathBuf,
    /// Start over, even if the file has a search
    #[arg(long)]
    restart: bool,
    /// Write a report; its extension says the format: .html (a page with the curve), .md, .json,
    /// .csv or .txt; repeatable
    #[arg(long, short, visible_alias = "report", value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Address to load instead of the scenario's target
    #[arg(long, value_name = "URL")]
    target: Option<Target>,
    /// Further flags of each `throng run`, after `--`
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  throng find scenario.yaml --slo 'connect.p99 < 50ms' --slo 'errors < 0.1%'
  throng find scenario.yaml --slo 'message.p99 < 20ms' --knob arrivals --from 100/s --to 10k/s
  throng find scenario.yaml --slo 'broadcast.p99 < 1s' --knob room_size
  throng find scenario.yaml --slo 'errors == 0' -o knee.html -- --cores 2 --no-calibrate
  throng report find.jsonl

Exit codes:
  0  the largest value is known
  1  no value meets the SLO, the server did not recover, or all steps were used
  2  the search cannot begin, or cannot reach the server; the same command continues it
  3  the limit is that of the generator
  4  the search was interrupted; the same command continues it
  5  a file of the search could not be written whole";

impl Find {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let reports: Result<Vec<_>, _> =
            self.output.iter().map(|path| self.report_file(path)).collect();
        let reports = reports?;
        let file = ScenarioFile::read(&self.scenario, self.target.as_ref())?;
        let scenario = file.scenario()?;
        file.check_whole()?;
        let slo = self.slo(&scenario)?;
        let knob = Knob::read(self.knob.as_deref(), &file, &scenario)?;
        let header = self.header(&file, &knob, &slo)?;
        let mut record = self.open(header)?;
        let unwritten = |error| unwritable(&self.record, error).unwritten();
        let mut out = OpenOptions::new().append(true).open(&self.record).map_err(unwritten)?;
        if record.is_torn {
            // The next line must not continue the torn one.
            out.write_all(b"\n").map_err(unwritten)?;
        }
        let interrupt = Interrupt::install(false)?;
        while record.end.is_none() {
            let value = match record.next() {
                SearchMove::Run(value) => value,
                SearchMove::End(end) => {
                    record.end = Some(end);
                    SearchRecord::write_end(end, &mut out).map_err(unwritten)?;
                    break;
                }
            };
            let step = FindStep {
                scenario: &self.scenario,
                target: self.target.as_ref(),
                knob: &knob,
                value,
                slo: &slo,
                flags: &self.flags,
                run_file: self.run_file(record.runs.len() + 1),
            };
            let run = match step.run(&record, &interrupt)? {
                StepEnd::Recorded(run) => run,
                StepEnd::Void(why) if record.may_repeat_void() => {
                    let value = show_value(&record, value);
                    let (number, knob) = (record.runs.len() + 1, &knob.name);
                    output::say(format!("run {number}: {knob} {value} is void: {why}"));
                    rest(self.rest, &interrupt);
                    continue;
                }
                StepEnd::Void(why) => {
                    let (known, file) = (search_sentence(&record), step.run_file.display());
                    return Err(Failure::new(format!(
                        "{why} (run file: {file})\n  {known}\n  when the server can be reached, \
                         the same command goes on"
                    )));
                }
                StepEnd::Interrupted => {
                    output::print_error("the search was ended; the same command goes on");
                    return Ok(Exit::Incomplete);
                }
            };
            self.say_run(&record, &run);
            SearchRecord::write_run(&run, &mut out).map_err(unwritten)?;
            record.push(run);
            rest(self.rest, &interrupt);
        }
        output::say(format!("\n{}", search_text(&record)));
        output::say(format!("\nsearch: {}", self.record.display()));
        for report in &reports {
            search_file::write(&record, report)?;
            if let Some(path) = report.path() {
                output::say(format!("report: {}", path.display()));
            }
        }
        Ok(Exit::of_search(&record))
    }

    /// Returns the conditions: those of the flags, or those of the scenario.
    fn slo(&self, scenario: &Scenario) -> Result<Vec<Threshold>, Failure> {
        if self.slo.is_empty() && scenario.thresholds.is_empty() {
            return Err(Failure::new(
                "there is nothing to search for: name a condition with --slo, such as \
                 --slo 'connect.p99 < 50ms', or add `thresholds` to the scenario",
            ));
        }
        if self.slo.is_empty() {
            return Ok(scenario.thresholds.clone());
        }
        self.slo.iter().map(|text| condition_of(scenario, text)).collect()
    }

    fn header(
        &self,
        file: &ScenarioFile,
        knob: &Knob,
        slo: &[Threshold],
    ) -> Result<SearchHeader, Failure> {
        let first = match &self.from {
            Some(text) => knob.parse(text).map_err(|why| Failure::new(format!("--from: {why}")))?,
            None => knob.own,
        };
        let parse = |text: &String| knob.parse(text);
        let most = self.to.as_ref().map(parse).transpose();
        let most = most.map_err(|why| Failure::new(format!("--to: {why}")))?;
        if most.is_some_and(|most| most < first) {
            return Err(Failure::new("--to is less than the first value; --from sets that"));
        }
        let rules = SearchRules {
            first,
            most,
            least: if knob.is_whole { 1.0 } else { first / 1000.0 },
            precision: self.precision,
            steps_max: self.steps.into(),
            repeats: self.repeats.into(),
            hysteresis: HYSTERESIS,
            is_whole: knob.is_whole,
        };
        Ok(SearchHeader {
            throng_find: SEARCH_VERSION,
            scenario: ScenarioSource { path: file.name.clone(), source: file.text.clone() },
            knob: knob.name.clone(),
            unit: knob.unit.to_owned(),
            slo: slo.iter().map(ToString::to_string).collect(),
            rules,
            flags: self.flags.clone(),
        })
    }

    /// Returns the search in the file, or a new one, whose first line is written.
    fn open(&self, header: SearchHeader) -> Result<SearchRecord, Failure> {
        let path = &self.record;
        output_place::check(path)?;
        let known = match File::open(path) {
            Ok(file) => Some(SearchRecord::read(BufReader::new(file))),
            Err(_) => None,
        };
        match known {
            Some(Ok(record)) if record.header == header && !self.restart => {
                let runs = record.runs.len();
                let has_ended = if record.end.is_some() { ", and it has ended" } else { "" };
                output::say(format!(
                    "{}: this search has {runs} {}{has_ended}; --restart begins anew",
                    path.display(),
                    units::plural(runs as u64, "run", "runs")
                ));
                return Ok(record);
            }
            Some(Ok(_)) if !self.restart => {
                let why = "it has another search; name another file with --record, or begin anew \
                           with --restart";
                return Err(unwritable(path, why));
            }
            // Not even `--restart` takes the place of a file that is something else.
            Some(Err(error)) => {
                return Err(unwritable(path, format!("it is not the file of a search: {error}")));
            }
            Some(Ok(_)) | None => {}
        }
        let record = SearchRecord::new(header);
        let file = File::create(path).map_err(|error| unwritable(path, error));
        record.write_header(&mut file?).map_err(|error| unwritable(path, error))?;
        Ok(record)
    }

    /// Returns the report's file, after a check that it takes no other file's place.
    fn report_file(&self, path: &Path) -> Result<ReportFile, Failure> {
        if output_place::is_one_file(path, &self.scenario) {
            return Err(unwritable(path, "it is the scenario"));
        }
        if output_place::is_one_file(path, &self.record) {
            return Err(unwritable(path, "it is the file of the search"));
        }
        let file = ReportFile::new(path, None)?;
        search_file::check(&file)?;
        Ok(file)
    }

    /// Returns the path of the run file of this run: beside the file of the search.
    fn run_file(&self, number: usize) -> PathBuf {
        let stem = self.record.file_stem().unwrap_or_default().to_string_lossy();
        self.record.with_file_name(format!("{stem}-{number:02}.jsonl"))
    }

    fn say_run(&self, record: &SearchRecord, run: &RecordedRun) {
        let measured: Vec<_> = run
            .judgements
            .iter()
            .map(|judgement| format!("{} measured {}", judgement.threshold, judgement.measured))
            .collect();
        let why = if measured.is_empty() { run.verdict.clone() } else { measured.join(", ") };
        let value = show_value(record, run.run.value);
        let number = record.runs.len() + 1;
        let (knob, outcome) = (&record.header.knob, run.run.outcome);
        output::say(format!("run {number}: {knob} {value} {outcome}: {why}"));
    }
}

/// Parses a condition that a run of the scenario can meet.
fn condition_of(scenario: &Scenario, text: &str) -> Result<Threshold, Failure> {
    let slo: Threshold = condition::parse("--slo", text)?;
    let checked = scenario.check_threshold(&slo);
    checked.map_err(|mistake| condition::mistaken("--slo", slo.text(), mistake))?;
    Ok(slo)
}

/// Waits while the server recovers.
fn rest(span: Duration, interrupt: &Interrupt) {
    let end = Instant::now() + span;
    while interrupt.requested().is_none() && Instant::now() < end {
        std::thread::sleep(LOOK_EVERY.min(span));
    }
}

fn precision(text: &str) -> Result<f64, String> {
    let share = units::parse_share(text).map_err(|error| error.to_string())?;
    let is_allowed = (PRECISION_LEAST..=PRECISION_MOST).contains(&share);
    is_allowed.then_some(share).ok_or_else(|| "expected a share from 0.1% to 50%".to_owned())
}

/// A measured value within this distance of its limit needs a second run.
const HYSTERESIS: f64 = 0.1;

const PRECISION_LEAST: f64 = 0.001;
const PRECISION_MOST: f64 = 0.5;
