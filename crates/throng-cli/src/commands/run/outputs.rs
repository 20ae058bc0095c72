//! The files that a run writes: each another one, and none that the run reads.

use std::borrow::Cow;
use std::path::Path;

use throng_load::scenario::Scenario;

use super::flags::Run;
use crate::Failure;
use crate::output::JsonOut;
use crate::output_place::{is_one_file, unwritable};

/// Refuses a file that the run also reads, or that two flags name.
pub(super) fn check(typed: &Run, scenario: &Scenario) -> Result<(), Failure> {
    type Taken<'a> = (Cow<'a, Path>, String);
    let input = |path, why: &str| (Cow::Borrowed(path), why.to_owned());
    let mut taken: Vec<Taken<'_>> = vec![input(typed.scenario.as_path(), "it is the scenario")];
    taken.extend(scenario.files.iter().map(|path| input(path, "the scenario reads it")));
    for (flag, path) in outputs(typed) {
        if let Some((_, why)) = taken.iter().find(|(known, _)| is_one_file(known, &path)) {
            return Err(unwritable(&path, format!("{why}; name another file with {flag}")));
        }
        let why = match flag {
            "--record" => "it is the run file".to_owned(),
            flag => format!("{flag} names it, too"),
        };
        taken.push((path, why));
    }
    Ok(())
}

/// Returns the files that a run writes, each with its flag.
fn outputs(typed: &Run) -> impl Iterator<Item = (&'static str, Cow<'_, Path>)> {
    let record = (!typed.no_record).then_some(("--record", Cow::Borrowed(typed.record.as_path())));
    let json = match &typed.json {
        Some(JsonOut::File(path)) => Some(("--json", Cow::Borrowed(path.as_path()))),
        Some(JsonOut::Stdout) | None => None,
    };
    let reports = typed.report.iter().map(|place| ("--report", place.path(&typed.record).into()));
    let trace = typed.trace.file.as_deref().map(|path| ("--trace-file", path.into()));
    // Whether there is a live view is not known yet.
    let beside = typed.trace.file_beside(&typed.record).filter(|_| !typed.no_tui);
    let beside = beside.map(|path| ("--trace-file", Cow::Owned(path)));
    record.into_iter().chain(json).chain(reports).chain(trace).chain(beside)
}
