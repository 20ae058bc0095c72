//! Chores of the project.

mod bench;
mod conformance;
mod suite;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Chores of the project")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Compare throng with a bare epoll loop and its peers, side by side in one run
    Bench(bench::Options),
    /// Run Autobahn's WebSocket cases against both of our ends
    Conformance(conformance::Options),
    /// Run every test binary, the doc tests and the linters; list the failures at the end
    Test(suite::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Bench(options) => bench::run(&options),
        Chore::Conformance(options) => conformance::run(&options),
        Chore::Test(options) => suite::run(&options),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::from(2)
    })
}
