//! The header fields of a request or of an upgrade.

use std::collections::HashSet;

use throng_load::scenario::HeaderPlace;

use crate::source::Span;
use crate::translator::Translator;
use crate::yaml::Yaml;

/// Header fields as a scenario has them: each name once, whatever the case of its letters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers {
    fields: Vec<(String, Yaml)>,
    /// Their names in small letters.
    names: HashSet<String>,
}

impl Headers {
    /// Reports whether there is a field of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(&name.to_ascii_lowercase())
    }

    /// Adds a field, which takes the place of an earlier one of its name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        if !self.names.insert(name.to_ascii_lowercase()) {
            self.fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        }
        self.fields.push((name.to_owned(), Yaml::text(value)));
    }

    /// Adds a field, unless there is one of its name. Returns whether it has been added.
    pub(crate) fn add(&mut self, name: &str, value: impl Into<String>) -> bool {
        let is_new = !self.has(name);
        if is_new {
            self.set(name, value);
        }
        is_new
    }

    /// Returns the value of the step's `headers`; `None` if there is no field.
    pub(crate) fn write(&self) -> Option<Yaml> {
        (!self.fields.is_empty()).then(|| Yaml::map(self.fields.iter().cloned()))
    }
}

impl Translator<'_> {
    /// Reports whether a scenario can have this field here. If it cannot, says what becomes of it.
    pub(crate) fn may_have_header(
        &mut self,
        span: &Span,
        construct: &str,
        name: &str,
        place: HeaderPlace,
    ) -> bool {
        if !place.excludes(name) {
            return true;
        }
        let remedy = match (name.to_ascii_lowercase().as_str(), place) {
            ("host", _) => "an upgrade names the host of its target: take a target of this name",
            ("sec-websocket-protocol", _) => "write it as `subprotocols` of `connect`",
            ("sec-websocket-extensions", _) => "write `deflate: true` in `connect`",
            (
                "expect" | "te" | "trailer" | "transfer-encoding" | "upgrade",
                HeaderPlace::Request,
            ) => {
                "a request is sent whole, with its length, and stays one of HTTP/1.1: leave the \
                 field out"
            }
            _ => {
                let why = "throng sets this header itself";
                self.not_needed(span, construct, why);
                return false;
            }
        };
        self.not_supported(span, construct, remedy);
        false
    }
}
