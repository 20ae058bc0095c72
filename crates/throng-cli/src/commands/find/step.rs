//! One run of a search: a `throng run` in a process of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use throng_load::scenario::Target;
use throng_report::Threshold;
use throng_report::search::{JudgedRun, RecordedRun, SearchOutcome, SearchRecord, SearchRun};
use throng_run::{RunContent, RunResult};

use super::knob::Knob;
use crate::interrupt::{Interrupt, LOOK_EVERY};
use crate::{Exit, Failure};

/// A run that is to be made.
pub(super) struct FindStep<'a> {
    pub(super) scenario: &'a Path,
    pub(super) target: Option<&'a Target>,
    pub(super) knob: &'a Knob,
    pub(super) value: f64,
    pub(super) slo: &'a [Threshold],
    /// Further flags of the run.
    pub(super) flags: &'a [String],
    pub(super) run_file: PathBuf,
}

/// How a run ended.
pub(super) enum StepEnd {
    Recorded(RecordedRun),
    /// It never reached the server, for this reason, so it says nothing.
    Void(String),
    /// It was ended before its plan was.
    Interrupted,
}

impl FindStep<'_> {
    /// Runs the scenario and judges the run, which is the next of `record`.
    pub(super) fn run(
        &self,
        record: &SearchRecord,
        interrupt: &Interrupt,
    ) -> Result<StepEnd, Failure> {
        // A run file of an earlier search must not be taken for that of a run that cannot start.
        remove(&self.run_file)?;
        let mut child = self
            .command(record)?
            .spawn()
            .map_err(|error| Failure::new(format!("cannot start `throng run`: {error}")))?;
        let errors = child.stderr.take().expect("it is piped");
        let reader = std::thread::spawn(move || read_all(errors));
        let code = wait(&mut child, interrupt)?;
        let errors = reader.join().unwrap_or_default();
        if interrupt.requested().is_some() || code == Some(INCOMPLETE) {
            return Ok(StepEnd::Interrupted);
        }
        if code == Some(UNWRITTEN) {
            let path = self.run_file.display();
            let text = format!("the run file {path} could not be written whole");
            return Err(Failure::new(text).unwritten());
        }
        let Ok(file) = File::open(&self.run_file) else {
            return self.cannot_run(code, &errors);
        };
        let RunResult { summary, judgements, diagnosis } =
            RunContent::judge_by(BufReader::new(file), self.slo.to_vec())?;
        let run = JudgedRun { summary: &summary, judgements: &judgements, diagnosis: &diagnosis };
        if run.is_void(record) {
            return Ok(StepEnd::Void(run.why_void()));
        }
        let run_file = self.run_file.to_string_lossy().into_owned();
        Ok(StepEnd::Recorded(run.recorded(self.value, self.slo, run_file)))
    }

    fn command(&self, record: &SearchRecord) -> Result<Command, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
        let mut command = Command::new(program);
        command.arg("run").arg(self.scenario).args(self.knob.flags(self.value));
        if let Some(target) = self.target {
            command.arg("--target").arg(target.url());
        }
        if !self.flags.iter().any(|flag| flag == "--seed" || flag.starts_with("--seed=")) {
            command.arg("--seed").arg(self.seed(record).to_string());
        }
        command.arg("--record").arg(&self.run_file).args(self.flags);
        // The run ends with this process, whatever ends it.
        command.arg("--refusal-code").arg(REFUSED.to_string());
        command.arg("--exit-with-parent").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Returns the seed of the run: each run of a value has its own, or all of them would have the
    /// same arrivals.
    fn seed(&self, record: &SearchRecord) -> usize {
        1 + record.runs.iter().filter(|run| run.run.value == self.value).count()
    }

    /// Returns the result of a value that the machine cannot hold. The first run shows every other
    /// reason, so that ends the search.
    fn cannot_run(&self, code: Option<i32>, errors: &str) -> Result<StepEnd, Failure> {
        let first = errors.lines().next().unwrap_or("it said nothing");
        let first = first.trim_start_matches("error: ").to_owned();
        if code != Some(REFUSED.into()) {
            return Err(Failure::new(format!("`throng run` failed: {errors}")));
        }
        let run = SearchRun { value: self.value, outcome: SearchOutcome::Invalid, usage: None };
        Ok(StepEnd::Recorded(RecordedRun {
            run,
            grade: None,
            judgements: Vec::new(),
            reached: BTreeMap::new(),
            verdict: first,
            run_file: String::new(),
        }))
    }
}

/// Waits for the end of the run. A request to end this process ends the run, too.
fn wait(child: &mut Child, interrupt: &Interrupt) -> Result<Option<i32>, Failure> {
    loop {
        if interrupt.requested().is_some() {
            // The run takes the end of its standard input for the end of its parent.
            drop(child.stdin.take());
        }
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn read_all(mut errors: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = errors.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn remove(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::new(format!("cannot replace {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// The exit code of a run that was ended early.
const INCOMPLETE: i32 = Exit::Incomplete as i32;

/// The exit code of a run whose run file is not whole.
const UNWRITTEN: i32 = Exit::Unwritten as i32;

/// The exit code of a run that a limit of this machine is in the way of: none that another run has.
const REFUSED: u8 = 6;
