//! Suites of TLS: BoGo, that of BoringSSL, against `throng-tls`, and tlsfuzzer's scripts against
//! `throng serve`.
//!
//! `conformance/README.md` describes both, and what they need.

mod bogo;
mod report;
mod sources;
mod tlsfuzzer;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::conformance::UNAVAILABLE;
use crate::conformance::tls::report::Report;

/// The options of `xtask conformance-tls`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only this suite (repeatable)
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<Suite>,
    /// Folder with the sources of BoringSSL [default: fetched with git]
    #[arg(long, value_name = "DIR")]
    boringssl: Option<PathBuf>,
    /// Folder with the sources of tlsfuzzer [default: fetched with git]
    #[arg(long, value_name = "DIR")]
    tlsfuzzer: Option<PathBuf>,
    /// The program that tlsfuzzer tests
    #[arg(long, value_name = "FILE", default_value = "target/release/throng")]
    throng: PathBuf,
    /// Folder for the output of the suites
    #[arg(long, value_name = "DIR", default_value = "target/conformance")]
    out: PathBuf,
    /// Write the verdicts of each suite to a file in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    Bogo,
    Tlsfuzzer,
}

/// Runs the suites. The exit code is 0 if all cases passed, 1 if one did not, and 77 if what a
/// suite needs is not available.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    std::fs::create_dir_all(&options.out).map_err(|error| error.to_string())?;
    let out = options.out.canonicalize().map_err(|error| error.to_string())?;
    let (mut passed, mut skipped) = (true, false);
    for (suite, name) in [(Suite::Bogo, "bogo"), (Suite::Tlsfuzzer, "tlsfuzzer")] {
        if !options.suites.is_empty() && !options.suites.contains(&suite) {
            continue;
        }
        let started = Instant::now();
        let report = match run_suite(suite, options, &out) {
            Ok(report) => report?,
            Err(missing) => {
                eprintln!("{name}: skipped, {missing}");
                skipped = true;
                continue;
            }
        };
        println!("{name}: {}", report.summary(started.elapsed()));
        passed &= report.has_passed();
        if let Some(folder) = &options.keep {
            let file = folder.join(name).with_extension("txt");
            std::fs::write(&file, report.lines())
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    println!("output of the suites: {}", options.out.display());
    Ok(match (passed, skipped) {
        (false, _) => ExitCode::from(1),
        (true, true) => ExitCode::from(UNAVAILABLE),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// Runs a suite. The outer error says what is not available.
fn run_suite(
    suite: Suite,
    options: &Options,
    out: &Path,
) -> Result<Result<Report, String>, String> {
    match suite {
        Suite::Bogo => {
            let folder = sources::BORINGSSL.find(options.boringssl.as_deref())?;
            let runner = bogo::build_runner(&folder, out)?;
            Ok(bogo::run(&folder, &runner, out))
        }
        Suite::Tlsfuzzer => {
            let folder = sources::TLSFUZZER.find(options.tlsfuzzer.as_deref())?;
            let python = tlsfuzzer::install()?;
            Ok(tlsfuzzer::run(&folder, &python, &options.throng, out))
        }
    }
}
