//! The first line of a report of a run that throng did not run.

use throng_measure::runfile::ImportedFrom;

use crate::run_view::RunView;
use crate::verdict::missed;

/// Returns the verdict of a run that was imported from the log of another tool.
pub(crate) fn verdict_of_import(run: &RunView<'_>, imported: &ImportedFrom) -> String {
    let log = imported.describe();
    let unknown = "it does not say what the target, the generator and their kernels did";
    match missed(run) {
        Some(missed) => format!("Missed: {missed}; imported from {log}: {unknown}."),
        None => format!("Imported from {log}: no cause can be named, because {unknown}."),
    }
}
