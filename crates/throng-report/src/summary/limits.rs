//! How far the scenario's own limits were felt.

use serde::{Deserialize, Serialize};
use throng_measure::LimitUse;

/// One of the scenario's own limits. A run that felt it shows the limit's rate, not the server's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitSummary {
    /// The limit: `all` or `user`, and `send`, `connect` or `request`, as in `all.send`.
    pub name: String,
    /// Its rate, per second.
    pub per_second: f64,
    /// Steps that it counted.
    pub steps: u64,
    /// Steps that it held back until their turn.
    pub held: u64,
    /// `held` divided by `steps`.
    pub held_share: Option<f64>,
    /// Mean time for which it held a step back, in microseconds.
    pub held_mean_us: Option<f64>,
}

impl From<&LimitUse> for LimitSummary {
    fn from(limit: &LimitUse) -> Self {
        let LimitUse { name, per_second, steps, held, held_us } = limit;
        let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
        Self {
            name: name.clone(),
            per_second: *per_second,
            steps: *steps,
            held: *held,
            held_share: ratio(*held, *steps),
            held_mean_us: ratio(*held_us, *held),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_and_mean_are_of_the_steps_that_the_limit_counted() {
        let limit = LimitUse {
            name: "all.send".into(),
            per_second: 5_000.0,
            steps: 1_000,
            held: 310,
            held_us: 620_000,
        };
        let summary = LimitSummary::from(&limit);
        assert_eq!((summary.held_share, summary.held_mean_us), (Some(0.31), Some(2_000.0)));
        let summary = LimitSummary::from(&LimitUse::default());
        assert_eq!((summary.held_share, summary.held_mean_us), (None, None));
    }
}
