//! The end of a command: its exit code, and the error when it could not run.

use std::fmt;
use std::process::ExitCode;

use throng_load::scenario::Diagnostics;
use throng_report::RunExit;
use throng_report::search::{SearchEnd, SearchRecord};

use crate::output;

/// The exit codes, for the help of every command that has more than one.
macro_rules! exit_codes {
    () => {
        "Exit codes:
  0  the run completed its plan and met every threshold
  1  a threshold was missed, no user finished, or the target stopped answering
  2  the run could not start, or it never connected and no threshold judges that
  3  the result is invalid: it measures the generator, not the target
  4  incomplete: Ctrl-C, SIGTERM, `throng ctl`, `throng fleet stop`, a key, the page or --pause-max
     ended the run before its plan did
  5  the run met every threshold, but a file of it could not be written whole"
    };
}
pub(crate) use exit_codes;

/// The outcome of a command, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: completed, and every threshold was met.
    Met,
    /// 1: completed, and a threshold was missed.
    Missed,
    /// 2: a check found that the run would not work, or no connection was established.
    CannotRun,
    /// 3: completed, and the result cannot be trusted.
    Invalid,
    /// 4: ended before it was complete.
    Incomplete,
    /// 5: completed, every threshold was met, and a file or standard output is not whole.
    Unwritten,
}

impl Exit {
    /// Returns the outcome if an output is not whole after all else is known.
    pub(crate) fn or_unwritten(self) -> Self {
        if self == Self::Met { Self::Unwritten } else { self }
    }

    /// Returns the outcome of a search.
    pub(crate) fn of_search(record: &SearchRecord) -> Self {
        let Some(end) = record.end else { return Self::Incomplete };
        match end.end {
            _ if end.found.is_none() => Self::Missed,
            SearchEnd::Found | SearchEnd::Most => Self::Met,
            SearchEnd::Generator => Self::Invalid,
            SearchEnd::Least | SearchEnd::NotRecovered | SearchEnd::Steps => Self::Missed,
        }
    }
}

impl From<RunExit> for Exit {
    fn from(exit: RunExit) -> Self {
        match exit {
            RunExit::Met => Self::Met,
            RunExit::Missed => Self::Missed,
            RunExit::Unreached => Self::CannotRun,
            RunExit::Invalid => Self::Invalid,
            RunExit::Incomplete => Self::Incomplete,
            RunExit::Unwritten => Self::Unwritten,
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
            Exit::Unwritten => UNWRITTEN,
        })
    }
}

/// The exit code of what was done, but not written whole.
const UNWRITTEN: u8 = 5;

/// The command could not run: exit code 2, unless it says another. The text says why, and what to
/// type instead.
#[derive(Debug)]
pub(crate) struct Failure {
    text: FailureText,
    code: u8,
}

#[derive(Debug)]
enum FailureText {
    Sentence(String),
    /// Mistakes, each with the line that it is in.
    Mistakes(Diagnostics),
}

impl Failure {
    /// Returns a failure with a sentence.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: FailureText::Sentence(text.into()), code: 2 }
    }

    /// Returns the failure to read what has these mistakes.
    pub(crate) fn mistakes(mistakes: Diagnostics) -> Self {
        Self { text: FailureText::Mistakes(mistakes), code: 2 }
    }

    /// Returns the failure of a command that has done its work, and could not write it.
    pub(crate) fn unwritten(self) -> Self {
        self.with_code(UNWRITTEN)
    }

    /// Returns the failure with another exit code, for a command that started this one.
    pub(crate) fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// Prints the failure and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        self.print();
        ExitCode::from(self.code)
    }

    /// Prints the failure.
    pub(crate) fn print(&self) {
        match &self.text {
            FailureText::Sentence(text) => output::print_failure(text),
            FailureText::Mistakes(mistakes) => output::print_mistakes(mistakes),
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            FailureText::Sentence(text) => f.write_str(text),
            FailureText::Mistakes(mistakes) => fmt::Display::fmt(mistakes, f),
        }
    }
}
