//! What a user keeps of nested loops and of transactions.

use throng_base::Instant;

use super::loop_counter::LoopCounter;
use crate::program::{LOOPS_MAX, TRANSACTIONS_MAX};

/// Progress in inner loops, and beginnings of transactions. Only users that have one keep it.
#[derive(Debug)]
pub(crate) struct Nested {
    /// Counters of the inner loops.
    pub(crate) loops: [LoopCounter; LOOPS_MAX - 1],
    /// Intended moments of the first steps of transactions, by their depth; [`Instant::FAR`] if
    /// there is none or it has failed.
    pub(crate) transactions: [Instant; TRANSACTIONS_MAX],
}

impl Default for Nested {
    fn default() -> Self {
        Self { loops: Default::default(), transactions: [Instant::FAR; TRANSACTIONS_MAX] }
    }
}
