//! Progress of a user in one of its loops.

use throng_base::Instant;

/// Progress of a user in one of its loops.
///
/// Packed into 20 bytes at the cost of alignment: `turn` is a `u64`, and the user is no larger.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub(crate) struct LoopCounter {
    pub(crate) begun: Instant,
    /// The present turn, or the one that the user waits for; the first is 0.
    pub(crate) turn: u64,
    /// Turns of `every` that are counted as intended, from `turn` on: 0 while the user waits for
    /// `turn` to come due, 1 once it has begun, more if later turns came due before it began. If
    /// the user is further behind than a `u32` can hold, the rest is counted when its loop ends.
    pub(crate) ahead: u32,
}

impl LoopCounter {
    /// Creates the counter of a loop that begins at `begun` with turn 0.
    pub(crate) fn new(begun: Instant) -> Self {
        Self { begun, turn: 0, ahead: 0 }
    }

    /// Returns the number of turns that are counted as intended.
    pub(crate) fn counted(self) -> u64 {
        self.turn.saturating_add(self.ahead.into())
    }

    /// Raises the number of turns counted as intended to `due`. Returns how many are new.
    pub(crate) fn count(&mut self, due: u64) -> u64 {
        let (turn, before) = (self.turn, self.counted());
        let ahead = due.max(before) - turn;
        self.ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.counted() - before
    }

    /// Returns the number of turns that have begun. The user must not be between two steps.
    pub(crate) fn turns_begun(self) -> u64 {
        self.turn + u64::from(self.ahead > 0)
    }

    /// Advances to the next turn.
    pub(crate) fn next_turn(&mut self) {
        self.turn += 1;
        self.ahead = self.ahead.saturating_sub(1);
    }
}
