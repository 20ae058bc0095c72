//! Reading the XML. No external entity is fetched, and internal ones are bounded.

mod attributes;
mod entities;

use std::ops::Range;

use roxmltree::{Document, Error, ParsingOptions};
use throng_load::scenario::Diagnostic;

/// Parses the text. A document type is allowed, and its address is ignored.
pub(super) fn parse(text: &str) -> Result<Document<'_>, Diagnostic> {
    entities::check(text)?;
    attributes::check(text)?;
    let options = ParsingOptions { allow_dtd: true, nodes_limit: NODES_MAX, entity_resolver: None };
    Document::parse_with_options(text, options).map_err(|error| mistake(text, &error))
}

fn mistake(text: &str, error: &Error) -> Diagnostic {
    let (title, label) = match error {
        Error::UnknownEntityReference(name, _) if is_external(text, name) => (
            format!("the entity `{name}` is in another file"),
            "expected its text here: an import opens no other file".to_owned(),
        ),
        Error::UnknownEntityReference(name, _) => {
            (format!("there is no entity `{name}`"), "expected `&amp;` for a plain `&`".to_owned())
        }
        Error::EntityReferenceLoop(_) => (
            "entities refer to one another too often".to_owned(),
            "expected at most 10 levels, and 255 references in one".to_owned(),
        ),
        Error::NodesLimitReached => (
            "the file is too large".to_owned(),
            format!("expected at most {NODES_MAX} elements and texts"),
        ),
        Error::UnexpectedCloseTag(expected, found, _) => {
            (format!("`</{found}>` closes nothing"), format!("expected `</{expected}>`"))
        }
        Error::UnclosedRootNode | Error::UnexpectedEndOfStream => (
            "the file ends in the middle".to_owned(),
            "expected the end tags of the open elements".to_owned(),
        ),
        Error::DuplicatedAttribute(name, _) => {
            (format!("`{name}` is written twice"), "expected it once".to_owned())
        }
        Error::InvalidComment(_) => {
            ("this comment cannot be read".to_owned(), "expected no `--` in it".to_owned())
        }
        error => {
            let message = error.to_string();
            let reason = message.split(" at ").next().unwrap_or(&message).to_owned();
            ("this is not XML".to_owned(), reason)
        }
    };
    Diagnostic::new(span(text, error), title, label)
}

/// Reports whether the document type says that the text of this entity is in another file.
fn is_external(text: &str, name: &str) -> bool {
    text.split("<!ENTITY").skip(1).any(|declared| {
        let mut words = declared.split_whitespace();
        words.next() == Some(name) && matches!(words.next(), Some("SYSTEM" | "PUBLIC"))
    })
}

/// Returns the place of an error. The parser tells its line and column; of some errors, neither.
fn span(text: &str, error: &Error) -> Range<usize> {
    let has_place = !matches!(
        error,
        Error::NoRootNode
            | Error::UnclosedRootNode
            | Error::UnexpectedEndOfStream
            | Error::NodesLimitReached
            | Error::AttributesLimitReached
            | Error::NamespacesLimitReached
            | Error::DtdDetected
    );
    let place = error.pos();
    let line = text.split_inclusive('\n').nth(place.row.saturating_sub(1) as usize);
    let Some(line) = line.filter(|_| has_place) else {
        let end = text.trim_end().len();
        return end..end;
    };
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    let column = line.char_indices().nth(place.col.saturating_sub(1) as usize);
    let at = start + column.map_or(line.trim_end().len(), |(at, _)| at);
    let length = text[at..].chars().next().filter(|c| !c.is_whitespace()).map_or(0, char::len_utf8);
    at..at + length
}

/// The most elements, comments and texts of one file.
const NODES_MAX: u32 = 1_000_000;
