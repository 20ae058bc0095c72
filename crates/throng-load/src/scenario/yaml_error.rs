//! What is wrong with a file that is not YAML, and the way out. The parser names the place where it
//! could not go on; the mistake is often before it.

use std::ops::Range;

use serde_saphyr::{Error, Location, MessageFormatter};

use super::Diagnostic;

/// Describes an error of the parser.
pub(super) fn describe(source: &str, error: &Error) -> Diagnostic {
    let error = error.without_snippet();
    let span = error.location().map_or(0..0, |location| match location.span().byte_offset() {
        Some(_) => bytes_of(source, &location),
        None => place_of(source, &location),
    });
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("this key");
            Diagnostic::new(span, format!("`{key}` is written twice"), "the second one")
                .help("each key may appear once in a mapping")
        }
        Error::MultipleDocuments { .. } => {
            Diagnostic::new(span, "a second document begins", "one file holds one scenario")
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            let title = "an alias stands for a list or mapping that it is in";
            Diagnostic::new(span, title, "this would have no end")
                .help("write the steps out here, or use `loop` or `repeat`")
        }
        other => {
            let message = serde_saphyr::UserMessageFormatter.format_message(other).into_owned();
            let known = too_large(&span, &message)
                .or_else(|| tab(source, &span))
                .or_else(|| open_quote(source, &span, &message))
                .or_else(|| variable_without_quotes(source, &span, &message))
                .or_else(|| key_after_key(source, &span, &message))
                .or_else(|| indentation(source, &span, &message))
                .or_else(|| colon_in_text(source, &span, &message))
                .or_else(|| open_bracket(source, &span, &message));
            known.unwrap_or_else(|| Diagnostic::new(span, "this is not YAML", message))
        }
    }
}

/// Describes a file that is too large. A few aliases of aliases are enough.
fn too_large(span: &Range<usize>, message: &str) -> Option<Diagnostic> {
    let is_too_large = message.contains("too large or too complex");
    let title = "the scenario is too large, with its aliases filled in";
    let help = "a scenario has at most a million values, and 64 MiB of texts; data belongs in a \
                file of its own: see `data`";
    is_too_large.then(|| Diagnostic::new(span.clone(), title, "too much by here").help(help))
}

/// Describes a tab in the indentation of the line at `span`.
fn tab(source: &str, span: &Range<usize>) -> Option<Diagnostic> {
    let line = line_at(source, span.start);
    let indentation = source[line.clone()].len() - source[line.clone()].trim_start().len();
    let indentation = line.start..line.start + indentation;
    let at = indentation.start + source[indentation].find('\t')?;
    let label = "put blanks in its place, two for each level";
    Some(Diagnostic::new(at..at + 1, "a tab in the indentation", label))
}

/// Describes a quote that is not closed, and shows where it is opened.
fn open_quote(source: &str, span: &Range<usize>, message: &str) -> Option<Diagnostic> {
    if !message.contains("quoted scalar") {
        return None;
    }
    let at = OpenSigns::before(source, source.len().min(span.end)).quote?;
    let quote = &source[at..at + 1];
    let label = format!("{quote} is missing at the end of the text");
    Some(Diagnostic::new(at..at + 1, "a quote is not closed", label))
}

/// Describes a variable in braces that stands in no quotes: its `{` begins a mapping.
fn variable_without_quotes(source: &str, span: &Range<usize>, message: &str) -> Option<Diagnostic> {
    if !is_of_flow(message) {
        return None;
    }
    let line = line_at(source, span.start);
    let places = source[line.clone()].match_indices("${").map(|(at, _)| line.start + at);
    let at = places.take_while(|at| *at <= span.start).find(|at| {
        let signs = OpenSigns::before(source, *at);
        signs.quote.is_none() && signs.bracket.is_some()
    })?;
    let end = source[at..line.end].find('}').map_or(line.end, |length| at + length + 1);
    // What stands before the variable, back to the sign that begins the value.
    let value = &source[line.start..at];
    let begins = [": ", ", ", "{", "["];
    let begin = begins.iter().filter_map(|sign| Some(value.rfind(sign)? + sign.len())).max();
    let begin = line.start + begin.unwrap_or(0);
    let title = "a variable without quotes between braces or brackets";
    let text = source[begin..end_of_value(source, at..line.end)].trim_end();
    let help = match text.contains(['"', '\\']) {
        true => "put the whole text in quotes".to_owned(),
        false => format!("put the whole text in quotes: \"{text}\""),
    };
    Some(Diagnostic::new(at..end, title, "its `{` begins a mapping").help(help))
}

/// Describes a key whose value is a key itself, between brackets or braces: `{do: get: /d}`.
fn key_after_key(source: &str, span: &Range<usize>, message: &str) -> Option<Diagnostic> {
    if !is_of_flow(message) {
        return None;
    }
    let line = line_at(source, span.start);
    let (open, _) = OpenSigns::before(source, span.start).bracket?;
    let before = &source[open.max(line.start)..span.start];
    let begin = span.start - before.trim_start_matches(['{', '[', ' ']).len();
    let begin = source[begin..span.start].rfind(", ").map_or(begin, |at| begin + at + 2);
    let text = source[begin..end_of_value(source, begin..line.end)].trim_end();
    let (key, value) = text.split_once(": ")?;
    let (inner, _) = value.split_once(": ")?;
    let is_in_text = OpenSigns::before(source, begin).quote.is_some();
    if is_in_text || [key, inner].iter().any(|key| key.contains(['"', '\'', '{', '[', ' '])) {
        return None;
    }
    let at = begin + key.len() + ": ".len();
    let title = format!("`{inner}` is a key, and so is `{key}` before it");
    let help = format!(
        "put what belongs to `{key}` in brackets: `{key}: [{value}]`; a text goes in quotes"
    );
    Some(Diagnostic::new(at..at + inner.len(), title, "a second key without brackets").help(help))
}

/// Returns where a value ends that stands between brackets or braces, and goes on in `rest`: at the
/// sign that ends it outside of its variables, or with the line.
fn end_of_value(source: &str, rest: Range<usize>) -> usize {
    let mut depth = 0_usize;
    let is_end = |(_, sign): &(usize, char)| {
        match sign {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ']' | ',' if depth == 0 => return true,
            _ => {}
        }
        false
    };
    let end = source[rest.clone()].char_indices().find(is_end);
    end.map_or(rest.end, |(at, _)| rest.start + at)
}

/// Describes a line that is indented otherwise than those around it.
fn indentation(source: &str, span: &Range<usize>, message: &str) -> Option<Diagnostic> {
    let messages = ["mapping values are not allowed", "did not find expected key"];
    if !messages.iter().any(|of_indentation| message.contains(of_indentation)) {
        return None;
    }
    let line = line_at(source, span.start);
    let before = source[..line.start].lines().rev().find(|line| !is_empty(line))?;
    let (of_line, of_before) = (indent_of(&source[line.clone()]), indent_of(before));
    let is_item = |line: &str| line.trim_start().starts_with("- ");
    if !is_item(&source[line.clone()])
        || !is_item(before)
        || of_line == of_before
        || before.trim_end().ends_with(':')
    {
        return None;
    }
    let begin = line.start + of_line;
    let title = "the indentation differs from that of the item above";
    let label =
        format!("{} before this `-`, {} before the other", blanks(of_line), blanks(of_before));
    Some(
        Diagnostic::new(begin..begin + 1, title, label)
            .help("items of one list begin in one column"),
    )
}

/// Reports whether a line has nothing but blanks and a comment.
fn is_empty(line: &str) -> bool {
    line.trim_start().is_empty() || line.trim_start().starts_with('#')
}

/// Returns how many blanks a line begins with.
fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns a number of blanks in words.
fn blanks(count: usize) -> String {
    match count {
        0 => "no blank".to_owned(),
        1 => "1 blank".to_owned(),
        count => format!("{count} blanks"),
    }
}

/// Describes a colon in a text without quotes.
fn colon_in_text(source: &str, span: &Range<usize>, message: &str) -> Option<Diagnostic> {
    if !message.contains("mapping values are not allowed") {
        return None;
    }
    let line = line_at(source, span.start);
    if let Some(mistake) = blank_after_key(source, &line, span.start) {
        return Some(mistake);
    }
    let (before, text) = source[line.clone()].split_once(": ")?;
    let begin = line.start + before.len() + ": ".len();
    let text = text.trim_end();
    if !(begin..begin + text.len()).contains(&span.start) {
        return None;
    }
    let label = "a colon and a blank in a text begin a mapping";
    let help =
        format!("put the text in quotes: {}: {text:?}", before.trim_start_matches([' ', '-']));
    Some(Diagnostic::new(span.clone(), "a colon in a text without quotes", label).help(help))
}

/// Describes a key without a blank between its colon and the bracket that begins its value:
/// `ramp:{to: 1}`. The parser could not go on at `end`.
fn blank_after_key(source: &str, line: &Range<usize>, end: usize) -> Option<Diagnostic> {
    let text = &source[line.start..end.max(line.start)];
    let at = text.find(":{").or_else(|| text.find(":["))? + 1;
    let key = text[..at].trim_start_matches([' ', '-']);
    if key.contains([' ', '"', '\'']) {
        return None;
    }
    let place = line.start + at;
    let help = format!("write `{key} {}`", &text[at..at + 1]);
    let title = format!("a blank is missing after `{key}`");
    Some(Diagnostic::new(place..place + 1, title, "part of the name without it").help(help))
}

/// Describes a bracket or a brace that is not closed, and shows where it is opened.
fn open_bracket(source: &str, span: &Range<usize>, message: &str) -> Option<Diagnostic> {
    if !is_of_flow(message) {
        return None;
    }
    let (at, closing) = OpenSigns::before(source, span.start).bracket?;
    let title = format!("`{}` is not closed", &source[at..at + 1]);
    Some(Diagnostic::new(at..at + 1, title, format!("a `{closing}` is missing")))
}

/// Reports whether the parser could not go on between brackets or braces.
fn is_of_flow(message: &str) -> bool {
    message.contains("flow") || message.contains("',' or")
}

/// The signs that are open at some place of a file: a quote, and the innermost bracket.
#[derive(Debug, Default)]
struct OpenSigns {
    /// Where the quote is opened.
    quote: Option<usize>,
    /// Where the bracket is opened, and what closes it.
    bracket: Option<(usize, char)>,
}

impl OpenSigns {
    /// Reads the file up to `end`.
    fn before(source: &str, end: usize) -> Self {
        let mut brackets: Vec<(usize, char)> = Vec::new();
        let mut quote: Option<(usize, char)> = None;
        let mut before = '\n';
        let mut signs = source.char_indices().take_while(|(at, _)| *at < end).peekable();
        while let Some((at, sign)) = signs.next() {
            match (quote, sign) {
                (Some((_, '"')), '\\') => drop(signs.next()),
                (Some((_, open)), _) if open == sign => quote = None,
                (Some(_), _) => {}
                // A quote in a word is an apostrophe, a # in it is no comment.
                (None, '"' | '\'') if is_begin(before) => quote = Some((at, sign)),
                (None, '#') if before.is_whitespace() => {
                    while signs.next_if(|(_, sign)| *sign != '\n').is_some() {}
                }
                (None, '{') if before != '$' => brackets.push((at, '}')),
                (None, '[') => brackets.push((at, ']')),
                (None, '}' | ']') if brackets.last().is_some_and(|(_, close)| *close == sign) => {
                    brackets.pop();
                }
                _ => {}
            }
            before = sign;
        }
        Self { quote: quote.map(|(at, _)| at), bracket: brackets.pop() }
    }
}

/// Reports whether a value may begin after this sign.
fn is_begin(before: char) -> bool {
    before.is_whitespace() || matches!(before, '[' | '{' | ',' | ':' | '-')
}

/// Returns the line with the byte `at`, without its end.
fn line_at(source: &str, at: usize) -> Range<usize> {
    let begin = source[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = source[at..].find('\n').map_or(source.len(), |length| at + length);
    begin..end
}

/// Converts a location to bytes, never beyond the source and never inside a character.
pub(super) fn bytes_of(source: &str, location: &Location) -> Range<usize> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset().unwrap_or(0)).unwrap_or(0).min(source.len());
    let length = usize::try_from(span.byte_len().unwrap_or(0)).unwrap_or(0);
    let start = boundary_before(source, start);
    let end = boundary_after(source, start.saturating_add(length));
    let length = source[start..end].trim_end().len();
    start..start + length
}

/// Returns the last character boundary at or before `at`.
fn boundary_before(source: &str, at: usize) -> usize {
    (0..=at.min(source.len())).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0)
}

/// Returns the first character boundary at or after `at`.
fn boundary_after(source: &str, at: usize) -> usize {
    (at..source.len()).find(|&at| source.is_char_boundary(at)).unwrap_or(source.len())
}

/// Returns the span of the character at a line and column, both counted from one.
fn place_of(source: &str, location: &Location) -> Range<usize> {
    let line = usize::try_from(location.line()).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(location.column()).unwrap_or(1).saturating_sub(1);
    let begin: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let line = source[begin..].lines().next().unwrap_or("");
    let start = begin + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let end = boundary_after(source, start + 1);
    start..if source[start..end].trim().is_empty() { start } else { end }
}
