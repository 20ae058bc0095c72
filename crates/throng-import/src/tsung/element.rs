//! Elements of the XML, their attributes, and the places of both.

use std::ops::Range;

use roxmltree::Node;

use crate::expected::near_or;
use crate::translator::Translator;

/// An element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'d>(Node<'d, 'd>);

/// An attribute that is written.
#[derive(Clone, Debug)]
pub(super) struct Attribute<'d> {
    pub(super) value: &'d str,
    /// Where the value stands.
    pub(super) span: Range<usize>,
}

/// A part of an element's content.
#[derive(Clone, Copy, Debug)]
pub(super) enum Child<'d> {
    Element(Element<'d>),
    Comment(&'d str),
}

impl<'d> Element<'d> {
    pub(super) fn new(node: Node<'d, 'd>) -> Self {
        Self(node)
    }

    pub(super) fn name(self) -> &'d str {
        self.0.tag_name().name()
    }

    /// Returns the place of its name in the start tag.
    pub(super) fn span(self) -> Range<usize> {
        let start = self.0.range().start + 1;
        start..start + self.name().len()
    }

    /// Returns the place of the whole element.
    pub(super) fn range(self) -> Range<usize> {
        self.0.range()
    }

    pub(super) fn get(self, name: &str) -> Option<Attribute<'d>> {
        let found = self.0.attribute_node(name)?;
        Some(Attribute { value: found.value(), span: found.range_value() })
    }

    /// Returns the value of an attribute, without the spaces around it.
    pub(super) fn value(self, name: &str) -> Option<&'d str> {
        self.0.attribute(name).map(str::trim)
    }

    /// Iterates over the names of the attributes, with their places.
    pub(super) fn attributes(self) -> impl Iterator<Item = (&'d str, Range<usize>)> {
        self.0.attributes().map(|one| (one.name(), one.range_qname()))
    }

    /// Iterates over the values of the attributes.
    pub(super) fn values(self) -> impl Iterator<Item = &'d str> {
        self.0.attributes().map(|one| one.value())
    }

    /// Iterates over the texts between the elements in it.
    pub(super) fn texts(self) -> impl Iterator<Item = &'d str> {
        self.0.children().filter(Node::is_text).filter_map(|node| node.text())
    }

    /// Iterates over the elements and comments in it.
    pub(super) fn children(self) -> impl Iterator<Item = Child<'d>> {
        self.0.children().filter_map(|node| {
            if node.is_element() {
                Some(Child::Element(Self(node)))
            } else if node.is_comment() {
                node.text().map(Child::Comment)
            } else {
                None
            }
        })
    }

    /// Iterates over the elements in it.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        self.0.children().filter(Node::is_element).map(Self)
    }

    /// Returns the first element of this name in it.
    pub(super) fn child(self, name: &str) -> Option<Self> {
        self.elements().find(|child| child.name() == name)
    }

    /// Reports whether it contains an element of this name, however deep.
    pub(super) fn contains(self, name: &str) -> bool {
        self.0.descendants().skip(1).any(|node| node.is_element() && node.has_tag_name(name))
    }

    /// Returns the first element in it that has more than this many elements around it.
    pub(super) fn deeper_than(self, depth: usize) -> Option<Self> {
        let is_deep =
            |node: &Node<'_, '_>| node.is_element() && node.ancestors().nth(depth).is_some();
        self.0.descendants().find(is_deep).map(Self)
    }

    /// Iterates over all elements of this name in it, however deep.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = Self> {
        self.0.descendants().skip(1).filter(move |node| node.has_tag_name(name)).map(Self)
    }

    /// Returns the text before its first element, without the spaces around it: so does tsung,
    /// which leaves line breaks.
    pub(super) fn text(self) -> String {
        let is_text = |node: &Node<'_, '_>| node.is_text();
        let parts = self.0.children().take_while(is_text).filter_map(|node| node.text());
        parts.collect::<String>().trim_matches(' ').to_owned()
    }

    /// Returns the element with its attribute, as a report calls it: `client ip`.
    pub(super) fn with(self, attribute: &str) -> String {
        format!("{} {attribute}", self.name())
    }
}

impl Translator<'_> {
    /// Returns an attribute that must be there.
    pub(super) fn require<'d>(
        &mut self,
        element: Element<'d>,
        name: &str,
        example: &str,
    ) -> Option<Attribute<'d>> {
        let found = element.get(name);
        if found.is_none() {
            let title = format!("`{}` has no `{name}`", element.name());
            self.mistake(&element.span(), title, format!("expected `{name}=\"{example}\"`"));
        }
        found
    }

    /// Reads a number between these bounds. `None` if there is none, or if it is a mistake, which
    /// is reported.
    pub(super) fn number(
        &mut self,
        element: Element<'_>,
        name: &str,
        bounds: std::ops::RangeInclusive<f64>,
    ) -> Option<f64> {
        let found = element.get(name)?;
        let number = found.value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        if let Some(number) = number.filter(|number| bounds.contains(number)) {
            return Some(number);
        }
        let (title, label) = match number {
            None => (format!("`{name}` is not a number"), "expected a number".to_owned()),
            Some(_) => (
                format!("`{name}` is out of range"),
                format!("expected a number from {} to {}", bounds.start(), bounds.end()),
            ),
        };
        self.mistake(&found.span, title, label);
        None
    }

    /// Reads a whole number between these bounds.
    pub(super) fn integer(
        &mut self,
        element: Element<'_>,
        name: &str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let found = element.get(name)?;
        let number = found.value.trim().parse::<u64>().ok();
        if let Some(number) = number.filter(|number| bounds.contains(number)) {
            return Some(number);
        }
        let title = format!("`{name}` is not such a number");
        let label = format!("expected a whole number from {} to {}", bounds.start(), bounds.end());
        self.mistake(&found.span, title, label);
        None
    }

    /// Reads one of several words. `None` if there is none, or if it is another one, which is
    /// reported.
    pub(super) fn word<'k>(
        &mut self,
        element: Element<'_>,
        name: &str,
        known: &[&'k str],
    ) -> Option<&'k str> {
        let found = element.get(name)?;
        let word = found.value.trim();
        if let Some(known) = known.iter().find(|known| **known == word) {
            return Some(known);
        }
        let label =
            near_or(word, known.iter().copied(), format!("expected one of {}", known.join(", ")));
        self.mistake(&found.span, format!("`{name}` cannot be `{word}`"), label);
        None
    }

    /// Reads `true` or `false`.
    pub(super) fn flag(&mut self, element: Element<'_>, name: &str) -> Option<bool> {
        self.word(element, name, &["true", "false"]).map(|word| word == "true")
    }
}
