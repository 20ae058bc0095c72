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
}
