//! Memory per connection.

use throng_measure::ProcessUse;

/// The memory growth of a process when it held the most connections.
#[derive(Debug, Default)]
pub(super) struct MemoryFold {
    pub(super) count_most: u64,
    grown_bytes: u64,
    known: bool,
}

impl MemoryFold {
    pub(super) fn add(&mut self, count: u64, process: &ProcessUse) {
        let grown_bytes = process.rss_bytes.saturating_sub(process.rss_bytes_at_start);
        if count > self.count_most {
            self.grown_bytes = grown_bytes;
        } else if count == self.count_most {
            // The same connections were held for longer: memory may follow a little later.
            self.grown_bytes = self.grown_bytes.max(grown_bytes);
        }
        if count >= self.count_most {
            self.known = process.rss_bytes > 0 && process.rss_bytes_at_start > 0;
        }
        self.count_most = self.count_most.max(count);
    }

    pub(super) fn bytes_each(&self) -> Option<f64> {
        let known = self.known && self.count_most >= MEMORY_CONNECTIONS_MIN;
        known.then(|| self.grown_bytes as f64 / self.count_most as f64)
    }
}

/// Connections below which memory per connection is `null`: a process grows for other reasons too
/// (its buffers, the stacks of its threads), which would be most of the growth.
pub const MEMORY_CONNECTIONS_MIN: u64 = 1_000;
