//! Values that were read, and the reasons why others could not be read.

use std::fmt;
use std::io;

/// A value that was read, or the reason why it could not be read. It is never a zero that stands
/// for "unknown": an unreadable counter and a counter of 0 lead to opposite conclusions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// Value that was read.
    Known(T),
    /// Reason why it could not be read.
    Unknown(Unknown),
}

impl<T> Fact<T> {
    /// Returns the value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the reason, if the value is unknown.
    pub fn why(&self) -> Option<&Unknown> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }

    /// Converts the fact into a `Result`, for `?`.
    pub fn into_result(self) -> Result<T, Unknown> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Unknown(why) => Err(why),
        }
    }

    /// Applies `f` to a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(f(value)),
            Self::Unknown(why) => Fact::Unknown(why),
        }
    }
}

impl<T> From<Result<T, Unknown>> for Fact<T> {
    fn from(read: Result<T, Unknown>) -> Self {
        match read {
            Ok(value) => Self::Known(value),
            Err(why) => Self::Unknown(why),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown(why) => write!(f, "unknown ({why})"),
        }
    }
}

/// The source and the reason of an unknown value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Source of the value: a file below the root, or `sock_diag`.
    pub source: String,
    /// Reason why it could not be read.
    pub reason: Reason,
}

impl Unknown {
    /// Creates the reason why `source` could not be read.
    pub fn new(source: impl Into<String>, reason: impl Into<Reason>) -> Self {
        Self { source: source.into(), reason: reason.into() }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.reason)
    }
}

/// The reason why a source could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No such file: another kernel version, a module that is not loaded, a process that has ended.
    Missing,
    /// No permission for this user or this container.
    Refused,
    /// Switched off in this kernel (PSI with `psi=0`).
    Unsupported,
    /// Text that could not be parsed.
    Malformed(ParseFailure),
    /// Any other error.
    Failed(String),
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        /// Linux's numbers, on every architecture that throng is built for.
        const ESRCH: i32 = 3;
        const EOPNOTSUPP: i32 = 95;
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) | (_, Some(ESRCH)) => Self::Missing,
            (io::ErrorKind::PermissionDenied, _) => Self::Refused,
            (io::ErrorKind::Unsupported, _) | (_, Some(EOPNOTSUPP)) => Self::Unsupported,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<ParseFailure> for Reason {
    fn from(malformed: ParseFailure) -> Self {
        Self::Malformed(malformed)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("does not exist here"),
            Self::Refused => f.write_str("permission denied"),
            Self::Unsupported => f.write_str("switched off in this kernel"),
            Self::Malformed(what) => write!(f, "not understood: {what}"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

/// The text that a parser expected and did not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseFailure(pub &'static str);

impl fmt::Display for ParseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

impl std::error::Error for ParseFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_becomes_a_reason() {
        let check = |errno, expected: Reason| {
            assert_eq!(Reason::from(io::Error::from_raw_os_error(errno)), expected);
        };
        check(2, Reason::Missing);
        check(3, Reason::Missing);
        check(1, Reason::Refused);
        check(13, Reason::Refused);
        check(95, Reason::Unsupported);
        assert!(matches!(Reason::from(io::Error::from_raw_os_error(5)), Reason::Failed(_)));
    }

    #[test]
    fn an_unknown_fact_names_its_source_and_reason() {
        let fact: Fact<u64> = Fact::Unknown(Unknown::new("proc/pressure/cpu", Reason::Unsupported));
        assert_eq!(fact.to_string(), "unknown (proc/pressure/cpu: switched off in this kernel)");
        assert_eq!(fact.map(|value| value + 1).known(), None);
    }
}
