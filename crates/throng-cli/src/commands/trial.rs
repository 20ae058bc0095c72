//! `throng try`: takes one user once through its steps, and shows every message both ways.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use throng_base::units::show_duration;
use throng_load::program::STAY_SPAN;
use throng_load::run::{
    LoadOptions, LoadPlan, SetupError, SetupWatch, SoloEnd, SoloRun, Trial, set_up, tear_down,
};
use throng_load::scenario::{Scenario, Target};
use throng_run::permission;

use crate::interrupt::{By, Interrupt};
use crate::key_log::{KeyLog, KeyLogFlag};
use crate::scenario_file::ScenarioFile;
use crate::scenario_warning::print_warnings;
use crate::{Exit, Failure, output, quantity};

/// Run one user once through a scenario's steps, and show every message
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Try {
    /// The scenario file, or a file of another load generator
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
    /// Most turns of each `every` and `repeat`
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..))]
    turns: u64,
    /// Skip the time of `wait`, and the time between the turns of `every`
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
    #[command(flatten)]
    key_log: KeyLogFlag,
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
        let file = ScenarioFile::read(&self.scenario, self.target.as_ref())?;
        let mut scenario = file.scenario()?;
        if let Some(report) = &file.fidelity {
            output::say(format!("{report}\n"));
        }
        let classes = self.classes(&scenario)?;
        let interrupt = Interrupt::install(false)?;
        let target = self.target.as_ref().unwrap_or(&scenario.target);
        let key_log = self.key_log.open_for(target)?;
        let options = LoadOptions {
            target: self.target.clone(),
            seed: Some(self.seed),
            key_log: key_log.as_ref().map(KeyLog::sink),
            ..LoadOptions::default()
        };
        let plan = self.check_target(&scenario, &options)?;
        print_warnings(&plan.program().warnings(&file.name, &file.text));
        if scenario.setup.is_some() {
            let is_set_up = self.show_steps("setup", &interrupt, |watch| {
                set_up(&mut scenario, &options, watch).map(drop)
            });
            if let Err(error) = is_set_up {
                return Ok(self.end_after_setup(&error, &scenario, &options, &interrupt));
            }
        }
        let ends = self.run_classes(&scenario, classes, &options, &interrupt);
        let torn_down = self.tear_down(&scenario, &options, &interrupt);
        let ends = ends?;
        torn_down?;
        Ok(if ends.contains(&TrialEnd::Failed) {
            Exit::Missed
        } else if ends.iter().all(|end| *end == TrialEnd::Finished) {
            Exit::Met
        } else {
            Exit::Incomplete
        })
    }

    /// Tells why `setup` failed, and removes what it has made, as far as that can be.
    fn end_after_setup(
        &self,
        error: &SetupError,
        scenario: &Scenario,
        options: &LoadOptions,
        interrupt: &Interrupt,
    ) -> Exit {
        let outcome = error.outcome();
        output::print_error(format!("{outcome}\nno user was taken through its steps"));
        let by = interrupt.requested();
        if let Some(why) = error.teardown_refused(scenario) {
            output::print_error(format!("`teardown` was not taken: {why}"));
        } else if let Err(error) = self.tear_down(scenario, options, interrupt) {
            output::print_error(error.to_string());
        }
        by.map_or(Exit::CannotRun, |_| Exit::Incomplete)
    }

    /// Takes the steps of `teardown`, if there are any, and shows them.
    fn tear_down(
        &self,
        scenario: &Scenario,
        options: &LoadOptions,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        if scenario.teardown.is_none() {
            return Ok(());
        }
        self.show_steps("teardown", interrupt, |watch| tear_down(scenario, options, watch))
            .map_err(|error| Failure::new(error.outcome()))
    }

    /// Shows the steps of `setup` or `teardown` under a heading. A further request ends them. The
    /// lines of the error have been shown.
    fn show_steps(
        &self,
        key: &str,
        interrupt: &Interrupt,
        take: impl FnOnce(SetupWatch<'_>) -> Result<(), SetupError>,
    ) -> Result<(), SetupError> {
        output::say(format!("`{key}`, by one user"));
        let before = interrupt.requested();
        let watch = SetupWatch {
            is_full: self.full,
            on_line: Some(&mut |line| output::say(line)),
            is_interrupted: &mut || interrupt.requested() != before,
        };
        let taken = take(watch);
        if taken.is_ok() {
            output::say(format!("`{key}`: ok, no step failed\n"));
        }
        taken
    }

    /// Refuses a target that needs permission.
    fn check_target(
        &self,
        scenario: &Scenario,
        options: &LoadOptions,
    ) -> Result<LoadPlan, Failure> {
        let plan = LoadPlan::new(scenario, options)?;
        permission::check(&plan.target, &plan.targets, self.i_am_allowed)?;
        Ok(plan)
    }

    /// Takes a user through the steps of each of these classes.
    fn run_classes(
        &self,
        scenario: &Scenario,
        classes: Vec<usize>,
        options: &LoadOptions,
        interrupt: &Interrupt,
    ) -> Result<Vec<TrialEnd>, Failure> {
        let mut ends = Vec::new();
        for class in classes {
            let end = self.run_class(scenario, class, options, interrupt)?;
            ends.push(end);
            if let TrialEnd::Interrupted(_) = end {
                break;
            }
        }
        Ok(ends)
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
        options: &LoadOptions,
        interrupt: &Interrupt,
    ) -> Result<TrialEnd, Failure> {
        let user = self.user.unwrap_or_else(|| Trial::first_user_of(scenario, class));
        let (turns, waits, span) = (self.turns, !self.no_wait, self.span);
        let trial = Trial { class, user, turns, waits, span };
        let plan = trial.plan(scenario, options)?;
        let name = &scenario.classes[class].name;
        let (target, address) = (&plan.target, plan.targets[user as usize % plan.targets.len()]);
        let cuts = self.cuts();
        output::say(format!("user {user} of class {name}, {target} ({address}); {cuts}"));
        let solo = SoloRun::start(plan, user, span, self.full)?;
        let end = match solo.wait(output::say, || interrupt.requested().is_some()).end {
            SoloEnd::Finished => TrialEnd::Finished,
            SoloEnd::Failed => TrialEnd::Failed,
            SoloEnd::OutOfTime => TrialEnd::Stopped,
            SoloEnd::Interrupted => {
                interrupt.requested().map_or(TrialEnd::Stopped, TrialEnd::Interrupted)
            }
        };
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
  2  the scenario has mistakes, the trial could not start, or `setup` or `teardown` failed
  4  --for, Ctrl-C or SIGTERM ended it before the last step";
