//! An HTTP request of a script, to which later statements add what its answer must be.

use std::time::Duration;

use throng_base::units::show_duration;
use throng_load::scenario::HeaderPlace;

use crate::headers::Headers;
use crate::source::Span;
use crate::yaml::Yaml;

/// A request.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) span: Span,
    pub(super) method: &'static str,
    pub(super) path: String,
    /// The variable that holds its answer.
    pub(super) variable: Option<String>,
    pub(super) name: Option<String>,
    pub(super) headers: Headers,
    /// Whether a session offers compression.
    pub(super) deflates: bool,
    pub(super) body: Option<(&'static str, Yaml)>,
    pub(super) statuses: Vec<String>,
    pub(super) pattern: Option<(&'static str, Yaml)>,
    pub(super) captures: Vec<(String, Yaml)>,
    pub(super) timeout: Option<Duration>,
    pub(super) comments: Vec<String>,
}

impl Request {
    /// Returns what the headers are sent with: those of a session have no method.
    pub(super) fn header_place(&self) -> HeaderPlace {
        if self.method.is_empty() { HeaderPlace::Upgrade } else { HeaderPlace::Request }
    }

    /// Returns the step.
    pub(super) fn write(&self) -> Yaml {
        let mut entries = vec![("path", Yaml::text(&*self.path))];
        entries.extend(self.name.as_ref().map(|name| ("name", Yaml::text(&**name))));
        entries.extend(self.headers.write().map(|headers| ("headers", headers)));
        entries.extend(self.body.clone());
        let status = match &*self.statuses {
            [] => None,
            [status] => Some(Yaml::plain(status)),
            statuses => Some(Yaml::list(statuses.iter().map(Yaml::plain))),
        };
        let expect = match (status, self.pattern.clone()) {
            (status, None) => status,
            (None, Some(pattern)) => Some(Yaml::map([pattern])),
            (Some(status), Some(pattern)) => Some(Yaml::map([("status", status), pattern])),
        };
        entries.extend(expect.map(|expect| ("expect", expect)));
        if !self.captures.is_empty() {
            entries.push(("capture", Yaml::map(self.captures.clone())));
        }
        let timeout = self.timeout.map(|timeout| Yaml::plain(show_duration(timeout)));
        entries.extend(timeout.map(|timeout| ("timeout", timeout)));
        let value = if entries.len() == 1 { entries.remove(0).1 } else { Yaml::map(entries) };
        let step = Yaml::entry(self.method, value);
        self.comments.iter().fold(step, |step, comment| step.comment(comment))
    }
}
