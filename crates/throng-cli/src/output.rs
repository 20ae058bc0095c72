//! Standard output and standard error, for people and for programs. Only this crate prints.
//!
//! Whoever reads may stop reading (`throng report run.jsonl | head`): that is no error.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::Failure;

/// A line, or several, on standard output.
pub(crate) fn say(text: impl AsRef<str>) {
    let _ = writeln!(io::stdout().lock(), "{}", text.as_ref().trim_end_matches('\n'));
}

/// A line, or several, on standard error.
pub(crate) fn print_error(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", text.as_ref().trim_end_matches('\n'));
}

/// A value as one line of JSON on standard output.
pub(crate) fn say_json(value: &impl Serialize) {
    say(serde_json::to_string(value).expect("plain data becomes JSON"));
}

/// Where `--json` goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonOut {
    /// `-`: standard output, which then has nothing else.
    Stdout,
    /// A file, overwritten.
    File(std::path::PathBuf),
}

impl JsonOut {
    /// Reads the flag's value.
    pub(crate) fn parse(text: &str) -> Result<Self, std::convert::Infallible> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }

    /// Makes sure that the file can be written before the hours that it takes to fill it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(path) => {
                let opened = File::options().create(true).append(true).open(path);
                opened.map(drop).map_err(|error| unwritable(path, &error))
            }
        }
    }

    /// Writes `value`.
    pub(crate) fn write(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).expect("plain data becomes JSON");
        match self {
            Self::Stdout => say(text),
            Self::File(path) => {
                std::fs::write(path, text + "\n").map_err(|error| unwritable(path, &error))?;
            }
        }
        Ok(())
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// Whether standard output is a terminal whose user wants colours.
pub(crate) fn stdout_has_colors() -> bool {
    io::stdout().is_terminal() && !no_color()
}

/// Whether standard error is a terminal whose user wants colours (`NO_COLOR`, <https://no-color.org>).
pub(crate) fn stderr_has_colors() -> bool {
    io::stderr().is_terminal() && !no_color()
}

/// Whether `NO_COLOR` is set to something.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
