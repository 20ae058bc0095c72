//! Think times, and how long a user's steps take.

use std::time::Duration;

use throng_base::units::show_duration;

use crate::step;
use crate::yaml::Yaml;

/// A think time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ThinkTime {
    Fixed(f64),
    /// Exponentially distributed, with this mean.
    Exponential(f64),
    /// Evenly distributed.
    Uniform(f64, f64),
}

/// How tsung makes a think time of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ThinkKind {
    /// It is the value.
    Fixed,
    /// The value is the mean of an exponential distribution.
    Random,
    /// It is evenly distributed between these bounds, whatever the value is.
    Range(f64, f64),
}

/// How long steps take: the mean and the variance of the think times in them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StepsTime {
    mean: f64,
    variance: f64,
    /// True if they may take as long as the run.
    pub(super) is_open: bool,
}

impl ThinkTime {
    /// Returns the think time of this value, as `how` makes it.
    pub(super) fn of(value: f64, how: ThinkKind) -> Self {
        match how {
            ThinkKind::Range(low, high) if low < high => Self::Uniform(low, high),
            ThinkKind::Range(low, _) => Self::Fixed(low),
            ThinkKind::Random => Self::Exponential(value),
            ThinkKind::Fixed => Self::Fixed(value),
        }
    }

    /// Returns the step, unless the time is zero.
    pub(super) fn step(self) -> Option<Yaml> {
        let show = |value: f64| show_duration(seconds(value));
        let text = match self {
            Self::Fixed(value) | Self::Exponential(value) if seconds(value).is_zero() => None,
            Self::Fixed(value) => Some(show(value)),
            Self::Exponential(mean) => Some(format!("exponential({})", show(mean))),
            Self::Uniform(_, high) if seconds(high).is_zero() => None,
            Self::Uniform(low, high) if seconds(low) == seconds(high) => Some(show(high)),
            Self::Uniform(low, high) => Some(format!("uniform({}, {})", show(low), show(high))),
        };
        text.map(step::wait)
    }

    pub(super) fn time(self) -> StepsTime {
        let (mean, variance) = match self {
            Self::Fixed(value) => (value, 0.0),
            Self::Exponential(mean) => (mean, mean * mean),
            Self::Uniform(low, high) => ((low + high) / 2.0, (high - low).powi(2) / 12.0),
        };
        StepsTime { mean, variance, is_open: false }
    }
}

impl StepsTime {
    /// Steps that may take as long as the run.
    pub(super) const OPEN: Self = Self { mean: 0.0, variance: 0.0, is_open: true };

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            mean: self.mean + other.mean,
            variance: self.variance + other.variance,
            is_open: self.is_open || other.is_open,
        }
    }

    pub(super) fn times(self, turns: f64) -> Self {
        Self { mean: self.mean * turns, variance: self.variance * turns, ..self }
    }

    /// Returns the longer of two times.
    pub(super) fn max(self, other: Self) -> Self {
        let longer = if self.nearly_all() >= other.nearly_all() { self } else { other };
        Self { is_open: self.is_open || other.is_open, ..longer }
    }

    /// Returns the time within which nearly all users are done, in whole seconds.
    pub(super) fn nearly_all(self) -> Duration {
        let span = self.mean + 4.0 * self.variance.sqrt();
        seconds(span.min(SPAN_MAX_S).ceil())
    }
}

/// Returns a duration of this many seconds, to the nanosecond.
pub(super) fn seconds(value: f64) -> Duration {
    Duration::from_nanos((value * 1e9).round() as u64)
}

/// The longest time that a file may name: a year.
pub(super) const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// The longest time that an import adds for users to finish: ten years.
const SPAN_MAX_S: f64 = 10.0 * SECONDS_MAX;
