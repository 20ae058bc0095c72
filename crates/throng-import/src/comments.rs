//! Comments of a source.

use std::collections::VecDeque;

use crate::source::Source;

/// A comment, without its sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// Where it begins.
    pub(crate) offset: usize,
    pub(crate) text: String,
}

/// The comments that have no place yet.
#[derive(Debug)]
pub(crate) struct Comments(VecDeque<Comment>);

impl Comments {
    pub(crate) fn new(all: Vec<Comment>) -> Self {
        Self(all.into())
    }

    /// Takes the comments above `offset`, and those in its line.
    pub(crate) fn take_to(&mut self, source: &Source<'_>, offset: usize) -> Vec<String> {
        let end = source.text.get(offset..).and_then(|rest| rest.find('\n'));
        self.take(end.map_or(source.text.len(), |length| offset + length))
    }

    /// Takes the comments above the line of `offset`.
    pub(crate) fn take_above(&mut self, source: &Source<'_>, offset: usize) -> Vec<String> {
        let before = source.text.get(..offset).unwrap_or_default();
        self.take(before.rfind('\n').map_or(0, |at| at + 1))
    }

    fn take(&mut self, end: usize) -> Vec<String> {
        let count = self.0.iter().take_while(|comment| comment.offset < end).count();
        let texts = self.0.drain(..count).map(|comment| comment.text);
        texts.filter(|text| !text.is_empty()).collect()
    }
}

impl Source<'_> {
    /// Returns the comments in the lines right above the one of `offset`, if nothing but dashes
    /// and blanks stands before `offset` in its line. Each begins with `sign`.
    pub(crate) fn comments_above(&self, offset: usize, sign: &str) -> Vec<String> {
        let before = self.text.get(..offset).unwrap_or_default();
        let (above, line) = before.rsplit_once('\n').unwrap_or(("", before));
        if !line.chars().all(|character| character.is_whitespace() || character == '-') {
            return Vec::new();
        }
        let lines = above.lines().rev().take_while(|line| line.trim_start().starts_with(sign));
        let mut comments: Vec<_> = lines.map(|line| text(line, sign)).collect();
        comments.reverse();
        comments
    }

    /// Returns the comments before the first line that is none. Each begins with `sign`.
    pub(crate) fn comments_at_top(&self, sign: &str) -> Vec<String> {
        let is_top = |line: &&str| line.starts_with(sign) || line.trim().is_empty();
        let lines = self.text.lines().skip_while(|line| line.trim() == "---").take_while(is_top);
        lines.filter(|line| line.starts_with(sign)).map(|line| text(line, sign)).collect()
    }
}

/// Returns the text of a comment, which may begin with the sign several times.
fn text(line: &str, sign: &str) -> String {
    line.trim().trim_start_matches(&sign[..1]).trim().to_owned()
}
