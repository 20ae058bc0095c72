//! The diagnosis of a whole run: the verdict, and the findings behind it.

use serde::{Deserialize, Serialize};

use crate::Finding;

/// The conclusion of a run. The rules that reach it are in `throng-doctor`; renderers only show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Diagnosis {
    /// One sentence: the cause that stopped the run, its side, the load at that time and the
    /// remedy; or that nothing stopped it, and the headroom.
    pub verdict: String,
    /// The cause in a sentence, as the first line of a screen; or that there is none. The same as
    /// in the verdict, without what the other members say.
    pub headline: String,
    /// What became of the run and at which load: `Missed: …`. Empty if the headline says it.
    pub effect: String,
    /// What to do about the cause. Empty if there is none.
    pub remedy: String,
    /// Id of the finding that the verdict names as the cause. Absent if the verdict names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The findings, the most important first.
    pub findings: Vec<Finding>,
    /// Sources that could not be read, with reasons.
    pub unseen: Vec<String>,
}

impl Diagnosis {
    /// Reports whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the findings as a list shows them: each names the one that it follows from by its
    /// number, too.
    pub fn numbered(&self) -> impl Iterator<Item = Finding> {
        self.findings.iter().cloned().map(|finding| {
            let follows_from = finding.follows_from.map(|cause| {
                match self.findings.iter().position(|other| other.id == cause) {
                    Some(at) => format!("finding {}, {cause}", at + 1),
                    None => cause,
                }
            });
            Finding { follows_from, ..finding }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Side;

    #[test]
    fn a_finding_in_a_list_names_its_cause_by_its_number() {
        let finding = |id: &'static str, follows_from: Option<&str>| {
            let follows_from = follows_from.map(str::to_owned);
            Finding { follows_from, ..Finding::new(id, Side::Server, "It is so.") }
        };
        let findings = vec![
            finding("cpu_contended", None),
            finding("answers_missing", None),
            finding("server_slow", Some("answers_missing")),
            finding("memory_grows", Some("not_in_the_list")),
        ];
        let diagnosis = Diagnosis { findings, ..Diagnosis::default() };
        let causes: Vec<_> = diagnosis.numbered().map(|finding| finding.follows_from).collect();
        let [slow, grows] = ["finding 2, answers_missing", "not_in_the_list"].map(str::to_owned);
        assert_eq!(causes, [None, None, Some(slow), Some(grows)]);
    }
}
