//! Transactions: steps that are measured together.

use super::step_index::StepIndex;

/// Steps of a class that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Index of its beginning among those that a user keeps: its depth, from 0.
    pub slot: u8,
    /// Name of the transaction.
    pub step: StepIndex,
    /// Index of the first op of its body.
    pub body: u32,
    /// Index of the op after its `TransactionEnd`.
    pub after: u32,
}

impl Transaction {
    /// Reports whether the op at `pc` is in the transaction's body or is its `TransactionEnd`.
    pub fn contains(&self, pc: u32) -> bool {
        (self.body..self.after).contains(&pc)
    }
}

/// Maximum depth of nested transactions: a user keeps this many beginnings.
pub const TRANSACTIONS_MAX: usize = 4;
