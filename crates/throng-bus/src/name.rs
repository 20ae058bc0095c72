//! Names that stand in subjects: of groups, agents, runs and nodes.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name that can be a part of a subject: 1 to 64 letters, digits, `-` and `_`.
///
/// It has no character that a terminal, a shell or a bus understands as anything else. A message
/// with another text in its place is refused when it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// It has other characters than letters, digits, `-` and `_`, none, or more than 64.
    pub fn new(name: impl Into<String>) -> Result<Self, NotAName> {
        let name = name.into();
        check_name(&name).map(|()| Self(name))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

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
        let shown: String = self.0.chars().take(NAME_BYTES_MAX).collect();
        let shown = shown.escape_debug();
        write!(
            f,
            "`{shown}` is no name: it needs 1 to {NAME_BYTES_MAX} letters, digits, `-` or `_`"
        )
    }
}

impl std::error::Error for NotAName {}

impl Default for Name {
    /// Returns the name of a process that has told none.
    fn default() -> Self {
        Self("unknown".to_owned())
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(name: &str) -> Result<Self, NotAName> {
        Self::new(name)
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(name: String) -> Result<Self, NotAName> {
        Self::new(name)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// The longest name.
pub const NAME_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_is_read_as_one() {
        let read = |text: &str| serde_json::from_value::<Name>(serde_json::json!(text));
        for name in ["a", "web-1", "EU_2", &"x".repeat(NAME_BYTES_MAX)] {
            assert_eq!(read(name).unwrap(), *name);
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for wrong in ["", "a.b", "*", ">", "a b", "x\x1b]0;t\x07", "a\u{202e}b", "ü", &long] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("1 to 64 letters"), "{error}");
            assert!(!error.contains(['\x1b', '\u{202e}']), "{error}");
        }
    }
}
