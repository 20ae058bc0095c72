//! What an agent says about its work, and the last lines of it.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use throng_bus::{BusChange, Text};
use throng_report::render::micros;

use crate::message::AgentCalibration;
use crate::request::{LOG_LINES_MAX, LogLine};

/// What an agent says about its work, for its user.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentNote {
    /// It has joined its group.
    Joined {
        /// Its name.
        agent: String,
        /// The group.
        group: String,
        /// CPUs that it may use.
        cpus: usize,
    },
    /// It has measured what its machine can do.
    Calibrated(AgentCalibration),
    /// It could not measure that, for this reason.
    NotCalibrated(String),
    /// It gets ready for this run.
    Preparing(String),
    /// It is ready.
    Ready,
    /// It cannot make the run.
    CannotRun(String),
    /// The load begins after this time.
    Starting(Duration),
    /// The load has ended.
    Ended,
    /// The run is over: the agent is free for another one.
    Idle,
    /// The coordinator of this run is silent, and has not fetched everything.
    Kept(String),
    /// A coordinator has fetched everything of this run that was kept for it.
    Delivered(String),
    /// The results of a run were not fetched, and are no longer kept.
    Forgotten {
        /// The run.
        run: String,
        /// The reason.
        why: &'static str,
    },
    /// The bus has changed.
    Bus(BusChange),
    /// This process asked it over the bus to end.
    AskedToEnd(String),
}

impl fmt::Display for AgentNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { agent, group, cpus } => write!(
                f,
                "agent {agent} of group {group}: {cpus} CPUs; waiting for a run, Ctrl-C ends it"
            ),
            Self::Calibrated(calibration) => write!(f, "calibrated: {calibration}"),
            Self::NotCalibrated(why) => write!(f, "calibration failed: {why}"),
            Self::Preparing(run) => write!(f, "run {run}: checking limits and capacity"),
            Self::Ready => f.write_str("ready"),
            Self::CannotRun(why) => write!(f, "cannot make the run: {why}"),
            Self::Starting(after) => {
                write!(f, "the load begins in {}", micros(after.as_micros() as u64))
            }
            Self::Ended => f.write_str("the load has ended; delivering what was measured"),
            Self::Idle => f.write_str("waiting for a run"),
            Self::Kept(run) => write!(
                f,
                "run {run}: its coordinator is silent; the results are kept for an hour, for it or \
                 for `throng run --resume {run}`"
            ),
            Self::Delivered(run) => write!(f, "run {run}: the results are delivered"),
            Self::Forgotten { run, why } => {
                write!(f, "run {run}: its results were not fetched and are forgotten: {why}")
            }
            Self::Bus(BusChange::Lost) => f.write_str("the bus is lost; dialling again"),
            Self::Bus(BusChange::Back) => f.write_str("the bus is back"),
            Self::Bus(BusChange::Denied(denial)) => denial.fmt(f),
            Self::AskedToEnd(asker) => write!(f, "{asker} asks it to end"),
        }
    }
}

/// The last lines that an agent has said: [`LOG_LINES_MAX`] of them.
#[derive(Debug, Default)]
pub(crate) struct AgentLog {
    lines: VecDeque<LogLine>,
}

impl AgentLog {
    /// Adds each line of a text. `at` is the time as RFC 3339.
    pub(crate) fn add(&mut self, at: &str, text: &str) {
        for line in text.lines() {
            if self.lines.len() == LOG_LINES_MAX {
                self.lines.pop_front();
            }
            self.lines.push_back(LogLine { at: Text::cut(at), text: Text::cut(line) });
        }
    }

    /// Returns the last lines, so many at most, the oldest first.
    pub(crate) fn last(&self, lines_max: usize) -> Vec<LogLine> {
        self.lines.iter().skip(self.lines.len().saturating_sub(lines_max)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{AgentAnswer, Answer, LOG_LINE_BYTES_MAX};

    fn texts(lines: &[LogLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn the_last_lines_are_kept_and_each_is_one() {
        let mut log = AgentLog::default();
        log.add("t", "one\n  two\x1b[2J\u{202e}");
        assert_eq!(texts(&log.last(9)), ["one", "  two [2J "]);
        assert_eq!(texts(&log.last(1)), ["  two [2J "]);
        assert!(log.last(0).is_empty());
        for number in 0..LOG_LINES_MAX {
            log.add("t", &number.to_string());
        }
        assert_eq!(log.last(usize::MAX).len(), LOG_LINES_MAX);
        assert_eq!(texts(&log.last(usize::MAX))[0], "0");
    }

    #[test]
    fn a_full_log_fits_into_one_message() {
        let mut log = AgentLog::default();
        for _ in 0..LOG_LINES_MAX {
            log.add("2026-11-21T06:06:57Z", &"\"".repeat(2 * LOG_LINE_BYTES_MAX));
        }
        let answer = AgentAnswer::Log(log.last(LOG_LINES_MAX));
        let bytes =
            serde_json::to_vec(&Answer { incarnation: throng_bus::Name::default(), answer })
                .unwrap();
        assert!(bytes.len() < throng_bus::PAYLOAD_BYTES_MAX, "{}", bytes.len());
        log.add("t", &"é".repeat(LOG_LINE_BYTES_MAX));
        let cut = "é".repeat(LOG_LINE_BYTES_MAX / 2 - 2) + "…";
        assert_eq!(texts(&log.last(1)), [cut]);
    }
}
