//! Text in Markdown that nothing in it can turn into markup.

use std::fmt::Write as _;

use super::escape::is_unsafe;
use super::table::{Align, Table};

/// Returns a table whose first row is its head.
pub(crate) fn markdown_table(table: &Table) -> String {
    let [head, rows @ ..] = table.rows() else { return String::new() };
    let row = |cells: &[String]| {
        let cells: Vec<_> = (0..head.len())
            .map(|column| cells.get(column).map_or_else(String::new, |text| markdown_cell(text)))
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = (0..head.len()).map(|column| match table.alignment(column) {
        Align::Left => "---|",
        Align::Right => "---:|",
    });
    let rule = format!("|{}\n", rule.collect::<String>());
    row(head) + &rule + &rows.iter().map(|cells| row(cells)).collect::<String>()
}

/// Returns text for the cell of a table.
pub(crate) fn markdown_cell(text: &str) -> String {
    escaped(text.trim_start())
}

/// Returns text that Markdown shows as it is. What stands between two backticks becomes code, as
/// our own sentences mean it. Names of users and numbers of issues become no links.
pub(crate) fn escaped(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut escaped = String::new();
    for (n, part) in parts.iter().enumerate() {
        let is_between = n % 2 == 1 && n + 1 < parts.len();
        if is_between && !part.trim().is_empty() {
            let code: String = part.chars().map(visible).collect();
            _ = write!(escaped, "`{}`", code.replace('|', "\\|"));
        } else if n % 2 == 1 {
            escaped += "\\`";
            escaped += &escaped_words(part);
            escaped += if is_between { "\\`" } else { "" };
        } else {
            escaped += &escaped_words(part);
        }
    }
    escaped
}

fn escaped_words(text: &str) -> String {
    let mut escaped = String::new();
    let mut chars = text.chars().map(visible).peekable();
    while let Some(c) = chars.next() {
        if MARKS.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
        let is_word = |next: &char| next.is_alphanumeric();
        if matches!(c, '@' | '#') && chars.peek().is_some_and(is_word) {
            escaped += "<!-- -->";
        }
    }
    escaped
}

/// Returns the character, or a stand-in for one that breaks a line, or that no reader sees.
fn visible(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if is_unsafe(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// The characters that mean something to Markdown in the middle of a line.
const MARKS: &str = "\\*_[]<>#|~&$!";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_text() {
        for (name, shown) in [
            ("<img src=x onerror=alert(1)>", "\\<img src=x onerror=alert(1)\\>"),
            ("[a](javascript:b)", "\\[a\\](javascript:b)"),
            ("| cell\nline", "\\| cell line"),
            ("@octocat #12", "@<!-- -->octocat \\#<!-- -->12"),
            ("do `a|b` now", "do `a\\|b` now"),
            ("`<b>", "\\`\\<b\\>"),
            ("``<b>", "\\`\\`\\<b\\>"),
            ("\u{1b}[31m\u{202e}x", "\u{fffd}\\[31m\u{fffd}x"),
        ] {
            assert_eq!(escaped(name), shown);
        }
    }
}
