//! `throng try`: takes one user once through its steps, and shows every message both ways.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::Args;
use throng_base::units::show_duration;
use throng_load::generator::{IterationEnd, TraceMessage, TraceOptions};
use throng_load::program::STAY_SPAN;
use throng_load::run::{LoadOptions, RunningLoad, Trial};
use throng_load::scenario::{Scenario, Target};

use crate::interrupt::{By, Interrupt};
use crate::{Exit, Failure, output, permission, quantity};

/// Take one user once through a scenario's steps, and show every message
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Try {
    /// The scenario file
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// Address to connect to instead of the scenario's target
    #[arg(long, value_name = "URL")]
    target: Option<Target>,
    /// Try only this class of users; repeatable [default: one user of each class]
    #[arg(long, value_name = "NAME")]
    class: Vec<String>,
    /// Number of the user: the value of ${user.id} [default: the first of its class in a run]
    #[arg(long, value_name = "N")]
    user: Option<u64>,
    /// Turns of each `every` and `repeat` at most
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..))]
    turns: u64,
    /// Take no time for `wait`, and none between the turns of `every`
    #[arg(long)]
    no_wait: bool,
    /// Time after which a user is stopped
    #[arg(long = "for", value_name = "TIME", default_value = "1m",
        value_parser = quantity::duration)]
    span: Duration,
    /// Show whole messages [default: the first 200 bytes of each]
    #[arg(long)]
    full: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Confirm that you may connect to this address outside this machine and its networks
    #[arg(long)]
    i_am_allowed: bool,
}

/// Way in which a user of a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrialEnd {
    Finished,
    Failed,
    /// `--for` was over before the steps were.
    Stopped,
    Interrupted(By),
}

impl Try {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let path = &self.scenario;
        let source = std::fs::read_to_string(path)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
        let scenario = Scenario::parse(&source, &path.display().to_string())
            .map_err(|error| Failure::rendered(error.render(output::stderr_has_colors())))?;
        let classes = self.classes(&scenario)?;
        let interrupt = Interrupt::install(false)?;
        let mut ends = Vec::new();
        for class in classes {
            let end = self.run_class(&scenario, class, &interrupt)?;
            ends.push(end);
            if let TrialEnd::Interrupted(_) = end {
                break;
            }
        }
        Ok(if ends.contains(&TrialEnd::Failed) {
            Exit::Missed
        } else if ends.iter().all(|end| *end == TrialEnd::Finished) {
            Exit::Met
        } else {
            Exit::Incomplete
        })
    }

    /// Returns the indexes of the classes to try.
    fn classes(&self, scenario: &Scenario) -> Result<Vec<usize>, Failure> {
        let names = || scenario.classes.iter().map(|class| class.name.as_str());
        if self.class.is_empty() {
            return Ok((0..scenario.classes.len()).collect());
        }
        let index = |wanted: &String| {
            names().position(|name| name == wanted).ok_or_else(|| {
                let known = names().take(NAMES_MAX).collect::<Vec<_>>().join(", ");
                Failure::new(format!(
                    "--class {wanted}: {} has no such class; it has {known}",
                    self.scenario.display()
                ))
            })
        };
        self.class.iter().map(index).collect()
    }

    fn run_class(
        &self,
        scenario: &Scenario,
        class: usize,
        interrupt: &Interrupt,
    ) -> Result<TrialEnd, Failure> {
        let user = self.user.unwrap_or_else(|| Trial::first_user_of(scenario, class));
        let (turns, waits, span) = (self.turns, !self.no_wait, self.span);
        let trial = Trial { class, user, turns, waits, span };
        let options = LoadOptions {
            target: self.target.clone(),
            seed: Some(self.seed),
            ..LoadOptions::default()
        };
        let mut plan = trial.plan(scenario, &options)?;
        permission::check(&plan.target, &plan.targets, self.i_am_allowed)?;
        let name = &scenario.classes[class].name;
        let (target, address) = (&plan.target, plan.targets[user as usize % plan.targets.len()]);
        let cuts = self.cuts();
        output::say(format!("user {user} of class {name}, {target} ({address}); {cuts}"));
        let (sink, lines) = mpsc::sync_channel(LINES_WAITING_MAX);
        plan.watch_users(TraceOptions { users: vec![user], is_full: self.full, sink });
        let load = RunningLoad::start(plan)?;
        let end = self.follow(&load, &lines, interrupt);
        load.join();
        output::say(format!("user {user} of class {name}: {}\n", self.outcome(end)));
        Ok(end)
    }

    /// Says how the steps are cut.
    fn cuts(&self) -> String {
        let turns = match self.turns {
            1 => "one turn".to_owned(),
            turns => format!("at most {turns} turns"),
        };
        let waits = if self.no_wait { ", waits take no time" } else { "" };
        let stay = show_duration(STAY_SPAN);
        format!("loops take {turns}, `stay` {stay}{waits}")
    }

    /// Prints the lines of the user until it is gone.
    fn follow(
        &self,
        load: &RunningLoad,
        lines: &Receiver<TraceMessage>,
        interrupt: &Interrupt,
    ) -> TrialEnd {
        let mut stop_at = Instant::now() + self.span;
        let mut end = None;
        let mut cause = TrialEnd::Stopped;
        let mut is_stopping = false;
        loop {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(TraceMessage::Line { text, .. }) => output::say(text),
                Ok(TraceMessage::Ended { end: how, .. }) => end = Some(how),
                Ok(TraceMessage::Removed { .. }) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let requested = interrupt.requested();
            let is_over = Instant::now() >= stop_at;
            if is_stopping && is_over {
                break;
            }
            if !is_stopping && (is_over || requested.is_some()) {
                is_stopping = true;
                cause = requested.map_or(TrialEnd::Stopped, TrialEnd::Interrupted);
                stop_at = Instant::now() + STOP_TIMEOUT;
                load.ramp_down();
            }
        }
        match end {
            Some(IterationEnd::Finished) => TrialEnd::Finished,
            Some(IterationEnd::Failed) => TrialEnd::Failed,
            Some(IterationEnd::Cut) | None => cause,
        }
    }

    fn outcome(&self, end: TrialEnd) -> String {
        match end {
            TrialEnd::Finished => "ok, no step failed".to_owned(),
            TrialEnd::Failed => "failed".to_owned(),
            TrialEnd::Stopped => format!(
                "stopped after {} in the step above; --for gives it more time, --no-wait skips \
                 waits",
                show_duration(self.span)
            ),
            TrialEnd::Interrupted(by) => format!("{by} stopped it in the step above"),
        }
    }
}

/// Lines that wait to be printed.
const LINES_WAITING_MAX: usize = 1 << 16;
/// Time that a stopped user gets to close its connection.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two looks at the clock and at requests to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Names of classes that a message lists.
const NAMES_MAX: usize = 20;

const EXAMPLES: &str = "\
Examples:
  throng try scenario.yaml
  throng try scenario.yaml --user 17 --full
  throng try scenario.yaml --class chat --turns 3 --no-wait
  throng try scenario.yaml --target ws://127.0.0.1:4000/ws

> is what the user sends, < what it receives; times are in seconds.

Exit codes:
  0  no step failed
  1  a step failed
  2  the scenario has mistakes, or the trial could not start
  4  --for, Ctrl-C or SIGTERM ended it before the last step";
