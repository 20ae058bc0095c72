//! The tokens of Elixir's expressions.

use throng_load::scenario::Diagnostic;

use crate::lexer::{Language, Piece, Scanner, TextRules, TokenKind, literal};

pub(super) static ELIXIR: Language = Language {
    comment: "#",
    long_comment: None,
    has_lines: true,
    signs: SIGNS,
    read,
    unknown: |_| (UNREADABLE.to_owned(), "expected a call, a value or a name"),
    unexpected: UNREADABLE,
    ends_early: UNREADABLE,
    depth_max: (48, "too many expressions in expressions"),
};

fn read(scanner: &mut Scanner<'_>, first: char) -> Result<Option<TokenKind>, Diagnostic> {
    let rest = scanner.rest();
    let name = rest.strip_prefix(':').unwrap_or_default();
    let kind = match first {
        '\n' | ';' => {
            scanner.next();
            TokenKind::Line
        }
        '"' if scanner.takes(HEREDOC) => heredoc(scanner)?,
        '"' => TokenKind::Template(text(scanner)?),
        '0'..='9' => number(scanner)?,
        ':' if name.starts_with('"') => {
            scanner.next();
            TokenKind::Atom(literal(&text(scanner)?))
        }
        ':' if name.starts_with(begins_word) => {
            scanner.next();
            TokenKind::Atom(word(scanner))
        }
        _ if begins_word(first) => {
            let word = word(scanner);
            let is_key = [": ", ":\n", ":\t"].iter().any(|end| scanner.rest().starts_with(end));
            if is_key && scanner.takes(":") { TokenKind::Key(word) } else { TokenKind::Word(word) }
        }
        _ => return Ok(None),
    };
    Ok(Some(kind))
}

fn begins_word(first: char) -> bool {
    first.is_alphabetic() || first == '_'
}

/// Reads `name`, `name?` or `name!`.
fn word(scanner: &mut Scanner<'_>) -> String {
    let word = scanner.take_while(|c| c.is_alphanumeric() || c == '_').to_owned();
    let mut letters = scanner.rest().chars();
    match (letters.next(), letters.next()) {
        (Some(sign @ ('?' | '!')), behind) if behind != Some('=') => {
            scanner.next();
            format!("{word}{sign}")
        }
        _ => word,
    }
}

/// Reads `1_000`, `0x1f` or `0.1`.
fn number(scanner: &mut Scanner<'_>) -> Result<TokenKind, Diagnostic> {
    let is_digit = |c: char| c.is_ascii_digit() || c == '_';
    let value = if scanner.takes("0x") {
        let digits = scanner.take_while(|c| c.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().map(f64::from)
    } else {
        scanner.take_while(is_digit);
        if scanner.takes_fraction(is_digit) && scanner.takes("e") {
            scanner.takes("-");
            scanner.take_while(is_digit);
        }
        scanner.text().replace('_', "").parse().ok()
    };
    let value = value.filter(|value: &f64| value.abs() <= NUMBER_MAX);
    value.map(TokenKind::Number).ok_or_else(|| {
        scanner.mistake("this number cannot be read", "expected a number of at most 10^15")
    })
}

/// Reads a text in quotes.
fn text(scanner: &mut Scanner<'_>) -> Result<Vec<Piece>, Diagnostic> {
    scanner.template('"', &TEXT)?.ok_or_else(|| unended(scanner))
}

const TEXT: TextRules = TextRules {
    expression: Some("#{"),
    is_one_line: false,
    escaped: |scanner| {
        Ok(scanner.next().map(|escaped| match escaped {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            's' => ' ',
            '0' => '\0',
            other => other,
        }))
    },
};

/// Reads a text between `"""`, without the blanks that all its lines begin with.
fn heredoc(scanner: &mut Scanner<'_>) -> Result<TokenKind, Diagnostic> {
    let Some((body, _)) = scanner.rest().split_once(HEREDOC) else { return Err(unended(scanner)) };
    scanner.at += body.len() + HEREDOC.len();
    let body = body.strip_prefix('\n').unwrap_or(body);
    let end = body.rfind('\n').map_or(body.len(), |at| at + 1);
    let indent = body.len() - end;
    let strip = |line: &str| {
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        format!("{}\n", &line[indent.min(blanks)..])
    };
    Ok(TokenKind::Template(vec![Piece::Text(body[..end].lines().map(strip).collect())]))
}

fn unended(scanner: &Scanner<'_>) -> Diagnostic {
    scanner.mistake("the text has no end", "expected `\"`")
}

const HEREDOC: &str = "\"\"\"";

pub(super) const UNREADABLE: &str = "the script cannot be read here";

const SIGNS: &[&str] = &[
    "===", "!==", "<>", "|>", "->", "<-", "=>", "==", "!=", "<=", ">=", "&&", "||", "..", "++",
    "<<", ">>", "%{", "{", "}", "[", "]", "(", ")", "<", ">", "=", ",", "+", "-", "*", "/", ".",
    "|", "!", "@", "&", "^", ":",
];

/// Largest number of a script.
const NUMBER_MAX: f64 = 1e15;
