//! BoGo, the test suite of BoringSSL, against the example `bogo_shim` of `throng-tls`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::report::Report;
use crate::conformance::python::{root, run_quietly};

/// Builds the runner of the suite.
pub(super) fn build_runner(sources: &Path, out: &Path) -> Result<PathBuf, String> {
    let runner = out.join("bogo-runner");
    let mut go = Command::new("go");
    go.args(["test", "-c", "-o"]).arg(&runner).current_dir(sources.join(RUNNER));
    run_quietly(&mut go).map_err(|error| format!("Go cannot build the runner: {error}"))?;
    Ok(runner)
}

/// Runs all cases that are not disabled.
pub(super) fn run(sources: &Path, runner: &Path, out: &Path) -> Result<Report, String> {
    let (results, log) = (out.join("bogo.json"), out.join("bogo-not-offered.txt"));
    let config = root().join("conformance/bogo.json");
    let shim = build_shim()?;
    for file in [&results, &log] {
        let _ = std::fs::remove_file(file);
    }
    let mut command = Command::new(runner);
    command.args(["-pipe", "-loose-errors", "-allow-unimplemented", "-test.timeout=1h"]);
    for (flag, file) in
        [("-shim-path", &shim), ("-shim-config", &config), ("-json-output", &results)]
    {
        command.arg(flag).arg(file);
    }
    command.env("THRONG_BOGO_LOG", &log).current_dir(sources.join(RUNNER)).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    std::fs::write(out.join("bogo.txt"), &*text).map_err(|error| error.to_string())?;
    let read = |file: &Path| {
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
    };
    let report = report(&read(&results)?, &read(&log)?, &text)?;
    if report.verdicts.len() < CASES_MIN {
        return Err(format!("only {} of {CASES_MIN} cases ran", report.verdicts.len()));
    }
    Ok(report)
}

/// Builds the program that is tested.
fn build_shim() -> Result<PathBuf, String> {
    let mut cargo = Command::new(crate::cargo());
    cargo.args(["build", "--workspace", "--locked", "--quiet", "--example", "bogo_shim"]);
    let status = cargo.current_dir(root()).status();
    let status = status.map_err(|error| format!("cannot start cargo: {error}"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let shim = root().join(target).join("debug/examples/bogo_shim");
    status.success().then_some(shim).ok_or_else(|| "cargo cannot build the shim".to_owned())
}

/// Makes the report of the runner's results, of the shim's log, and of the runner's output.
fn report(results: &str, log: &str, output: &str) -> Result<Report, String> {
    let results: Results =
        serde_json::from_str(results).map_err(|error| format!("bogo.json: {error}"))?;
    let mut report = Report::default();
    for (case, result) in results.tests {
        if result.actual != "SKIP" {
            report.verdicts.insert(case, result.actual);
        }
    }
    // A line of the log is a flag and the reason.
    for (_, reason) in log.lines().filter_map(|line| line.split_once('\t')) {
        *report.not_run.entry(reason.to_owned()).or_default() += 1;
    }
    for failure in output.split("\nFAILED (").skip(1) {
        let end = ["\nPASSED (", "\nUNIMPLEMENTED ("].iter().filter_map(|it| failure.find(it));
        report.failures.push(failure[..end.min().unwrap_or(failure.len())].trim().to_owned());
    }
    Ok(report)
}

#[derive(Deserialize)]
struct Results {
    tests: BTreeMap<String, CaseResult>,
}

#[derive(Deserialize)]
struct CaseResult {
    actual: String,
}

const RUNNER: &str = "ssl/test/runner";

/// Cases that must run: a shim that offers nothing has no failures.
const CASES_MIN: usize = 900;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_reasons_become_a_report() {
        let results = r#"{"tests": {"A": {"actual": "PASS"}, "B": {"actual": "FAIL"},
            "C": {"actual": "SKIP"}}}"#;
        let output = "PASSED (A)\nFAILED (B)\nunexpected success\n\nUNIMPLEMENTED (C)\n";
        let report = report(results, "-dtls\tDTLS is not offered\n", output).unwrap();
        assert_eq!(report.lines(), "A PASS\nB FAIL\n");
        assert_eq!(report.failures, ["B)\nunexpected success"]);
        assert!(!report.has_passed());
        let text = report.summary(std::time::Duration::from_secs(2));
        assert!(text.starts_with("2 cases in 2 s, 1 failed; 1 did not run\n"), "{text}");
        assert!(text.contains("    1 not run: DTLS is not offered"), "{text}");
    }
}
