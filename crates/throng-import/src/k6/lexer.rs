//! The words of JavaScript, as far as scripts of k6 need them.

use throng_load::scenario::Diagnostic;

use crate::lexer::{Language, Scanner, TextRules, Token, TokenKind};
use crate::source::Span;

pub(super) static JAVASCRIPT: Language = Language {
    comment: "//",
    long_comment: Some(("/*", "*/")),
    has_lines: false,
    signs: SIGNS,
    read,
    unknown: |first| {
        (format!("`{}` is no word of a script", first.escape_debug()), "not expected here")
    },
    unexpected: "this cannot be read",
    ends_early: "the script ends here",
    depth_max: (64, "this is nested too deeply"),
};

/// Returns the words in this part of the source.
pub(super) fn tokens(source: &str, part: &Span) -> Result<Vec<Token>, Diagnostic> {
    crate::lexer::tokens(source, part, &JAVASCRIPT).map(|(tokens, _)| tokens)
}

fn read(scanner: &mut Scanner<'_>, first: char) -> Result<Option<TokenKind>, Diagnostic> {
    let has_no_end = "a text has no end";
    let kind = match first {
        '"' | '\'' => scanner
            .quoted(first, &TEXT)?
            .map(TokenKind::Text)
            .ok_or_else(|| scanner.mistake(has_no_end, format!("expected {first} at its end")))?,
        '`' => {
            let begin = scanner.at..scanner.at + 1;
            let pieces = scanner.template(first, &TEMPLATE)?;
            pieces
                .map(TokenKind::Template)
                .ok_or_else(|| Diagnostic::new(begin, has_no_end, "expected a backtick"))?
        }
        '0'..='9' => number(scanner)?,
        _ if first.is_alphabetic() || "_$".contains(first) => {
            let is_part = |c: char| c.is_alphanumeric() || "_$".contains(c);
            TokenKind::Word(scanner.take_while(is_part).to_owned())
        }
        _ => return Ok(None),
    };
    Ok(Some(kind))
}

fn number(scanner: &mut Scanner<'_>) -> Result<TokenKind, Diagnostic> {
    let written = scanner.take_while(|c| c.is_ascii_alphanumeric() || "._".contains(c));
    let digits = written.replace('_', "");
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(TokenKind::Number).ok_or_else(|| {
        let title = format!("`{digits}` is no number");
        scanner.mistake(title, "expected a number such as `10` or `0.5`")
    })
}

const TEXT: TextRules = TextRules { expression: None, is_one_line: true, escaped };

const TEMPLATE: TextRules = TextRules { expression: Some("${"), is_one_line: false, escaped };

/// Reads what follows a backslash.
fn escaped(scanner: &mut Scanner<'_>) -> Result<Option<char>, Diagnostic> {
    Ok(match scanner.next() {
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('t') => Some('\t'),
        Some('0') => Some('\0'),
        Some('\n') => None,
        Some('x') => code(scanner, 2),
        Some('u') => code(scanner, 4),
        other => other,
    })
}

fn code(scanner: &mut Scanner<'_>, digits: usize) -> Option<char> {
    let code = scanner.rest().get(..digits)?;
    let code = u32::from_str_radix(code, 16).ok()?;
    scanner.at += digits;
    char::from_u32(code)
}

const SIGNS: &[&str] = &[
    "===", "!==", "...", "**=", ">>>", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++",
    "--", "+=", "-=", "*=", "/=", "**", "(", ")", "{", "}", "[", "]", ";", ",", ":", ".", "=", "+",
    "-", "*", "/", "%", "<", ">", "!", "?", "&", "|", "^",
];
