//! Arrival times of received bytes, and the choice of receives that request one.

use throng_base::Instant;

/// Arrival of the bytes from which the present event was read, as far as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The last of the bytes reached this kernel at the moment `at`. On a busy core, which requests
    /// stamps for a sample of receives only, the receive stands for `weight` receives.
    Stamped {
        /// Moment of the arrival.
        at: Instant,
        /// Number of receives that this one stands for.
        weight: u32,
    },
    /// No stamp was requested; another receive of a busy core stands for this one.
    NotSampled,
    /// The kernel gave no stamp, or none was requested. Stands for `weight` receives.
    Unknown {
        /// Number of receives that this one stands for.
        weight: u32,
    },
}

impl Arrival {
    /// Unknown arrival of a single receive.
    pub const UNKNOWN: Self = Self::Unknown { weight: 1 };
}

/// Sampler of the receives that request a stamp, because a stamp makes a receive dearer. The first
/// [`STAMPS_PER_S`] receives of a second all request one, so a core with little work measures all
/// of them. Of the other receives, which only a busy core has, one in [`SAMPLE_WEIGHT`] requests a
/// stamp and counts for that many.
#[derive(Debug, Default)]
pub(crate) struct StampSampler {
    /// Saved time; each stamp costs a second divided by [`STAMPS_PER_S`].
    saved_ns: u64,
    saved_at: Instant,
    skipped: u32,
}

impl StampSampler {
    /// Adds the time since the last turn to the saved time.
    pub(crate) fn begin_turn(&mut self, now: Instant) {
        let passed_ns = now.since(self.saved_at).as_nanos().min(SECOND_NS.into()) as u64;
        self.saved_ns = (self.saved_ns + passed_ns).min(SECOND_NS);
        self.saved_at = now;
    }

    /// Returns how many receives the next one stands for, or `None` if it requests no stamp.
    pub(crate) const fn next_weight(&mut self) -> Option<u32> {
        if let Some(rest) = self.saved_ns.checked_sub(SECOND_NS / STAMPS_PER_S) {
            self.saved_ns = rest;
            return Some(1);
        }
        self.skipped = (self.skipped + 1) % SAMPLE_WEIGHT;
        if self.skipped == 0 { Some(SAMPLE_WEIGHT) } else { None }
    }
}

/// Receives a second on one core that all request a stamp.
const STAMPS_PER_S: u64 = 500;
/// One in this many of the other receives requests a stamp.
const SAMPLE_WEIGHT: u32 = 64;
const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn weights_add_up_to_the_receives() {
        let mut sampler = StampSampler::default();
        let mut now = Instant::ZERO + Duration::from_secs(5);
        for receives in [1_u32, 16, 500, 3_000] {
            let (mut weights, mut asked) = (0, 0);
            for _ in 0..40 {
                now += Duration::from_millis(250);
                sampler.begin_turn(now);
                let turn: Vec<u32> = (0..receives).filter_map(|_| sampler.next_weight()).collect();
                weights += turn.iter().sum::<u32>();
                asked += turn.len() as u32;
            }
            assert!(weights.abs_diff(40 * receives) < SAMPLE_WEIGHT, "{weights} of {receives}");
            // Ten seconds, plus the time that was saved before.
            let all = (40 * receives).min(5_500);
            assert!(
                asked >= all.min(5_000) && asked <= all + 40 * receives / SAMPLE_WEIGHT + 1,
                "{asked}"
            );
        }
    }
}
