//! What a whole run comes to: the verdict, and the findings behind it.

use serde::{Deserialize, Serialize};

use crate::Finding;

/// The conclusion of a run. The rules that come to it are in `throng-doctor`; renderers only show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Diagnosis {
    /// One sentence: what stopped it, on which side, at what load, what to do; or that nothing did, and the headroom.
    pub verdict: String,
    /// What was found, the most important first.
    pub findings: Vec<Finding>,
    /// What could not be looked at, and why.
    pub unseen: Vec<String>,
}

impl Diagnosis {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
