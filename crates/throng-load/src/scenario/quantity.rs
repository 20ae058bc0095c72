//! A number, a duration or a rate: the value of an expression.

use std::fmt;
use std::time::Duration;

use throng_base::units::{show_duration, show_rate};

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A value that was not measured or not given.
    Unknown,
    /// A number. `time` is the power of the second in its unit: 1 for a duration, -1 for a rate.
    Number {
        /// The value in seconds, per second, or as it is.
        value: f64,
        /// The power of the second.
        time: i8,
    },
    /// A text, to compare with others.
    Text(String),
}

impl Quantity {
    /// Returns a plain number.
    pub fn number(value: f64) -> Self {
        Self::with_time(value, 0)
    }

    /// Returns a duration.
    pub fn seconds(value: f64) -> Self {
        Self::with_time(value, 1)
    }

    /// Returns a rate.
    pub fn per_second(value: f64) -> Self {
        Self::with_time(value, -1)
    }

    /// Returns the value in seconds, per second, or as it is; `None` for a text and for an
    /// unknown quantity.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Number { value, .. } => Some(*value),
            Self::Unknown | Self::Text(_) => None,
        }
    }

    /// Reports whether this condition holds.
    pub fn holds(&self) -> bool {
        self.value().is_some_and(|value| value != 0.0)
    }

    /// Returns this number in the dimension of `other`.
    pub(super) fn like(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Number { value, .. }, Self::Number { time, .. }) => {
                Self::Number { value, time: *time }
            }
            (this, _) => this,
        }
    }

    pub(super) fn with_time(value: f64, time: i8) -> Self {
        let most = if time == 1 { DURATION_MAX_S } else { f64::MAX };
        if value.abs() <= most { Self::Number { value, time } } else { Self::Unknown }
    }

    pub(super) fn truth(holds: bool) -> Self {
        Self::number(f64::from(u8::from(holds)))
    }

    /// Describes the dimension in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Unknown => "nothing",
            Self::Text(_) => "a text",
            Self::Number { time: 0, .. } => "a number",
            Self::Number { time: 1, .. } => "a duration",
            Self::Number { time: -1, .. } => "a rate",
            Self::Number { .. } => "a quantity without a name",
        }
    }
}

/// The longest duration: nanoseconds in 64 bits.
const DURATION_MAX_S: f64 = 1.8e10;

/// Shows the exact quantity as a scenario reads it: `250`, `1m30s`, `4900/s`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Text(text) => f.write_str(text),
            Self::Number { value, time: 1 } => {
                f.write_str(&show_duration(Duration::from_nanos((value * 1e9).round() as u64)))
            }
            Self::Number { value, time: -1 } => f.write_str(&show_rate(*value)),
            Self::Number { value, .. } => write!(f, "{value}"),
        }
    }
}
