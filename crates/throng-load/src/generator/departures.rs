//! Users that leave one after another, so that a million closes do not fall into one turn.

use std::time::Duration;

use throng_base::Instant;

/// Users that still have to leave, by their table indexes.
#[derive(Debug, Default)]
pub(super) struct Departures {
    indexes: Vec<u32>,
    next: Instant,
    gap: Duration,
}

impl Departures {
    /// Makes all users in `indexes` leave within `over`, highest indexes first.
    pub(super) fn start(&mut self, places: Vec<u32>, now: Instant, over: Duration) {
        let batches = (places.len() / BATCH + 1) as u32;
        *self = Self { indexes: places, next: now, gap: over / batches };
    }

    /// Returns the moment at which the next batch leaves.
    pub(super) fn due(&self) -> Instant {
        if self.indexes.is_empty() { Instant::FAR } else { self.next }
    }

    /// Returns the users that leave now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<u32> {
        if self.due() > now {
            return Vec::new();
        }
        self.next = now + self.gap;
        self.indexes.split_off(self.indexes.len().saturating_sub(BATCH))
    }
}

/// Users that leave at once.
const BATCH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_users_leave_in_batches_within_the_time() {
        let mut leaving = Departures::default();
        let over = Duration::from_secs(1);
        leaving.start((0..1_000).collect(), Instant::ZERO, over);
        let (mut now, mut gone) = (Instant::ZERO, 0);
        while leaving.due() != Instant::FAR {
            now = leaving.due();
            let batch = leaving.take_due(now);
            assert!(batch.len() <= BATCH);
            gone += batch.len();
        }
        assert_eq!(gone, 1_000);
        assert!(now <= Instant::ZERO + over);
    }
}
