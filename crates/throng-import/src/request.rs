//! Requests of HTTP, as a scenario writes them.

use std::time::Duration;

use crate::headers::Headers;
use crate::step;
use crate::yaml::Yaml;

/// A request and what its answer must have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The step that sends it: `get`, `post`.
    pub(crate) method: String,
    /// Path and query, with variables of the scenario.
    pub(crate) path: String,
    pub(crate) name: Option<String>,
    pub(crate) headers: Headers,
    /// `body`, `json` or `form`, and its value.
    pub(crate) body: Option<(&'static str, Yaml)>,
    pub(crate) expect: Expectation,
    /// Names of stored values, and their places in the answer.
    pub(crate) captures: Vec<(String, Yaml)>,
    pub(crate) timeout: Option<Duration>,
}

/// What an answer must have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectation {
    pub(crate) statuses: Vec<String>,
    /// The pattern of the body, by its key: `contains`, `json`, `regex`.
    pub(crate) body: Option<(&'static str, Yaml)>,
}

impl Request {
    /// Returns the step.
    pub(crate) fn write(&self) -> Yaml {
        let text = |text: &String| Yaml::text(text);
        let mut entries = vec![("path", text(&self.path))];
        entries.extend(self.name.as_ref().map(|name| ("name", text(name))));
        entries.extend(self.headers.write().map(|headers| ("headers", headers)));
        entries.extend(self.body.clone());
        entries.extend(self.expect.write().map(|expect| ("expect", expect)));
        entries.extend(step::capture(&self.captures));
        entries.extend(self.timeout.map(step::timeout));
        match &entries[..] {
            [(_, path)] => Yaml::entry(&self.method, path.clone()),
            _ => Yaml::entry(&self.method, Yaml::map(entries)),
        }
    }
}

impl Expectation {
    /// Returns the value of `expect`; `None` if any answer will do.
    fn write(&self) -> Option<Yaml> {
        let status = match &*self.statuses {
            [] => None,
            [status] => Some(Yaml::plain(status)),
            statuses => Some(Yaml::list(statuses.iter().map(Yaml::plain))),
        };
        let Some(body) = self.body.clone() else { return status };
        let status = status.map(|status| ("status", status));
        Some(Yaml::map(status.into_iter().chain([body])))
    }
}
