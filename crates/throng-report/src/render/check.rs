//! The outcome of a run in a few lines, as `throng report --check` prints it.

use std::fmt::Write as _;

use super::escape_lines;
use crate::{Judgement, RunExit, Summary};

/// Returns the outcome, and each reason of one that is no success.
pub fn check_text(summary: &Summary, judgements: &[Judgement]) -> String {
    let exit = RunExit::of(summary, judgements);
    let mut text = match exit {
        RunExit::Met if summary.run.imported.is_some() => "met: the log was imported",
        RunExit::Met => "met: the run completed its plan, and no threshold was missed",
        RunExit::Missed => "missed",
        RunExit::Unreached => "unreached: no connection was ever established",
        RunExit::Invalid => "invalid: the run measures the generator and not the target",
        RunExit::Incomplete => "incomplete",
        RunExit::Unwritten => "unwritten: the run file is not whole",
    }
    .to_owned();
    if let Some(why) = &summary.run.incomplete {
        _ = write!(text, "\n  {why}");
    }
    if matches!(exit, RunExit::Invalid | RunExit::Unwritten) || summary.run.imported.is_some() {
        summary.validity.reasons.iter().for_each(|reason| _ = write!(text, "\n  {reason}"));
    }
    if let Some(why) = summary.shortcoming().filter(|_| exit != RunExit::Unreached) {
        _ = write!(text, "\n  {why}");
    }
    for judgement in judgements.iter().filter(|judgement| !judgement.met) {
        _ = write!(text, "\n  {}: measured {}", judgement.threshold, judgement.measured);
    }
    // Names of a file that another program wrote must not steer the terminal.
    escape_lines(&text)
}
