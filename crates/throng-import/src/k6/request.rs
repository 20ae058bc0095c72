//! An HTTP request of a script, to which later statements add what its answer must be.

use throng_load::scenario::HeaderPlace;

use crate::request::Request;
use crate::source::Span;
use crate::yaml::Yaml;

/// A request, or what the parameters of a session say: it has no method.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptRequest {
    pub(super) span: Span,
    pub(super) step: Request,
    /// The variable that holds its answer.
    pub(super) variable: Option<String>,
    /// Whether a session offers compression.
    pub(super) deflates: bool,
    pub(super) comments: Vec<String>,
}

impl ScriptRequest {
    /// Returns what the headers are sent with.
    pub(super) fn header_place(&self) -> HeaderPlace {
        if self.is_session() { HeaderPlace::Upgrade } else { HeaderPlace::Request }
    }

    pub(super) fn is_session(&self) -> bool {
        self.step.method.is_empty()
    }

    /// Returns the step.
    pub(super) fn write(&self) -> Yaml {
        self.step.write().comments(&self.comments)
    }
}
