//! The record layer of an established connection, in the entry or in its send queue.

use std::time::Duration;

use throng_base::Instant;
use throng_proto::{OpenedRecords, TransportKey};

/// Place of a connection in the core's transport, and the deadline of a record that has arrived in
/// part. It is eight bytes that a plain connection does not use either, so it costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordLayer {
    /// None for a plain connection.
    pub(crate) key: Option<TransportKey>,
    /// Second of the deadline; 0 for none.
    deadline_s: u32,
}

impl RecordLayer {
    pub(crate) const fn new(key: TransportKey) -> Self {
        Self { key: Some(key), deadline_s: 0 }
    }

    /// Reports whether a record has arrived in part, which the transport's context keeps.
    pub(crate) const fn has_part(self) -> bool {
        self.deadline_s != 0
    }

    /// Returns when a record that has arrived in part is too slow; [`Instant::FAR`] for never.
    pub(crate) const fn deadline(self) -> Instant {
        match self.deadline_s {
            0 => Instant::FAR,
            second => Instant::from_nanos(second as u64 * NANOS),
        }
    }

    /// Sets the deadline anew after records were opened from `length` received bytes.
    pub(crate) fn note(
        &mut self,
        opened: OpenedRecords,
        length: usize,
        now: Instant,
        timeout: Duration,
    ) {
        let is_older = self.has_part() && opened.incomplete_bytes == length;
        if opened.incomplete_bytes == 0 {
            self.deadline_s = 0;
        } else if !is_older {
            self.set_deadline(now, timeout);
        }
    }

    /// Sets the deadline to `after` from now, in the next full second.
    fn set_deadline(&mut self, now: Instant, after: Duration) {
        let second = (now + after).as_nanos() / NANOS + 1;
        self.deadline_s = u32::try_from(second).unwrap_or(u32::MAX);
    }
}

const NANOS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_at_most_a_second_late() {
        let mut layer = RecordLayer::default();
        assert_eq!((layer.deadline(), size_of::<RecordLayer>()), (Instant::FAR, 8));
        for nanos in [0, 1, 999_999_999, 1_000_000_000, 77_500_000_000] {
            let (now, after) = (Instant::from_nanos(nanos), Duration::from_millis(1_500));
            layer.set_deadline(now, after);
            let late = layer.deadline().since(now + after);
            assert!(layer.deadline() > now + after && late <= Duration::from_secs(1), "{late:?}");
        }
    }
}
