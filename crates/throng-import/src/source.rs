//! The text of a file, with what is needed to point into it.

use std::ops::Range;

/// Where a construct stands: bytes of the text.
pub(crate) type Span = Range<usize>;

/// A file of another tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// What the reader calls it, usually its path.
    pub(crate) name: &'a str,
    /// Its text.
    pub(crate) text: &'a str,
}

/// The places at which the lines of a text end.
#[derive(Debug)]
pub(crate) struct LineEnds(Vec<usize>);

impl LineEnds {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// Returns the line of the byte at `offset`, from 1.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

impl Source<'_> {
    /// Returns the part of the text in `span`.
    pub(crate) fn slice(&self, span: &Span) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// Returns the place of the whole character that has the byte at `offset`, or the last one.
    pub(crate) fn char_at(&self, offset: usize) -> Span {
        let mut start = offset.min(self.text.len().saturating_sub(1));
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let length = self.text[start..].chars().next().map_or(0, char::len_utf8);
        start..start + length
    }

    /// Returns the ending of the file's name, without the dot: `xml`.
    pub(crate) fn extension(&self) -> &str {
        std::path::Path::new(self.name).extension().and_then(|end| end.to_str()).unwrap_or_default()
    }
}
