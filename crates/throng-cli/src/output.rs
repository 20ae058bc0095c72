//! Standard output and standard error, for people and for programs. Only this file prints.
//!
//! Text may have names from elsewhere: of a server, an agent, a file. So each character that a
//! terminal would obey is escaped here, whatever the caller prints.
//!
//! A reader may stop reading (`throng report run.jsonl | head`): that is not an error. Any other
//! error of standard output costs the command its success.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::{panic, thread};

use serde::Serialize;
use throng_load::scenario::Diagnostics;
use throng_report::render::{escape, escape_document, escape_json, escape_lines, is_unsafe, wrap};
use throng_view::terminal::screen;

use crate::Failure;
use crate::output_place::{self, unwritable};

/// Prints one or more lines on standard output.
pub(crate) fn say(text: impl AsRef<str>) {
    print(&escape_lines(text.as_ref()));
}

/// Prints one line on standard output: a line break in it is escaped, too.
pub(crate) fn say_line(text: impl AsRef<str>) {
    print(&escape(text.as_ref()));
}

/// Prints a note of a process that goes on: each line after its first is indented, so that none
/// looks like another note.
pub(crate) fn say_note(text: impl AsRef<str>) {
    say(text.as_ref().replace('\n', "\n  "));
}

/// Prints the text of a file, which may have tabs, on standard output.
pub(crate) fn say_document(text: impl AsRef<str>) {
    print(&escape_document(text.as_ref()));
}

fn print(text: &str) {
    let written = writeln!(io::stdout().lock(), "{}", text.trim_end_matches('\n'));
    note_stdout(&written);
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
    print_error_escaped(&escape_lines(text.as_ref()));
}

fn print_error_escaped(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end_matches('\n'));
}

/// Prints the error of a command on standard error, after a word that says so.
pub(crate) fn print_failure(text: &str) {
    let error = if stderr_has_colors() { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
    print_error_escaped(&format!("{error} {}", escape_lines(text)));
}

/// Prints mistakes or warnings with the lines that they are about, on standard error.
pub(crate) fn print_mistakes(mistakes: &Diagnostics) {
    print_error_escaped(&escape_but_styles(&mistakes.render(stderr_has_colors())));
}

/// Prints the lines of a report on standard output. `paint` adds colours, after what is in the
/// lines was escaped.
pub(crate) fn say_painted(text: &str, paint: impl FnOnce(String) -> String) {
    print(&paint(escape_lines(text)));
}

/// Prints a value as one line of JSON on standard output.
pub(crate) fn say_json(value: &impl Serialize) {
    print(&escape_json(&serde_json::to_string(value).expect("plain data becomes JSON")));
}

/// Prints lines of JSON on standard output.
pub(crate) fn say_json_lines(lines: &str) {
    print(&escape_json(lines));
}

/// Prints `value` as JSON if the user asked for it, else `text`.
pub(crate) fn say_either(json: bool, value: &impl Serialize, text: impl AsRef<str>) {
    if json { say_json(value) } else { say(text) }
}

/// Prints text that is not the output itself: on standard error if standard output is for JSON.
pub(crate) fn say_beside(json: bool, text: impl AsRef<str>) {
    if json { print_error(text) } else { say(text) }
}

/// Prints panics of this process as everything else is printed: a message may have text from
/// elsewhere.
pub(crate) fn escape_panics() {
    panic::set_hook(Box::new(|panic| {
        let current = thread::current();
        print_error(format!("thread '{}' {panic}", current.name().unwrap_or("<unnamed>")));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            print_error(trace.to_string());
        }
    }));
}

/// Returns standard output as a writer of a report.
pub(crate) fn stdout() -> impl Write + Send {
    EscapedWriter { out: Stdout, rest: Vec::new() }
}

/// Returns standard error as a writer of lines.
pub(crate) fn stderr() -> impl Write + Send {
    EscapedWriter { out: io::stderr(), rest: Vec::new() }
}

/// Standard output, whose errors are noted.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = io::stdout().write(bytes);
        note_stdout(&written);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = io::stdout().flush();
        note_stdout(&flushed);
        flushed
    }
}

/// A writer that escapes text as [`say_document`] does.
struct EscapedWriter<W> {
    out: W,
    /// The first bytes of a character whose others have not been written.
    rest: Vec<u8>,
}

impl<W: Write> Write for EscapedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        self.out.write_all(escape_document(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns text in which nothing is left for a terminal to obey but styles: `ESC [ 1 ; 31 m`.
fn escape_but_styles(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| is_unsafe(c) && c != '\n') {
        let (before, from) = rest.split_at(at);
        safe += before;
        let length = style_length(from).unwrap_or(0);
        safe += &from[..length];
        rest = &from[length..];
        if length == 0 {
            let first = from.chars().next().map_or(0, char::len_utf8);
            safe += &escape(&from[..first]);
            rest = &from[first..];
        }
    }
    safe + rest
}

/// Returns the length of the style with which a text begins.
fn style_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some("\x1b[".len() + end + 1)
}

/// Notes the first error of standard output, unless its reader has gone.
fn note_stdout<T>(written: &io::Result<T>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
        && error.kind() != io::ErrorKind::Interrupted
    {
        STDOUT_ERROR.get_or_init(|| error.to_string());
    }
}

/// Returns the failure to write standard output, if there was one.
pub(crate) fn stdout_failure() -> Option<Failure> {
    let error = STDOUT_ERROR.get()?;
    Some(Failure::new(format!("cannot write standard output: {error}")).unwritten())
}

/// The first error of standard output.
static STDOUT_ERROR: OnceLock<String> = OnceLock::new();

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
        let text = escape_json(&text) + "\n";
        match self {
            Self::Stdout => print(&text),
            Self::File(path) => {
                let written = std::fs::write(path, text);
                written.map_err(|error| unwritable(path, error).unwritten())?;
            }
        }
        Ok(())
    }
}

/// Reports whether a standard stream is a terminal. One that has closed is none.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

/// Reports whether standard output is a terminal with colours enabled.
pub(crate) fn stdout_has_colors() -> bool {
    io::stdout().is_terminal() && !no_color()
}

/// Reports whether standard error is a terminal with colours enabled (`NO_COLOR`,
/// <https://no-color.org>).
fn stderr_has_colors() -> bool {
    io::stderr().is_terminal() && !no_color()
}

/// Reports whether `NO_COLOR` is set and not empty.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use throng_load::scenario::Diagnostic;

    use super::*;

    #[test]
    fn sentences_are_wrapped_and_tables_are_not() {
        let table = "connects  1.03k  104/s\n";
        assert_eq!(
            wrapped(&format!("one two three\n  four five\n{table}"), 9),
            format!("one two\nthree\n  four\n  five\n{table}")
        );
    }

    #[test]
    fn a_writer_escapes_text_wherever_it_is_cut() {
        let text = "a\tä日\u{202e}\x1b[2J\n";
        let written = |parts: &[&[u8]]| {
            let mut out = Vec::new();
            let mut writer = EscapedWriter { out: &mut out, rest: Vec::new() };
            parts.iter().for_each(|part| writer.write_all(part).unwrap());
            String::from_utf8(out).unwrap()
        };
        for cut in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(cut);
            assert_eq!(written(&[left, right]), "a\tä日\\u{202e}\\u{1b}[2J\n");
        }
        assert_eq!(written(&[b"a\xff\x9bb"]), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn mistakes_keep_their_styles_and_nothing_else() {
        let hostile = "na\x1b[8mme\x1b]0;title\x07\u{202e}\u{9b}2J";
        let mistake = Diagnostic::new(3..4, hostile, hostile).help(hostile);
        let mistakes = Diagnostics::new(hostile, &format!("a: {hostile}"), vec![mistake]);
        for color in [false, true] {
            let shown = escape_but_styles(&mistakes.render(color));
            assert_eq!(shown.contains("\x1b["), color, "{shown}");
            assert!(!shown.contains("\x1b[8m") && !shown.contains("\x1b]"), "{shown:?}");
            assert!(!shown.contains(['\x07', '\u{202e}', '\u{9b}']), "{shown:?}");
        }
        assert_eq!(escape_but_styles("\x1b[1;31mx\x1b[m\x1b[1"), "\x1b[1;31mx\x1b[m\\u{1b}[1");
    }
}
