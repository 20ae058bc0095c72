//! Steps with a name, and transactions: what a line of the run file has of each.

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::better_clock::better_clock;

/// What users did in the steps, or transactions, of one name. Counters are totals since the start,
/// histograms cover the interval alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepInterval {
    /// The name in the scenario.
    pub name: String,
    /// Steps that ended as the scenario expects.
    pub ok: u64,
    /// Steps that an error ended, or that an earlier error made impossible.
    pub errors: u64,
    /// Steps in progress when their user was stopped.
    pub waiting: u64,
    /// Time from the intended moment until the generator read the answer; for a transaction, until
    /// its last step ended.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub latency: Histogram,
    /// The same latencies until the answer arrived, by the kernel's clock; for a transaction, the
    /// same as `latency`.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub arrival: Histogram,
    /// Waits that no answer ended, until they timed out or the user was stopped.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub unanswered: Histogram,
}

impl StepInterval {
    /// Returns the latencies by the best available clock.
    pub fn best(&self) -> &Histogram {
        better_clock(&self.latency, &self.arrival)
    }

    /// Returns the totals since the start, without the values that cover this interval alone.
    pub fn without_measured(&self) -> Self {
        let Self { name, ok, errors, waiting, .. } = self;
        let (name, ok, errors, waiting) = (name.clone(), *ok, *errors, *waiting);
        Self { name, ok, errors, waiting, ..Self::default() }
    }
}

/// The most names of steps and transactions that a scenario may have. Of a run file, readers take
/// no more.
pub const STEP_NAMES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_takes_the_room_that_the_document_says() {
        let mut step = StepInterval { name: "greeting".to_owned(), ..StepInterval::default() };
        let size = |step: &StepInterval| serde_json::to_string(step).unwrap().len();
        let empty = size(&step);
        step.latency.record_us(321);
        let one = size(&step) - empty;
        let mut random = throng_base::Prng::new(1);
        for _ in 0..5_000 {
            step.latency.record_us(5_000 + (random.exponential() * 2_000.0) as u64);
        }
        let many = size(&step) - empty;
        assert!((30..60).contains(&empty), "{empty}");
        assert!((60..90).contains(&one), "{one}");
        assert!((800..1_200).contains(&many), "{many}");
    }
}
