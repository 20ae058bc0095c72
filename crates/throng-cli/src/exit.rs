//! How a command ends: its exit code, and the sentence on standard error when it could not run.

use std::fmt;
use std::process::ExitCode;

use throng_report::RunExit;

use crate::output;

/// The exit codes, for the help of every command that has more than one.
macro_rules! exit_codes {
    () => {
        "Exit codes:
  0  the plan was played to its end, and every threshold was met
  1  a threshold was missed; or no user came through, or the target answered no more
  2  it could not run, or nobody was ever connected
  3  the result is invalid: it is the generator's and not the target's
  4  incomplete: Ctrl-C, SIGTERM or `throng ctl` ended it before its plan was over"
    };
}
pub(crate) use exit_codes;

/// What the exit code says about what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: it was done, and every threshold was met.
    Met,
    /// 1: it was done, and a threshold was missed.
    Missed,
    /// 2: it was asked whether something would work, and it would not.
    CannotRun,
    /// 3: it was done, and the result is not to be believed.
    Invalid,
    /// 4: it was ended before it was done.
    Incomplete,
}

impl From<RunExit> for Exit {
    fn from(exit: RunExit) -> Self {
        match exit {
            RunExit::Met => Self::Met,
            RunExit::Missed => Self::Missed,
            RunExit::Unreached => Self::CannotRun,
            RunExit::Invalid => Self::Invalid,
            RunExit::Incomplete => Self::Incomplete,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Met => 0,
            Exit::Missed => 1,
            Exit::CannotRun => 2,
            Exit::Invalid => 3,
            Exit::Incomplete => 4,
        })
    }
}

/// 2: it could not run. The text says why, and what to type instead.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    /// Whether the text says `error` itself, as a rendered diagnostic does.
    is_rendered: bool,
}

impl Failure {
    /// A sentence.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_rendered: false }
    }

    /// A whole report, with its own beginning and colours.
    pub(crate) fn rendered(text: String) -> Self {
        Self { text, is_rendered: true }
    }

    /// Says it and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let error = if output::stderr_has_colors() { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
        match self.is_rendered {
            true => output::print_error(&self.text),
            false => output::print_error(format!("{error} {}", self.text)),
        }
        ExitCode::from(2)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
