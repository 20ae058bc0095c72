//! Autobahn's report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

/// Autobahn's verdict on one case: first on the messages, then on the close of the connection.
#[derive(Debug, Deserialize)]
struct Verdict {
    behavior: String,
    #[serde(rename = "behaviorClose")]
    behavior_close: String,
}

/// The verdicts by case.
pub(super) struct Verdicts(BTreeMap<Vec<u32>, Verdict>);

impl Verdicts {
    /// Reads the index of the report in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let file = folder.join("index.json");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let agents: BTreeMap<String, BTreeMap<String, Verdict>> =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let number = |part: &str| part.parse().unwrap_or(0);
        let cases = agents.into_values().flatten();
        Ok(Self(cases.map(|(case, one)| (case.split('.').map(number).collect(), one)).collect()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Reports whether every case is OK. An informational case has no right answer, because RFC
    /// 6455 leaves it open.
    pub(super) fn are_passed(&self) -> bool {
        self.not_ok().all(|(_, one)| {
            one.behavior == "INFORMATIONAL"
                && ["OK", "INFORMATIONAL"].contains(&&*one.behavior_close)
        })
    }

    /// Returns the counts, and every case that is not OK.
    pub(super) fn summary(&self, role: &str, elapsed: Duration) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for one in self.0.values() {
            *counts.entry(&one.behavior).or_default() += 1;
        }
        let counts: Vec<String> =
            counts.iter().map(|(behavior, count)| format!("{count} {behavior}")).collect();
        let mut text = format!(
            "{role}: {} cases in {:.0} s: {}",
            self.len(),
            elapsed.as_secs_f64(),
            counts.join(", ")
        );
        for (case, one) in self.not_ok() {
            let _ = write!(text, "\n  {}: {} / {}", name(case), one.behavior, one.behavior_close);
        }
        text
    }

    /// Appends one line for each case.
    pub(super) fn append(&self, role: &str, out: &mut String) {
        for (case, one) in &self.0 {
            let _ = writeln!(out, "{role} {} {} {}", name(case), one.behavior, one.behavior_close);
        }
    }

    fn not_ok(&self) -> impl Iterator<Item = (&Vec<u32>, &Verdict)> {
        self.0.iter().filter(|(_, one)| one.behavior != "OK" || one.behavior_close != "OK")
    }
}

fn name(case: &[u32]) -> String {
    let parts: Vec<String> = case.iter().map(u32::to_string).collect();
    parts.join(".")
}
