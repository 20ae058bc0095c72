//! Users that leave one after another, so that a million closes do not fall into one turn.

use std::time::Duration;

use throng_base::Instant;

/// Who still has to leave, and when the next few do.
#[derive(Debug, Default)]
pub(super) struct Departures {
    places: Vec<u32>,
    next: Instant,
    gap: Duration,
}

impl Departures {
    /// Everybody in `places` leaves within `over`, newest places first.
    pub(super) fn begin(&mut self, places: Vec<u32>, now: Instant, over: Duration) {
        let batches = (places.len() / BATCH + 1) as u32;
        *self = Self { places, next: now, gap: over / batches };
    }

    /// When the next ones leave.
    pub(super) fn due(&self) -> Instant {
        if self.places.is_empty() { Instant::FAR } else { self.next }
    }

    /// Those who leave now.
    pub(super) fn take(&mut self, now: Instant) -> Vec<u32> {
        if self.due() > now {
            return Vec::new();
        }
        self.next = now + self.gap;
        self.places.split_off(self.places.len().saturating_sub(BATCH))
    }
}

/// How many leave at once.
const BATCH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_leaves_in_batches_within_the_time() {
        let mut leaving = Departures::default();
        let over = Duration::from_secs(1);
        leaving.begin((0..1_000).collect(), Instant::ZERO, over);
        let (mut now, mut gone) = (Instant::ZERO, 0);
        while leaving.due() != Instant::FAR {
            now = leaving.due();
            let batch = leaving.take(now);
            assert!(batch.len() <= BATCH);
            gone += batch.len();
        }
        assert_eq!(gone, 1_000);
        assert!(now <= Instant::ZERO + over);
    }
}
