//! The outcome of a run, as the exit code of `throng run` and `throng report` reports it.

use throng_base::units::{brief_count, plural};
use throng_measure::runfile::RunEndReason;
use throng_measure::{Grade, Operation};

use crate::{Judgement, Summary};

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExit {
    /// The run played its plan to the end and met every threshold.
    Met,
    /// The run missed a threshold, or no user finished an iteration, or the target had stopped
    /// answering at the end.
    Missed,
    /// No connection was ever established, and no threshold says what that means.
    Unreached,
    /// The numbers cannot be trusted.
    Invalid,
    /// The run ended before its plan did.
    Incomplete,
    /// The run met every threshold, and lines of its run file could not be written.
    Unwritten,
}

impl RunExit {
    /// Returns the outcome of the run in `summary`. A run that ended before its plan did is
    /// incomplete, whatever its thresholds say.
    pub fn of(summary: &Summary, judgements: &[Judgement]) -> Self {
        let invalid = summary.validity.grade == Grade::Invalid;
        let missed = judgements.iter().any(|judgement| !judgement.met);
        match summary.run.end {
            // The generator failed, so its own numbers are incomplete too.
            Some(RunEndReason::Failed) => Self::Invalid,
            _ if summary.run.incomplete.is_some() => Self::Incomplete,
            _ if summary.is_unreached() && judgements.is_empty() => Self::Unreached,
            _ if invalid => Self::Invalid,
            _ if missed || summary.is_unreached() || summary.shortcoming().is_some() => {
                Self::Missed
            }
            _ if summary.run.lines_lost > 0 => Self::Unwritten,
            _ => Self::Met,
        }
    }

    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Met => 0,
            Self::Missed => 1,
            Self::Unreached => 2,
            Self::Invalid => 3,
            Self::Incomplete => 4,
            Self::Unwritten => 5,
        }
    }
}

impl Summary {
    /// Reports whether the run intended to connect and never established a connection.
    pub fn is_unreached(&self) -> bool {
        self.connect.ok == 0 && self.connect.intended > 0
    }

    /// Returns how much of the run file could not be written, as a sentence without a final full
    /// stop.
    pub fn unwritten(&self) -> Option<String> {
        let n = self.run.lines_lost;
        let lines = plural(n, "line of the run file", "lines of the run file");
        (n > 0).then(|| format!("{n} {lines} could not be written"))
    }

    /// Returns the reason why the run is no success whatever its thresholds say, as a sentence
    /// without a final full stop.
    pub fn shortcoming(&self) -> Option<String> {
        if self.run.end == Some(RunEndReason::TargetLost) {
            return Some("the target had stopped answering when the run ended".to_owned());
        }
        let users = &self.users;
        if users.finished > 0 {
            return None;
        }
        if users.failed >= users.started.max(1) && users.failed >= users.cut {
            let failed = brief_count(users.failed as f64);
            return Some(match users.failed {
                1 => "no user finished: the only iteration failed".to_owned(),
                _ => format!("no user finished: all {failed} iterations failed"),
            });
        }
        let (mut answered, mut unanswered) = (0, 0);
        for of in Operation::requests().filter_map(|of| self.operation(of)) {
            answered += of.ok;
            unanswered += of.failed + of.waiting;
        }
        (answered == 0 && unanswered > 0)
            .then(|| format!("none of {} requests was answered", brief_count(unanswered as f64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::Validity;

    fn met() -> Summary {
        let mut summary = Summary::default();
        summary.run.end = Some(RunEndReason::Finished);
        (summary.connect.intended, summary.connect.ok) = (10, 10);
        (summary.users.started, summary.users.finished) = (10, 10);
        summary
    }

    fn judgements(met: &[bool]) -> Vec<Judgement> {
        let judgement = |met: &bool| Judgement {
            threshold: String::new(),
            met: *met,
            value: None,
            measured: String::new(),
        };
        met.iter().map(judgement).collect()
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Summary), thresholds: &[bool], exit: RunExit) {
        let mut summary = met();
        change(&mut summary);
        assert_eq!(RunExit::of(&summary, &judgements(thresholds)), exit, "{summary:?}");
    }

    fn invalid(summary: &mut Summary) {
        summary.validity = Validity { grade: Grade::Invalid, reasons: Vec::new() };
    }

    #[test]
    fn a_run_is_met_missed_or_invalid() {
        check(|_| {}, &[], RunExit::Met);
        check(|_| {}, &[true, true], RunExit::Met);
        check(|_| {}, &[true, false], RunExit::Missed);
        check(invalid, &[false], RunExit::Invalid);
        check(|run| run.run.end = Some(RunEndReason::Failed), &[], RunExit::Invalid);
    }

    #[test]
    fn a_run_with_lines_that_could_not_be_written_is_not_met() {
        let lossy = |run: &mut Summary| run.run.lines_lost = 1;
        check(lossy, &[], RunExit::Unwritten);
        check(lossy, &[true], RunExit::Unwritten);
        check(lossy, &[false], RunExit::Missed);
        assert_eq!(RunExit::Unwritten.code(), 5);
    }

    #[test]
    fn what_was_over_before_its_plan_is_incomplete_whatever_else_it_is() {
        let interrupted = |run: &mut Summary| {
            run.run.end = Some(RunEndReason::Interrupted);
            run.run.incomplete = Some("Ctrl-C ended it".to_owned());
        };
        check(interrupted, &[true], RunExit::Incomplete);
        check(interrupted, &[false], RunExit::Incomplete);
        let nothing_yet = |run: &mut Summary| {
            interrupted(run);
            invalid(run);
            run.connect.ok = 0;
        };
        check(nothing_yet, &[], RunExit::Incomplete);
    }

    #[test]
    fn an_unreached_target_is_missed_if_a_threshold_judges_it() {
        check(|run| run.connect.ok = 0, &[], RunExit::Unreached);
        check(|run| run.connect.ok = 0, &[true], RunExit::Missed);
    }

    #[test]
    fn a_run_in_which_no_user_finished_is_not_met() {
        let failed = |run: &mut Summary| {
            (run.users.finished, run.users.failed) = (0, 25);
            run.users.cut = 10;
        };
        check(failed, &[], RunExit::Missed);
        check(failed, &[true], RunExit::Missed);
        // A few failed, and most were still active when the run ended.
        let at_it = |run: &mut Summary| {
            (run.users.finished, run.users.failed, run.users.cut) = (0, 3, 10);
        };
        check(at_it, &[], RunExit::Met);
        let silent = |run: &mut Summary| {
            (run.users.finished, run.users.cut, run.message.waiting) = (0, 10, 10);
        };
        check(silent, &[], RunExit::Missed);
        let slow = |run: &mut Summary| {
            silent(run);
            run.message.answered = 1;
        };
        check(slow, &[], RunExit::Met);
        check(|run| run.run.end = Some(RunEndReason::TargetLost), &[true], RunExit::Missed);
    }
}
