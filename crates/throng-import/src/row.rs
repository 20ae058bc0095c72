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

/// Returns the row of a construct that does nearly the same in the scenario.
pub(crate) const fn approximated(
    construct: &'static str,
    difference: &'static str,
    source: &'static str,
) -> Row {
    Row { construct, fidelity: Fidelity::Approximated, note: difference, source }
}

/// Returns the row of a construct that the scenario needs not.
pub(crate) const fn not_needed(
    construct: &'static str,
    why: &'static str,
    source: &'static str,
) -> Row {
    Row { construct, fidelity: Fidelity::NotNeeded, note: why, source }
}

/// Returns the row of a check that the scenario lacks.
pub(crate) const fn not_checked(
    construct: &'static str,
    remedy: &'static str,
    source: &'static str,
) -> Row {
    Row { construct, fidelity: Fidelity::NotChecked, note: remedy, source }
}

/// Returns the row of a construct of the traffic that the scenario lacks.
pub(crate) const fn not_supported(
    construct: &'static str,
    remedy: &'static str,
    source: &'static str,
) -> Row {
    Row { construct, fidelity: Fidelity::NotSupported, note: remedy, source }
}

#[cfg(test)]
mod tests;
