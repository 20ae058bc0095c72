//! Names that stand in subjects: of groups, agents and nodes.

use std::fmt;

/// A name that cannot be a part of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAName(String);

/// Checks the name of a group, or of a process in it.
///
/// # Errors
/// It has other characters than letters, digits, `-` and `_`, none, or more than 64.
pub fn check_name(name: &str) -> Result<(), NotAName> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_good) {
        Ok(())
    } else {
        Err(NotAName(name.to_owned()))
    }
}

impl fmt::Display for NotAName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        write!(f, "`{name}` is no name: it needs 1 to {NAME_BYTES_MAX} letters, digits, `-` or `_`")
    }
}

impl std::error::Error for NotAName {}

/// The longest name.
const NAME_BYTES_MAX: usize = 64;
