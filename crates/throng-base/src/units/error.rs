//! Errors in the text of a quantity, and their position.

use std::fmt;
use std::ops::Range;

/// Error of a text that is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (expected {expected})")]
pub struct UnitError {
    /// Bytes of the text that are wrong.
    pub span: Range<usize>,
    /// Description of a valid text, with examples: `a duration such as 250ms, 15m or 1h30m`.
    pub expected: &'static str,
    /// Problem of the bytes at `span`.
    pub problem: Problem,
}

/// Problem in the text of a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is empty.
    Empty,
    /// The text is not a number.
    NotANumber,
    /// The number needs a unit and has none.
    UnitMissing,
    /// The unit is not valid here.
    UnitUnknown {
        /// Unit in the text.
        unit: String,
        /// Unit that was probably meant.
        meant: Option<&'static str>,
    },
    /// The parts of a duration are in the wrong order, or a unit is repeated.
    Order,
    /// The number is a fraction where a whole number is needed.
    NotWhole,
    /// The number exceeds the range of the quantity.
    TooLarge,
    /// There is text after the end of the quantity.
    Surplus,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a value is missing here"),
            Self::NotANumber => f.write_str("a number must begin here"),
            Self::UnitMissing => f.write_str("the unit is missing"),
            Self::UnitUnknown { unit, meant: None } => write!(f, "`{unit}` is not a unit here"),
            Self::UnitUnknown { unit, meant: Some(meant) } => {
                write!(f, "`{unit}` is not a unit here; did you mean `{meant}`?")
            }
            Self::Order => f.write_str("the units must go from large to small, each once"),
            Self::NotWhole => f.write_str("this is not a whole number"),
            Self::TooLarge => f.write_str("this is too large"),
            Self::Surplus => f.write_str("unexpected text after the value"),
        }
    }
}
