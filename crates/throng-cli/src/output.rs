//! Standard output and standard error, for people and for programs. Only this crate prints.
//!
//! A reader may stop reading (`throng report run.jsonl | head`): that is not an error.

use std::fs::File;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use throng_report::render::wrap;
use throng_view::terminal::screen;

use crate::Failure;
use crate::output_place::{self, unwritable};

/// Prints one or more lines on standard output.
pub(crate) fn say(text: impl AsRef<str>) {
    let _ = writeln!(io::stdout().lock(), "{}", text.as_ref().trim_end_matches('\n'));
}

/// Returns a report as a terminal shows it best: no sentence breaks inside a word. What is aligned,
/// and what is for a file or a pipe, stays as it is.
pub(crate) fn for_terminal(text: String) -> String {
    match screen::output_width() {
        Some(width) if width >= WIDTH_LEAST => wrapped(&text, width),
        _ => text,
    }
}

fn wrapped(text: &str, width: usize) -> String {
    let line = |line: &str| match line.trim_start().contains("  ") {
        true => format!("{line}\n"),
        false => wrap(line, width) + "\n",
    };
    text.lines().map(line).collect()
}

/// The columns below which a terminal breaks lines better itself.
const WIDTH_LEAST: usize = 30;

/// Prints one or more lines on standard error.
pub(crate) fn print_error(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", text.as_ref().trim_end_matches('\n'));
}

/// Prints a value as one line of JSON on standard output.
pub(crate) fn say_json(value: &impl Serialize) {
    say(serde_json::to_string(value).expect("plain data becomes JSON"));
}

/// Prints `value` as JSON if the user asked for it, else `text`.
pub(crate) fn say_either(json: bool, value: &impl Serialize, text: impl AsRef<str>) {
    if json { say_json(value) } else { say(text) }
}

/// Prints text that is not the output itself: on standard error if standard output is for JSON.
pub(crate) fn say_beside(json: bool, text: impl AsRef<str>) {
    if json { print_error(text) } else { say(text) }
}

/// The destination of `--json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonOut {
    /// `-`: standard output, which then contains nothing else.
    Stdout,
    /// A file, which is overwritten.
    File(std::path::PathBuf),
}

impl JsonOut {
    /// Parses the flag's value.
    pub(crate) fn parse(text: &str) -> Result<Self, std::convert::Infallible> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }

    /// Checks that the file can be written, before the hours that it takes to produce its content.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(path) => {
                output_place::check(path)?;
                let opened = File::options().create(true).append(true).open(path);
                opened.map(drop).map_err(|error| unwritable(path, error))
            }
        }
    }

    /// Writes `value` as JSON.
    pub(crate) fn write(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).expect("plain data becomes JSON");
        match self {
            Self::Stdout => say(text),
            Self::File(path) => {
                std::fs::write(path, text + "\n").map_err(|error| unwritable(path, error))?;
            }
        }
        Ok(())
    }
}

/// Reports whether standard output is a terminal with colours enabled.
pub(crate) fn stdout_has_colors() -> bool {
    io::stdout().is_terminal() && !no_color()
}

/// Reports whether standard error is a terminal with colours enabled (`NO_COLOR`,
/// <https://no-color.org>).
pub(crate) fn stderr_has_colors() -> bool {
    io::stderr().is_terminal() && !no_color()
}

/// Reports whether `NO_COLOR` is set and not empty.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_and_tables_are_not() {
        let table = "connects  1.03k  104/s\n";
        assert_eq!(
            wrapped(&format!("one two three\n  four five\n{table}"), 9),
            format!("one two\nthree\n  four\n  five\n{table}")
        );
    }
}
