//! Comments of the XML, above what they are about.

use crate::yaml::Yaml;

/// Adds the comments of the source above a step or phase.
pub(super) fn with_comments(value: Yaml, comments: &[String]) -> Yaml {
    comments.iter().fold(value, |value, text| value.comment(text.trim()))
}

/// Returns the lines of a comment, without empty ones around them.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.trim().lines().map(|line| line.trim().to_owned()).collect()
}
