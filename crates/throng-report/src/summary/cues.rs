//! What users waited for one another.

use serde::{Deserialize, Serialize};
use throng_measure::{CueWaits, LoadInterval};

/// Waits of users for one another, at `barrier` and in `wait_for`. A latency counts from the end of
/// such a wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CueSummary {
    /// Waits that began.
    pub waits: u64,
    /// Waits that had not ended when the run did.
    pub waiting: u64,
    /// Mean time of a wait that has ended, in microseconds.
    pub mean_us: Option<f64>,
    /// Each barrier and signal, in the order of the scenario.
    pub each: Vec<CueWaits>,
}

impl CueSummary {
    /// Summarizes the waits; `None` if there was none.
    pub(super) fn of(last: &LoadInterval) -> Option<Self> {
        let counters = &last.counters;
        let (waits, waiting) = (counters.cue_waits, counters.cue_waiting);
        let ended = waits.saturating_sub(waiting);
        let mean_us = (ended > 0).then(|| counters.cue_waits_us as f64 / ended as f64);
        let each = last.cues.clone();
        (waits > 0).then_some(Self { waits, waiting, mean_us, each })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::LoadCounters;

    #[test]
    fn the_mean_is_of_the_waits_that_have_ended() {
        assert_eq!(CueSummary::of(&LoadInterval::default()), None);
        let counters = LoadCounters {
            cue_waits: 5,
            cue_waiting: 1,
            cue_waits_us: 8_000,
            ..LoadCounters::default()
        };
        let cues = vec![CueWaits { name: "go".into(), ..CueWaits::default() }];
        let last = LoadInterval { counters, cues, ..LoadInterval::default() };
        let each = last.cues.clone();
        let expected = CueSummary { waits: 5, waiting: 1, mean_us: Some(2_000.0), each };
        assert_eq!(CueSummary::of(&last), Some(expected));
    }
}
