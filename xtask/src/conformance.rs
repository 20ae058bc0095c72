//! Autobahn's WebSocket cases against this project's server and client, driven by the PyPI package
//! `kosoku`.
//!
//! `conformance/README.md` describes the cases and the report.

mod client;
mod kosoku;
mod python;
mod server;
pub(crate) mod tls;
mod verdict;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::conformance::kosoku::Kosoku;
use crate::conformance::verdict::Verdicts;

/// The options of `xtask conformance`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run the cases without compression and a sample of those with it (half a minute)
    #[arg(long)]
    quick: bool,
    /// Run only these cases: ids, or globs such as `6.*` (repeatable)
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<String>,
    /// Folder for the reports
    #[arg(long, value_name = "DIR", default_value = "target/conformance")]
    out: PathBuf,
    /// Write one line per case and role to this file
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
}

/// Runs the cases. The exit code is 0 if all cases passed, 1 if one did not, and 77 if Python or
/// the package is not available.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let kosoku = match Kosoku::install() {
        Ok(kosoku) => kosoku,
        Err(reason) => {
            eprintln!("conformance: skipped, {reason}");
            return Ok(ExitCode::from(UNAVAILABLE));
        }
    };
    let (cases, least): (Vec<&str>, usize) = if !options.cases.is_empty() {
        (options.cases.iter().map(String::as_str).collect(), 1)
    } else if options.quick {
        (QUICK.to_vec(), 301 + SAMPLED)
    } else {
        (Vec::new(), 517)
    };
    let mut passed = true;
    let mut lines = String::new();
    for (role, drive) in [("server", server::run as Drive), ("client", client::run)] {
        let started = Instant::now();
        let folder = options.out.join(role);
        drive(&kosoku, &cases, &folder)?;
        let verdicts = Verdicts::read(&folder)?;
        println!("{}", verdicts.summary(role, started.elapsed()));
        if verdicts.len() < least {
            return Err(format!("only {} of {least} cases ran against the {role}", verdicts.len()));
        }
        passed &= verdicts.are_passed();
        verdicts.append(role, &mut lines);
    }
    if let Some(file) = &options.keep {
        std::fs::write(file, lines).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    println!("reports: {}/*/index.html", options.out.display());
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Runs the cases against the server or the client, and leaves the report in the folder.
type Drive = fn(&Kosoku, &[&str], &std::path::Path) -> Result<(), String>;

const UNAVAILABLE: u8 = 77;

/// All cases but sections 12 and 13 (compression), and a sample of those: each data set, each
/// window and both ways to fragment at least once, with short messages.
const QUICK: &[&str] = &[
    "1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*", "12.1.1", "12.2.3", "12.3.5",
    "12.4.11", "12.5.4", "13.1.4", "13.2.5", "13.3.1", "13.4.3", "13.5.11", "13.6.4", "13.7.3",
];
const SAMPLED: usize = 12;
