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
    Sampled,
    /// The kernel does not say, or was not asked. Stands for `weight` receives.
    Unknown {
        /// Receives that this one stands for.
        weight: u32,
    },
}

impl Arrival {
    /// Nothing is known of the moment.
    pub const UNKNOWN: Self = Self::Unknown { weight: 1 };

    /// Returns the same, standing for `times` as many receives.
    pub const fn times(self, times: u32) -> Self {
        match self {
            Self::Stamped { at, weight } => Self::Stamped { at, weight: weight * times },
            Self::Unknown { weight } => Self::Unknown { weight: weight * times },
            Self::Sampled => Self::Sampled,
        }
    }
}

/// Chooses the receives of a turn that ask for a stamp, which costs 5 % of a small message. The first
/// ones of each turn all do, so that an idle core measures everything. Of the rest, which only a busy
/// core has, one in [`SAMPLE_WEIGHT`] does and counts for as many.
#[derive(Debug, Default)]
pub(crate) struct StampSampler {
    asked_in_turn: u32,
    passed_over: u32,
}

impl StampSampler {
    /// Begins a turn.
    pub(crate) const fn begin_turn(&mut self) {
        self.asked_in_turn = 0;
    }

    /// Returns for how many receives the next one stands; none if it asks for no stamp.
    pub(crate) const fn next_weight(&mut self) -> Option<u32> {
        if self.asked_in_turn < STAMPED_FIRST {
            self.asked_in_turn += 1;
            return Some(1);
        }
        self.passed_over = (self.passed_over + 1) % SAMPLE_WEIGHT;
        if self.passed_over == 0 { Some(SAMPLE_WEIGHT) } else { None }
    }
}

/// Receives of a turn that all ask.
const STAMPED_FIRST: u32 = 16;
/// One in so many of the others asks.
const SAMPLE_WEIGHT: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_to_the_receives() {
        let mut sampler = StampSampler::default();
        for receives in [1_u32, 16, 17, 100, 1_000] {
            let turns = 40;
            let mut weights = 0;
            for _ in 0..turns {
                sampler.begin_turn();
                let asked: Vec<u32> = (0..receives).filter_map(|_| sampler.next_weight()).collect();
                weights += asked.iter().sum::<u32>();
                assert!(asked.len() as u32 <= 16 + receives.saturating_sub(16).div_ceil(4));
            }
            assert!(weights.abs_diff(turns * receives) < SAMPLE_WEIGHT, "{weights} of {receives}");
        }
    }
}
