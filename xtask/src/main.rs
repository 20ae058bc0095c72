//! The project's tasks: benchmarks, conformance, tests.

mod bench;
mod conformance;
mod count;
mod suite;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Run a task of the project")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compare throng with a bare epoll loop and its peers, side by side in one run
    Bench(bench::Options),
    /// Measure what the bus costs in a run of many agents
    BenchFleet(bench::fleet::Options),
    /// Compare the CPU time of a broadcast over two nodes with one node's
    BenchNodes(bench::nodes::Options),
    /// Compare the generator's CPU time of messages with variables with that of literal values
    BenchVariables(bench::variables::Options),
    /// Run Autobahn's WebSocket cases against the server and the client
    Conformance(conformance::Options),
    /// Run BoringSSL's test suite and tlsfuzzer's scripts against the TLS of both roles
    ConformanceTls(conformance::tls::Options),
    /// Count the instructions of hot loops, and compare them with those in the tree
    Count(count::Options),
    /// Run every test binary, the doc tests and the linters; list the failures at the end
    Test(suite::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Bench(options) => bench::run(&options),
        Task::BenchFleet(options) => bench::fleet::run(&options),
        Task::BenchNodes(options) => bench::nodes::run(&options),
        Task::BenchVariables(options) => bench::variables::run(&options),
        Task::Conformance(options) => conformance::run(&options),
        Task::ConformanceTls(options) => conformance::tls::run(&options),
        Task::Count(options) => count::run(&options),
        Task::Test(options) => suite::run(&options),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::from(2)
    })
}

/// Returns the cargo that built this program, or the one in the path.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
