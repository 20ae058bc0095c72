//! When the bytes of the present event arrived, and which receives ask.

use throng_base::Instant;

/// What the kernel said of the bytes that the present event was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The last of the bytes reached this kernel at this moment. Where a busy core asks for a sample only,
    /// the receive stands for `weight` receives.
    Stamped {
        /// The moment.
        at: Instant,
        /// Receives that this one stands for.
        weight: u32,
    },
    /// Another receive of a busy core stands for this one.
    NotSampled,
    /// The kernel does not say, or was not asked. Stands for `weight` receives.
    Unknown {
        /// Receives that this one stands for.
        weight: u32,
    },
}

impl Arrival {
    /// Nothing is known of the moment.
    pub const UNKNOWN: Self = Self::Unknown { weight: 1 };
}

/// Chooses the receives that ask for a stamp, which makes them dearer. Up to [`STAMPS_PER_S`] of a second all do, so that a core with little to do measures everything. Of the rest,
/// which only a busy core has, one in [`SAMPLE_WEIGHT`] does and counts for as many.
#[derive(Debug, Default)]
pub(crate) struct StampSampler {
    /// Receives that may ask, in parts of a second's nanoseconds.
    saved_ns: u64,
    saved_at: Instant,
    passed_over: u32,
}

impl StampSampler {
    /// Begins a turn at `now`.
    pub(crate) fn begin_turn(&mut self, now: Instant) {
        let passed_ns = now.since(self.saved_at).as_nanos().min(SECOND_NS.into()) as u64;
        self.saved_ns = (self.saved_ns + passed_ns).min(SECOND_NS);
        self.saved_at = now;
    }

    /// Returns for how many receives the next one stands; none if it asks for no stamp.
    pub(crate) const fn next_weight(&mut self) -> Option<u32> {
        if let Some(rest) = self.saved_ns.checked_sub(SECOND_NS / STAMPS_PER_S) {
            self.saved_ns = rest;
            return Some(1);
        }
        self.passed_over = (self.passed_over + 1) % SAMPLE_WEIGHT;
        if self.passed_over == 0 { Some(SAMPLE_WEIGHT) } else { None }
    }
}

/// Receives of a second on a core that all ask.
const STAMPS_PER_S: u64 = 500;
/// One in so many of the others asks.
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
            // Ten seconds, and what was saved before.
            let all = (40 * receives).min(5_500);
            assert!(
                asked >= all.min(5_000) && asked <= all + 40 * receives / SAMPLE_WEIGHT + 1,
                "{asked}"
            );
        }
    }
}
