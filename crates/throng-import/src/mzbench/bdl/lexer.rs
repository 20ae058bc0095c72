//! The tokens of benchDL.

use throng_load::scenario::Diagnostic;

use crate::lexer::{Language, Scanner, TextRules, TokenKind};

pub(super) static BENCH_DL: Language = Language {
    comment: "#",
    long_comment: None,
    has_lines: false,
    signs: SIGNS,
    read,
    unknown: |_| {
        let title = "benchDL has no such character".to_owned();
        (title, "expected a name, a number, a string or a list")
    },
    unexpected: UNREADABLE,
    ends_early: UNREADABLE,
    depth_max: (32, "too many calls in calls"),
};

fn read(scanner: &mut Scanner<'_>, first: char) -> Result<Option<TokenKind>, Diagnostic> {
    let behind_minus = scanner.rest().trim_start_matches('-');
    let kind = match first {
        '"' => text(scanner)?,
        '-' | '0'..='9' if behind_minus.starts_with(|c: char| c.is_ascii_digit()) => {
            number(scanner)?
        }
        _ if first.is_alphabetic() || first == '_' => {
            let word = scanner.take_while(|c| c.is_alphanumeric() || c == '_');
            TokenKind::Word(word.to_owned())
        }
        _ => return Ok(None),
    };
    Ok(Some(kind))
}

/// Reads `12`, `-1.5` or `20M`.
fn number(scanner: &mut Scanner<'_>) -> Result<TokenKind, Diagnostic> {
    let is_digit = |c: char| c.is_ascii_digit();
    scanner.takes("-");
    scanner.take_while(is_digit);
    scanner.takes_fraction(is_digit);
    let value: f64 = scanner.text().parse().unwrap_or(f64::INFINITY);
    let mut letters = scanner.rest().chars();
    let (suffix, behind) = (letters.next(), letters.next());
    let factor = SUFFIXES.iter().find(|(letter, _)| suffix == Some(*letter));
    let factor = factor.filter(|_| !behind.is_some_and(char::is_alphanumeric));
    scanner.at += usize::from(factor.is_some());
    let value = value * factor.map_or(1.0, |(_, factor)| *factor);
    if !value.is_finite() || value.abs() > NUMBER_MAX {
        let label = "expected a number of at most 10^15";
        return Err(scanner.mistake("this number is too large", label));
    }
    Ok(TokenKind::Number(value))
}

/// Reads a text in quotes.
fn text(scanner: &mut Scanner<'_>) -> Result<TokenKind, Diagnostic> {
    let text = scanner.quoted('"', &TEXT)?;
    text.map(TokenKind::Text).ok_or_else(|| {
        scanner.mistake("the string has no end", "expected `\"` at the end of the string")
    })
}

const TEXT: TextRules = TextRules {
    expression: None,
    is_one_line: true,
    escaped: |scanner| {
        Ok(scanner.next().map(|escaped| match escaped {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            other => other,
        }))
    },
};

const UNREADABLE: &str = "this cannot be read";

const SIGNS: &[&str] =
    &["<=", ">=", "==", "!=", "/=", "<>", "<", ">", "=", "(", ")", "[", "]", ",", ":"];

/// Suffixes of numbers.
const SUFFIXES: [(char, f64); 4] = [('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];

/// Largest number of a file.
const NUMBER_MAX: f64 = 1e15;
