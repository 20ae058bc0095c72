//! The tokens of Erlang's terms.

use throng_load::scenario::Diagnostic;

use crate::lexer::{Language, Scanner, TextRules, TokenKind};

pub(super) static ERLANG: Language = Language {
    comment: "%",
    long_comment: None,
    has_lines: false,
    signs: &["<<", ">>", "[", "]", "{", "}", ",", "."],
    read,
    unknown: |_| (NO_TERM.to_owned(), "expected an atom, a number, a string, a list or a tuple"),
    unexpected: NO_TERM,
    ends_early: NO_TERM,
    depth_max: (64, "too many lists in lists"),
};

const NO_TERM: &str = "this is not a term of Erlang";

fn read(scanner: &mut Scanner<'_>, first: char) -> Result<Option<TokenKind>, Diagnostic> {
    let kind = match first {
        '0'..='9' | '-' | '+' => number(scanner)?,
        '"' => TokenKind::Text(quoted(scanner, '"')?),
        '\'' => TokenKind::Atom(quoted(scanner, '\'')?),
        '$' => character(scanner)?,
        _ if first.is_lowercase() => {
            let is_part = |part: char| part.is_alphanumeric() || part == '_' || part == '@';
            TokenKind::Atom(scanner.take_while(is_part).to_owned())
        }
        _ => return Ok(None),
    };
    Ok(Some(kind))
}

/// Reads `12`, `-1.5e3` or `16#ff`.
fn number(scanner: &mut Scanner<'_>) -> Result<TokenKind, Diagnostic> {
    let is_digit = |c: char| c.is_ascii_digit();
    let takes_sign = |scanner: &mut Scanner<'_>| scanner.takes("-") || scanner.takes("+");
    takes_sign(scanner);
    scanner.take_while(is_digit);
    let written = scanner.text();
    let kind = if scanner.takes("#") {
        let digits = scanner.take_while(char::is_alphanumeric);
        let base = written.parse().ok().filter(|base| (2..=36).contains(base));
        let value = base.and_then(|base| i64::from_str_radix(digits, base).ok());
        value.map(TokenKind::Integer)
    } else if scanner.takes_fraction(is_digit) {
        let end = scanner.at;
        if scanner.takes("e") || scanner.takes("E") {
            takes_sign(scanner);
            if scanner.take_while(is_digit).is_empty() {
                scanner.at = end;
            }
        }
        let value = scanner.text().parse().ok().filter(|value: &f64| value.is_finite());
        value.map(TokenKind::Number)
    } else {
        written.parse().ok().map(TokenKind::Integer)
    };
    kind.ok_or_else(|| {
        scanner.mistake("this number cannot be read", "expected a number of at most 64 bits")
    })
}

/// Reads `$a`, the code of a character.
fn character(scanner: &mut Scanner<'_>) -> Result<TokenKind, Diagnostic> {
    scanner.next();
    let value = match scanner.next() {
        Some('\\') => escaped(scanner)?,
        other => other,
    };
    let value = value
        .ok_or_else(|| scanner.mistake("the file ends here", "expected a character after `$`"))?;
    Ok(TokenKind::Integer(i64::from(u32::from(value))))
}

/// Reads a text up to the next `quote`.
fn quoted(scanner: &mut Scanner<'_>, quote: char) -> Result<String, Diagnostic> {
    let rules = TextRules { expression: None, is_one_line: false, escaped };
    scanner.quoted(quote, &rules)?.ok_or_else(|| {
        let label = format!("expected `{quote}` at the end of the string");
        scanner.mistake("the string has no end", label)
    })
}

/// Reads an escape sequence behind its backslash.
fn escaped(scanner: &mut Scanner<'_>) -> Result<Option<char>, Diagnostic> {
    let Some(letter) = scanner.next() else { return Ok(None) };
    Ok(Some(match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        's' => ' ',
        'b' => '\u{8}',
        'e' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'd' => '\u{7f}',
        'x' => hexadecimal(scanner)?,
        '0'..='7' => octal(scanner, letter),
        other => other,
    }))
}

/// Reads `\xHH` or `\x{H...}` behind its `x`.
fn hexadecimal(scanner: &mut Scanner<'_>) -> Result<char, Diagnostic> {
    let (begin, rest) = (scanner.at - 2, scanner.rest());
    let (digits, length) = match rest.strip_prefix('{') {
        Some(braced) => {
            let end = braced.find('}').unwrap_or(0);
            (&braced[..end], end + 2)
        }
        None => (rest.get(..2).unwrap_or_default(), 2),
    };
    let value = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    let value = value.ok_or_else(|| {
        let label = "expected two hexadecimal digits, or some in braces";
        Diagnostic::new(begin..scanner.at, "this escape cannot be read", label)
    })?;
    scanner.at += length;
    Ok(value)
}

/// Reads up to three octal digits, the first of which is `first`.
fn octal(scanner: &mut Scanner<'_>, first: char) -> char {
    let mut value = first.to_digit(8).unwrap_or(0);
    for _ in 0..2 {
        let Some(digit) = scanner.rest().chars().next().and_then(|next| next.to_digit(8)) else {
            break;
        };
        scanner.at += 1;
        value = value * 8 + digit;
    }
    char::from_u32(value).unwrap_or('\0')
}
