//! Findings: a bottleneck by name, with its evidence and its remedy.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One conclusion. Rules and the labs' verdicts make findings; renderers only show them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The stable name, `accept_queue_overflow`.
    pub id: String,
    /// The side of the cause.
    pub side: Side,
    /// The effect on the run.
    #[serde(default)]
    pub severity: Severity,
    /// The counters that show the finding. A finding without evidence is an opinion.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// The certainty of the rule, 0 to 1.
    pub confidence: f64,
    /// The command or option that removes the cause; empty if there is nothing to do.
    #[serde(default)]
    pub remedy: String,
    /// The conclusion in a sentence or two. The first sentence names the cause and becomes the
    /// verdict if this finding comes first.
    pub text: String,
    /// The id of the finding that causes this one, if that was found too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows_from: Option<String>,
    /// The machines of a fleet at which it happened. Empty if it is not known, and for a run of one
    /// machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
}

impl Finding {
    /// Returns a finding that is certain and stopped something, with no evidence and no remedy yet.
    pub fn new(id: &str, side: Side, text: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            side,
            severity: Severity::Stopped,
            evidence: Vec::new(),
            confidence: 1.0,
            remedy: String::new(),
            text: text.into(),
            follows_from: None,
            machines: Vec::new(),
        }
    }

    /// Sets the effect on the run.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Returns the first sentence, without the full stop. A full stop between backticks does not
    /// end it.
    pub fn first_sentence(&self) -> &str {
        let quotes = |at: usize| self.text[..at].matches('`').count();
        let ends = self.text.match_indices(". ").map(|(at, _)| at);
        let end = ends.into_iter().find(|at| quotes(*at) % 2 == 0).unwrap_or(self.text.len());
        self.text[..end].trim_end_matches('.')
    }

    /// Reports whether the first sentence names the machines.
    pub fn says_machines(&self) -> bool {
        let (text, names) = (self.first_sentence(), listed(&self.machines));
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let ends = |beside: Option<char>| !beside.is_some_and(is_of_name);
        !self.machines.is_empty()
            && text.match_indices(&names).any(|(at, _)| {
                let (before, after) = (&text[..at], &text[at + names.len()..]);
                ends(before.chars().next_back()) && ends(after.chars().next())
            })
    }

    /// Returns the time at which the first of its counters moved, in milliseconds since the run
    /// began.
    pub fn began_ms(&self) -> Option<u64> {
        self.evidence.iter().map(|evidence| evidence.at_ms).min()
    }

    /// Adds a counter that shows the finding.
    #[must_use]
    pub fn shown_by(mut self, counter: &str, from: f64, to: f64, at_ms: u64) -> Self {
        self.evidence.push(Evidence { counter: counter.to_owned(), from, to, at_ms });
        self
    }

    /// Adds counters that show the finding.
    #[must_use]
    pub fn with_evidence<E: Into<Evidence>>(
        mut self,
        evidence: impl IntoIterator<Item = E>,
    ) -> Self {
        self.evidence.extend(evidence.into_iter().map(Into::into));
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn remedied_by(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Sets the confidence, 0 to 1.
    #[must_use]
    pub fn with_confidence(mut self, confidence: f64) -> Self {
        self.confidence = confidence.clamp(0.0, 1.0);
        self
    }
}

/// The side of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The program under test.
    Server,
    /// The generator or its machine.
    Client,
    /// A limit or a queue of the operating system.
    Kernel,
    /// The path between the machines.
    Network,
}

/// The effect of a cause on the run. Ordered from least to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No effect yet: the next limit.
    Noted,
    /// Something was late, or data was retransmitted.
    Slowed,
    /// Connections or messages failed, or the numbers cannot be trusted.
    #[default]
    Stopped,
}

/// A counter that moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The counter's name as in the run file, `TcpExt.ListenOverflows`.
    pub counter: String,
    /// The counter's value before.
    pub from: f64,
    /// The counter's value after.
    pub to: f64,
    /// The time of the change, in milliseconds since the run began.
    pub at_ms: u64,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Kernel => "kernel",
            Self::Network => "network",
        })
    }
}

/// Writes the conclusion, then the evidence and the remedy, each on an indented line. If the
/// finding follows from another one, that one's remedy helps.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.side, self.text)?;
        if !self.machines.is_empty() && !self.says_machines() {
            write!(f, " It was at {}.", listed(&self.machines))?;
        }
        if self.confidence < 1.0 {
            write!(f, " (confidence {:.0} %)", self.confidence * 100.0)?;
        }
        for Evidence { counter, from, to, at_ms } in &self.evidence {
            // Counters are whole numbers. Costs and shares are not, and three decimal places are
            // enough.
            let [from, to] = [from, to].map(|value| (value * 1000.0).round() / 1000.0);
            let before = if from == to { String::new() } else { format!("{from} -> ") };
            write!(f, "\n  {counter}: {before}{to} at {:.1} s", *at_ms as f64 / 1000.0)?;
        }
        match &self.follows_from {
            Some(cause) => write!(f, "\n  follows from {cause}"),
            None if self.remedy.is_empty() => Ok(()),
            None => write!(f, "\n  do: {}", self.remedy),
        }
    }
}

/// Returns names in a list, the first few if there are many.
pub fn listed(names: &[String]) -> String {
    let shown = &names[..names.len().min(LISTED_MAX)];
    match (names.len() - shown.len(), shown) {
        (0, [one]) => one.clone(),
        (0, [first @ .., last]) => format!("{} and {last}", first.join(", ")),
        (others, _) => format!("{} and {others} more", shown.join(", ")),
    }
}

/// Names that a list shows.
const LISTED_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use crate::Metric;

    use super::*;

    #[test]
    fn a_quotation_does_not_end_the_first_sentence() {
        let sentence =
            |text: &str| Finding::new("x", Side::Server, text).first_sentence().to_owned();
        assert_eq!(sentence("It came. It went."), "It came");
        assert_eq!(sentence("It said `No. Never.`. It went."), "It said `No. Never.`");
        assert_eq!(sentence("It said `No"), "It said `No");
    }

    #[test]
    fn machines_that_the_first_sentence_names_are_not_told_again() {
        let shown = |text: &str| {
            let machines = vec!["a1".to_owned()];
            Finding { machines, ..Finding::new("x", Side::Client, text) }.to_string()
        };
        assert_eq!(
            shown("The machine a1 (1 of 4) was slow."),
            "[client] The machine a1 (1 of 4) was slow."
        );
        assert_eq!(shown("So was a12."), "[client] So was a12. It was at a1.");
        assert_eq!(shown("So was a1-2."), "[client] So was a1-2. It was at a1.");
        assert_eq!(shown("So was eu_a1."), "[client] So was eu_a1. It was at a1.");
        assert_eq!(shown("No. Was it a1?"), "[client] No. Was it a1? It was at a1.");
    }

    #[test]
    fn a_finding_reads_as_sentence_evidence_remedy() {
        let finding =
            Finding::new("accept_queue_overflow", Side::Kernel, "The accept queue overflowed.")
                .shown_by(Metric::TCPEXT_LISTEN_OVERFLOWS.name(), 0.0, 311.0, 4_200)
                .with_confidence(0.9)
                .remedied_by("throng serve ok --backlog 4096");
        assert_eq!(
            finding.to_string(),
            "[kernel] The accept queue overflowed. (confidence 90 %)\n  \
             TcpExt.ListenOverflows: 0 -> 311 at 4.2 s\n  do: throng serve ok --backlog 4096"
        );
        let stayed = finding.clone().shown_by("load.counters.users_waiting", 28.0, 28.0, 9_000);
        assert!(stayed.to_string().contains("\n  load.counters.users_waiting: 28 at 9.0 s"));
        let json = serde_json::to_string(&finding).unwrap();
        assert_eq!(serde_json::from_str::<Finding>(&json).unwrap(), finding);
        let follows = Finding { follows_from: Some("backlog_clamped".into()), ..finding };
        assert!(follows.to_string().ends_with("at 4.2 s\n  follows from backlog_clamped"));
    }
}
