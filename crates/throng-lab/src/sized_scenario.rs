//! A lab's scenario in its size for this machine.

use throng_load::scenario::{Params, Quantity, Scenario};

/// A scenario whose parameters have their values for this machine.
pub(crate) struct SizedScenario {
    /// The text of the file, with other values for its parameters.
    pub(crate) text: String,
    pub(crate) scenario: Scenario,
    /// All names that an expression of the lab may use, and their values; the last one counts.
    pub(crate) params: Params,
}

impl SizedScenario {
    /// Returns the value of the parameter `name`; 0 without one.
    pub(crate) fn param(&self, name: &str) -> f64 {
        find(&self.params, name).and_then(|value| value.value()).unwrap_or(0.0)
    }

    /// Returns the length of the load, in whole seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.scenario.load.length().as_secs()
    }

    /// Returns the target with `@` for the server's address.
    pub(crate) fn target(&self) -> String {
        let target = self.scenario.target.to_string();
        let (scheme, rest) = target.split_once("://").unwrap_or(("tcp", ""));
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        format!("{scheme}://@{path}")
    }
}

/// Returns the value of `name`: the last of several.
pub(crate) fn find(params: &[(String, Quantity)], name: &str) -> Option<Quantity> {
    params.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}
