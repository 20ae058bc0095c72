//! Reading a tree of nodes key by key, and remembering every mistake on the way.
//!
//! A function that reads something returns `None` after it has noted what was wrong; the caller
//! goes on with the next thing, so that one run shows all mistakes.

use std::ops::Range;

use throng_base::units::{Problem, UnitError, nearest};

use super::node::{Kind, Node};
use super::template::Template;
use super::{Diagnostic, Protocol};

/// The source and what has been found wrong with it.
pub(super) struct Reader<'s> {
    source: &'s str,
    pub(super) mistakes: Vec<Diagnostic>,
    /// Decides which steps there are, and what they take.
    pub(super) protocol: Protocol,
}

/// The entries of a mapping, all keys known.
pub(super) struct Fields<'n> {
    /// The whole mapping.
    pub(super) span: Range<usize>,
    entries: Vec<(&'n str, &'n Node, &'n Node)>,
    /// The keys that unknown ones were probably meant to be: they are not missing as well.
    suggested: Vec<String>,
}

impl<'n> Fields<'n> {
    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(name, ..)| *name == key).map(|(.., value)| *value)
    }

    /// Where `key` itself stands.
    pub(super) fn key_span(&self, key: &str) -> Range<usize> {
        let entry = self.entries.iter().find(|(name, ..)| *name == key);
        entry.map_or(self.span.clone(), |(_, key, _)| key.span.clone())
    }
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, mistakes: Vec::new(), protocol: Protocol::Tcp }
    }

    /// Notes a mistake.
    pub(super) fn error(
        &mut self,
        span: Range<usize>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> &mut Diagnostic {
        self.mistakes.push(Diagnostic::new(span, title, label));
        self.mistakes.last_mut().expect("one was just pushed")
    }

    /// The mapping `node`, which may have the keys `known` and no others. An unknown key is a
    /// mistake but does not stop the others from being read.
    pub(super) fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        known: &[&str],
    ) -> Option<Fields<'n>> {
        let Kind::Map(pairs) = &node.kind else {
            self.wrong_kind(node, what, &format!("a mapping with {}", list_of(known)));
            return None;
        };
        let (mut entries, mut meant) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            match key.scalar() {
                Some(name) if known.contains(&name) => entries.push((name, key, value)),
                Some(name) => {
                    self.unknown(key.span.clone(), &format!("key `{name}` in {what}"), name, known);
                    meant.extend(nearest(name, known.iter().copied()).map(str::to_owned));
                }
                None => {
                    self.error(
                        key.span.clone(),
                        format!("a key of {what} is a name"),
                        "this is not",
                    );
                }
            }
        }
        Some(Fields { span: node.span.clone(), entries, suggested: meant })
    }

    /// A name that is not one of `known`.
    pub(super) fn unknown(&mut self, span: Range<usize>, thing: &str, name: &str, known: &[&str]) {
        let label = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "not known here".to_owned(),
        };
        self.error(span, format!("unknown {thing}"), label).help =
            Some(format!("known here: {}", list_of(known)));
    }

    /// The value of `key`, which must be there.
    pub(super) fn require<'n>(
        &mut self,
        fields: &Fields<'n>,
        key: &str,
        what: &str,
        example: &str,
    ) -> Option<&'n Node> {
        let value = fields.get(key);
        if value.is_none() && !fields.suggested.iter().any(|meant| meant == key) {
            let span = self.first_line(&fields.span);
            self.error(
                span,
                format!("{what} has no `{key}`"),
                format!("`{key}` is missing, for example `{example}`"),
            );
        }
        value
    }

    /// Something else stands where `expected` should be.
    pub(super) fn wrong_kind(&mut self, node: &Node, what: &str, expected: &str) {
        let span = self.first_line(&node.span);
        self.error(span, format!("{what} is {expected}"), format!("found {}", node.describe()));
    }

    /// The text of a scalar.
    pub(super) fn text<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        expected: &str,
    ) -> Option<&'n str> {
        let text = node.scalar();
        if text.is_none() {
            self.wrong_kind(node, what, expected);
        }
        text
    }

    /// `text`, which is all of the scalar `node` or a part of it, with variables in it.
    pub(super) fn template(&mut self, node: &Node, text: &str) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => Some(template),
            Err(error) => {
                let at = node.scalar().and_then(|whole| whole.find(text)).unwrap_or(0);
                let span = self.inner_span(node, at + error.span.start..at + error.span.end);
                self.error(span, error.title, error.label);
                None
            }
        }
    }

    /// A scalar that is one of `known`.
    pub(super) fn one_of<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        known: &[(&str, T)],
    ) -> Option<T> {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let text = self.text(node, what, &format!("one of {}", list_of(&names)))?;
        let found = known.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            self.unknown(node.span.clone(), &format!("{what} `{text}`"), text, &names);
        }
        found.map(|(_, value)| *value)
    }

    /// A scalar in one of the units that people write.
    pub(super) fn quantity<T>(
        &mut self,
        node: &Node,
        what: &str,
        parse: fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let expected = parse("").err().map_or("", |error| error.expected);
        let text = self.text(node, what, expected)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let span = node.inner_span(self.source, error.span.clone());
                let label = match &error.problem {
                    Problem::UnitUnknown { meant: Some(meant), .. } => {
                        format!("did you mean `{meant}`?")
                    }
                    problem => problem.to_string(),
                };
                self.error(span, format!("{what} is {expected}"), label);
                None
            }
        }
    }

    /// The part `inner` of a scalar's text, in the source.
    pub(super) fn inner_span(&self, node: &Node, inner: Range<usize>) -> Range<usize> {
        node.inner_span(self.source, inner)
    }

    /// A long mapping is pointed at by its first line.
    pub(super) fn first_line(&self, span: &Range<usize>) -> Range<usize> {
        let text = &self.source[span.clone()];
        span.start..span.start + text.lines().next().map_or(0, str::len)
    }
}

/// `a`, `b` and `c`.
fn list_of(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
