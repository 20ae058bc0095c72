//! Logs of other tools, and the runs that the importers write.
//!
//! Those of tsung were written by tsung 1.7.0 against `throng serve` and a server of files. Those
//! of k6 and Artillery are written by hand, in the form of their versions 0.49 and 2.0.

mod artillery;
mod k6;
mod mistakes;
mod tsung;

use std::fs;
use std::path::{Path, PathBuf};

use throng_import::{FidelityReport, LogImport, import_log};
use throng_measure::runfile::{RunFile, read};
use throng_measure::{Diagnosis, LoadInterval};
use throng_report::{Summary, render};

/// Imports a log of `log_files`, which must be valid.
fn import(path: &str) -> (RunFile, FidelityReport) {
    import_text(&text_of(path), path)
}

fn import_text(text: &str, name: &str) -> (RunFile, FidelityReport) {
    let LogImport { run_file, fidelity } =
        import_log(text, name, None).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let run = read(&mut run_file.as_slice()).unwrap();
    // A run that was killed has no last line, and nothing else is wrong with it.
    assert_eq!((run.lines_torn, run.warnings.is_empty()), (0, run.end.is_some()));
    (run, fidelity)
}

fn text_of(path: &str) -> String {
    fs::read_to_string(logs().join(path)).unwrap()
}

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/log_files")
}

/// Shows what a person sees of an import and of its report.
fn show(path: &str) -> String {
    let (run, fidelity) = import(path);
    let summary = Summary::of(&run);
    let report = render::render_details(&summary, &[], None::<&Diagnosis>);
    format!("{fidelity}\n\n{report}")
}

/// Returns the last interval of a log of `log_files`, which must be whole.
fn last(path: &str) -> LoadInterval {
    let (run, _) = import(path);
    assert_whole(&run);
    run.intervals.last().unwrap().load.clone().unwrap()
}

/// Checks that the counters of a run only grow, and that everything that began has ended once.
fn assert_whole(run: &RunFile) {
    let loads: Vec<_> = run.intervals.iter().map(|line| line.load.as_ref().unwrap()).collect();
    for pair in loads.windows(2) {
        let grown = pair[0].counters.fields().zip(pair[1].counters.fields());
        for (before, after) in grown.filter(|(field, _)| field.kind.to_string() == "counter") {
            assert!(before.value <= after.value, "{} fell", after.name);
        }
    }
    let spans: u64 = run.intervals.iter().map(|line| line.span_ms).sum();
    let last = run.intervals.last().unwrap();
    assert_eq!(spans, last.at_ms, "the intervals have no gaps");
    let counters = &last.load.as_ref().unwrap().counters;
    let ended = counters.users_finished + counters.users_failed + counters.users_cut;
    assert_eq!(counters.iterations, ended);
    let ended = counters.connects_ok + counters.connects_failed + counters.connects_waiting;
    assert_eq!(counters.connects_started, ended);
    assert_eq!(counters.http_started, counters.http_ok + counters.http_failed);
}

#[test]
fn damaged_logs_are_imported_or_refused() {
    for path in
        ["tsung/tcp.log", "k6/http.json", "k6/socket.json", "k6/export.json", "artillery/http.json"]
    {
        let text = text_of(path);
        let check = |text: &str| drop(import_log(text, path, None));
        let step = 1 + text.len() / 60;
        for at in (0..text.len()).step_by(step) {
            let Some((before, after)) = text.split_at_checked(at) else { continue };
            check(before);
            check(after);
            check(&format!("{before}{}", after.get(7..).unwrap_or_default()));
            for wrong in ["\"", "}", "-", "9999999999999999999999", "é", "1e309", "\n"] {
                check(&format!("{before}{wrong}{}", after.get(1..).unwrap_or_default()));
            }
        }
    }
}
