//! What became of the lines of a log: one entry of the report for each kind of line.

use std::collections::BTreeMap;

use crate::fidelity::Fidelity;
use crate::row::Row;
use crate::source::Span;
use crate::translator::Translator;

/// The kinds of lines of a log so far, each with the place of its first line.
#[derive(Debug, Default)]
pub(crate) struct CountedLines {
    kinds: BTreeMap<String, KindOfLine>,
}

#[derive(Debug)]
struct KindOfLine {
    first: Span,
    fidelity: Fidelity,
    note: String,
}

impl CountedLines {
    /// Counts a line. The first line of a kind decides its note.
    pub(crate) fn add(
        &mut self,
        kind: &str,
        span: &Span,
        fate: impl FnOnce() -> (Fidelity, String),
    ) {
        if !self.kinds.contains_key(kind) && self.kinds.len() < KINDS_MAX {
            let (fidelity, note) = fate();
            let line = KindOfLine { first: span.clone(), fidelity, note };
            self.kinds.insert(kind.to_owned(), line);
        }
    }

    /// Reports all kinds.
    pub(crate) fn report(self, translator: &mut Translator<'_>) {
        for (kind, KindOfLine { first, fidelity, note }) in self.kinds {
            translator.entry(fidelity, &first, kind, note);
        }
    }
}

/// Returns what becomes of a line whose row is in the table, or of one that is translated.
pub(crate) fn fate_of(rows: &'static [Row], kind: &str) -> (Fidelity, String) {
    Row::of(rows, kind).map_or_else(translated, |row| (row.fidelity, row.note.to_owned()))
}

/// Returns the fate of a line whose numbers the run file has.
pub(crate) fn translated() -> (Fidelity, String) {
    (Fidelity::Translated, String::new())
}

/// Returns the fate of a line whose numbers the run file has in another form.
pub(crate) fn approximated(difference: &str) -> (Fidelity, String) {
    (Fidelity::Approximated, difference.to_owned())
}

/// Returns the fate of a line that says nothing new.
pub(crate) fn not_needed(why: &str) -> (Fidelity, String) {
    (Fidelity::NotNeeded, why.to_owned())
}

/// Returns the fate of a line that a run file has no place for.
pub(crate) fn not_supported(why: &str) -> (Fidelity, String) {
    (Fidelity::NotSupported, why.to_owned())
}

/// The most kinds that are reported.
const KINDS_MAX: usize = 1_000;
