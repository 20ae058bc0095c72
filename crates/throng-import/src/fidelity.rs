//! How exactly a file was translated: one entry for each construct, and the report of all.

use std::fmt;

use serde::Serialize;
use throng_base::units::plural;
use throng_report::render::wrap;

/// How exactly the scenario does what the source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// The same traffic.
    Translated,
    /// Nearly the same traffic. The note says what differs.
    Approximated,
    /// Left out, because it does not concern the traffic, or throng does it by itself.
    NotNeeded,
    /// Left out, and the traffic is the same: the scenario has one check fewer. The note says what
    /// to do.
    NotChecked,
    /// Left out, although it concerns the traffic. The note says what to do.
    NotSupported,
    /// Translated as it is written, and probably not what its author wanted.
    Suspicious,
}

/// What became of one construct of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FidelityEntry {
    /// How exactly it was translated.
    pub fidelity: Fidelity,
    /// Its line in the source, from 1.
    pub line: usize,
    /// Its name in the source's language: `thinktime`, `worker_start pow`.
    pub construct: String,
    /// What differs, or what to do; empty if it was translated.
    pub note: String,
}

/// What became of all constructs of a source, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FidelityReport {
    /// The tool whose file it is: `tsung`.
    pub tool: &'static str,
    /// One entry for each construct.
    pub entries: Vec<FidelityEntry>,
}

impl Fidelity {
    /// All of them, in the order of the report.
    const ALL: [Self; 6] = [
        Self::Translated,
        Self::NotNeeded,
        Self::Approximated,
        Self::NotChecked,
        Self::NotSupported,
        Self::Suspicious,
    ];

    /// Returns its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Translated => "translated",
            Self::NotNeeded => "not needed",
            Self::Approximated => "approximated",
            Self::NotChecked => "not checked",
            Self::NotSupported => "not supported",
            Self::Suspicious => "suspicious",
        }
    }
}

impl FidelityReport {
    /// Iterates over the entries of this fidelity.
    pub fn of(&self, fidelity: Fidelity) -> impl Iterator<Item = &FidelityEntry> {
        self.entries.iter().filter(move |entry| entry.fidelity == fidelity)
    }

    /// Reports whether the scenario lacks traffic that the source describes.
    pub fn is_partial(&self) -> bool {
        self.of(Fidelity::NotSupported).next().is_some()
    }
}

/// Shows the number of each fidelity, and then each entry with a note.
impl fmt::Display for FidelityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = Fidelity::ALL
            .iter()
            .map(|fidelity| (self.of(*fidelity).count(), fidelity.name()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        let count = self.entries.len();
        let constructs = plural(count as u64, "construct", "constructs");
        write!(f, "{count} {constructs} of {}: {}", self.tool, counts.join(", "))?;
        for fidelity in Fidelity::ALL.into_iter().skip(1) {
            let mut entries = self.of(fidelity).peekable();
            if entries.peek().is_some() {
                write!(f, "\n{}", fidelity.name())?;
            }
            for entry in entries {
                let note = wrap(&format!("    {}", entry.note), COLUMNS_MAX);
                write!(f, "\n  line {}, {}\n{note}", entry.line, entry.construct)?;
            }
        }
        Ok(())
    }
}

/// The longest line of the report.
const COLUMNS_MAX: usize = 96;
