//! Comments of a YAML source.

use crate::source::Source;

impl Source<'_> {
    /// Returns the comments in the lines right above the one of `offset`, if nothing but dashes
    /// and blanks stands before `offset` in its line.
    pub(crate) fn comments_above(&self, offset: usize) -> Vec<String> {
        let before = self.text.get(..offset).unwrap_or_default();
        let (above, line) = before.rsplit_once('\n').unwrap_or(("", before));
        if !line.chars().all(|character| matches!(character, ' ' | '-')) {
            return Vec::new();
        }
        let is_comment = |line: &&str| line.trim_start().starts_with('#');
        let mut comments: Vec<_> = above.lines().rev().take_while(is_comment).map(text).collect();
        comments.reverse();
        comments
    }

    /// Returns the comments before the first line that is none.
    pub(crate) fn comments_at_top(&self) -> Vec<String> {
        let is_top = |line: &&str| line.starts_with('#') || line.trim().is_empty();
        let lines = self.text.lines().skip_while(|line| line.trim() == "---").take_while(is_top);
        lines.filter(|line| line.starts_with('#')).map(text).collect()
    }
}

fn text(line: &str) -> String {
    line.trim().trim_start_matches('#').trim().to_owned()
}
