//! The `throng` command: server, generator and diagnosis of a test with many connections.
//!
//! `main` is a table of commands. Each has a file under `commands`, with its flags at the top.
//! `--help`, the man page and the completions are all made from those flags.

mod bus;
mod certificates;
mod commands;
mod condition;
mod control;
mod control_path;
mod dashboard;
mod exit;
mod foreign_flag;
mod interrupt;
mod key_log;
mod metrics;
mod orphan;
mod output;
mod output_place;
mod progress;
mod quantity;
mod report_files;
mod scenario_file;
mod scenario_warning;
mod search_file;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{
    agent, compare, completions, ctl, doctor, find, fleet, import, import_log, init, lab, man,
    plan, report, run, schema, serve, top, trial,
};
use exit::{Exit, Failure, exit_codes};

/// How many connections can a server hold, how fast can it accept them, and what stops it?
#[derive(Debug, Parser)]
#[command(name = "throng", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Throng {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    Init(init::Init),
    Run(Box<run::Run>),
    Try(trial::Try),
    Find(find::Find),
    Agent(agent::Agent),
    Fleet(fleet::FleetCommand),
    Import(import::ImportFile),
    ImportLog(import_log::ImportLog),
    Lab(lab::Lab),
    Ctl(ctl::Ctl),
    Top(top::Top),
    Report(report::Report),
    Compare(compare::Compare),
    Doctor(doctor::Doctor),
    Plan(Box<plan::Plan>),
    Schema(schema::Schema),
    Completions(completions::Completions),
    Man(man::Man),
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  throng serve echo                        start a server on 127.0.0.1:5555
  throng init ws://127.0.0.1:8080/ws       write a first scenario for a server
  throng try scenario.yaml                 show what one user sends and receives
  throng run scenario.yaml                 load it
  throng find scenario.yaml --slo 'connect.p99 < 50ms'
                                           the largest load that meets the SLO
  throng agent --bus nats://host:4222      generate a share of the load of a fleet
  throng import tsung.xml                  translate another tool's file
  throng import-log tsung.log -o run.jsonl convert another tool's results
  throng ctl count                         count users or connections
  throng top                               watch a running server
  throng report run.jsonl                  show the report of a run
  throng compare before.jsonl after.jsonl  show what changed between runs
  throng lab                               list the bundled experiments
  throng doctor --for 1M                   check this machine's limits for a million
  throng plan --connections 100M           size a fleet

",
    exit_codes!()
);

fn main() -> ExitCode {
    output::escape_panics();
    let throng = Throng::try_parse().unwrap_or_else(|error| foreign_flag::explain(error).exit());
    let exit = match run(throng.command) {
        Ok(exit) => exit,
        Err(failure) => return failure.report(),
    };
    // What was printed is a part of the result.
    let lost = output::stdout_failure().filter(|_| exit == Exit::Met);
    lost.map_or(exit.into(), |failure| failure.report())
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(serve) => serve.run(),
        Command::Init(init) => init.run(),
        Command::Run(run) => run.run(),
        Command::Try(trial) => trial.run(),
        Command::Find(find) => find.run(),
        Command::Agent(agent) => agent.run(),
        Command::Fleet(fleet) => fleet.run(),
        Command::Import(import) => import.run(),
        Command::ImportLog(import) => import.run(),
        Command::Lab(lab) => lab.run(),
        Command::Ctl(ctl) => ctl.run(),
        Command::Top(top) => top.run(),
        Command::Report(report) => report.run(),
        Command::Compare(compare) => compare.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Plan(plan) => plan.run(),
        Command::Schema(schema) => schema.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn each(command: &clap::Command, check: &mut impl FnMut(&clap::Command)) {
        check(command);
        command
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help")
            .for_each(|s| each(s, check));
    }

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Throng::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples_and_every_flag_a_sentence() {
        each(&Throng::command(), &mut |command| {
            let name = command.get_name();
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:"), "{name} has no examples");
            assert!(command.get_about().is_some(), "{name} has no description");
            for flag in command.get_arguments() {
                assert!(flag.get_help().is_some(), "{name}: {} is not explained", flag.get_id());
            }
        });
    }
}
