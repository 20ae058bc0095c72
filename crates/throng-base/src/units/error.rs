//! What can be wrong with a quantity, and where in its text.

use std::fmt;
use std::ops::Range;

/// Why a text is not the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// The bytes of the text that are at fault.
    pub span: Range<usize>,
    /// What would have been right, with examples: `a duration such as 250ms, 15m or 1h30m`.
    pub expected: &'static str,
    /// What is wrong with the bytes at `span`.
    pub problem: Problem,
}

/// The kinds of mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nothing is there.
    Empty,
    /// Digits should begin here.
    NotANumber,
    /// The number stands without the unit that it needs.
    UnitMissing,
    /// The unit has no meaning here; sometimes it is clear which one was meant.
    UnitUnknown {
        /// As it was written.
        unit: String,
        /// The unit that was probably meant.
        meant: Option<&'static str>,
    },
    /// The parts of a duration stand in the wrong order, or one unit is there twice.
    Order,
    /// A fraction where only whole numbers make sense.
    NotWhole,
    /// More than the quantity can hold.
    TooLarge,
    /// The quantity was complete before this.
    Surplus,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing is written here"),
            Self::NotANumber => f.write_str("a number should begin here"),
            Self::UnitMissing => f.write_str("the unit is missing"),
            Self::UnitUnknown { unit, meant: None } => write!(f, "`{unit}` is not a unit here"),
            Self::UnitUnknown { unit, meant: Some(meant) } => {
                write!(f, "`{unit}` is not a unit here; did you mean `{meant}`?")
            }
            Self::Order => f.write_str("the units must go from large to small, each once"),
            Self::NotWhole => f.write_str("this is not a whole number"),
            Self::TooLarge => f.write_str("this is too large"),
            Self::Surplus => f.write_str("nothing more belongs here"),
        }
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (expected {})", self.problem, self.expected)
    }
}

impl std::error::Error for UnitError {}
