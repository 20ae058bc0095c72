//! Constructs that become the same wherever they stand: each tool has a table of them. The
//! reference of the tool in `docs/importing` lists its table.

use crate::fidelity::Fidelity;

/// A construct whose fidelity and note never change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its name in the source's language, as the report has it.
    pub(crate) construct: &'static str,
    pub(crate) fidelity: Fidelity,
    pub(crate) note: &'static str,
    /// File and function of the tool that does it; empty if its language does.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documents have it"))]
    pub(crate) source: &'static str,
}

impl Row {
    /// Returns the row of this construct.
    pub(crate) fn of(rows: &'static [Self], construct: &str) -> Option<&'static Self> {
        rows.iter().find(|row| row.construct == construct)
    }
}

#[cfg(test)]
mod tests;
