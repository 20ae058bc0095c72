//! A rate that changes over a time and then stays constant, and its integral in both directions.

use std::time::Duration;

use crate::scenario::Curve;

/// Turns per second: `from` at the beginning, `to` after `over` seconds and from then on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateCurve {
    from: f64,
    to: f64,
    over: f64,
    /// Exponential: the rate is `from * e^(growth * seconds)`. Zero for a linear change.
    growth: f64,
    /// Turns until `over`.
    count_at_bend: f64,
}

impl RateCurve {
    /// Creates the curve. An exponential one has rates above zero.
    pub(super) fn new(from: f64, to: f64, over: Duration, curve: Curve) -> Self {
        let over = over.as_secs_f64();
        let is_exponential = curve == Curve::Exponential && from != to && over > 0.0;
        let growth = if is_exponential { (to / from).ln() / over } else { 0.0 };
        let count_at_bend =
            if is_exponential { (to - from) / growth } else { (from + to) / 2.0 * over };
        Self { from, to, over, growth, count_at_bend }
    }

    /// Returns the highest rate, per second.
    pub(super) fn peak_per_s(&self) -> f64 {
        if self.over > 0.0 { self.from.max(self.to) } else { self.to }
    }

    /// Returns the number of turns that are due in the first `seconds`.
    pub(super) fn count_by(&self, seconds: f64) -> f64 {
        if seconds >= self.over {
            return self.count_at_bend + self.to * (seconds - self.over);
        }
        if self.growth != 0.0 {
            return self.from / self.growth * (self.growth * seconds).exp_m1();
        }
        seconds * (self.from + (self.to - self.from) * seconds / (2.0 * self.over))
    }

    /// Returns the second at which `count` turns are due; infinite if that never happens.
    ///
    /// `count = from t + (to - from) t^2 / (2 over)`, solved in the form that loses no digits when
    /// the two terms under the root nearly cancel.
    pub(super) fn moment_of(&self, count: f64) -> f64 {
        if count > self.count_at_bend {
            return self.over + (count - self.count_at_bend) / self.to;
        }
        if count <= 0.0 {
            return 0.0;
        }
        if self.growth != 0.0 {
            // Near the end of a falling rate, rounding may pass the pole of the logarithm.
            let grown = (count * self.growth / self.from).max(-1.0).ln_1p() / self.growth;
            return grown.min(self.over);
        }
        let slope = (self.to - self.from) / self.over;
        let root = (self.from * self.from + 2.0 * slope * count).max(0.0).sqrt();
        (2.0 * count / (self.from + root)).min(self.over)
    }
}

/// Converts seconds to a duration; saturates.
pub(super) fn duration(seconds: f64) -> Duration {
    let nanos = seconds * 1e9;
    // The cast saturates, so an infinite moment becomes the longest duration.
    Duration::from_nanos(nanos.round() as u64)
}
