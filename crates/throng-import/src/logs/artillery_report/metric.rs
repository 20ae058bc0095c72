//! What a metric of Artillery means.

use super::super::counted_lines::{approximated, fate_of, not_needed, not_supported};
use crate::fidelity::Fidelity;
use crate::row::Row;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterUse<'a> {
    Created,
    Completed,
    Failed,
    Skipped,
    Requests,
    Responses,
    Status(&'a str),
    BytesReceived,
    Error(&'a str),
    MessagesSent,
    MessagesReceived,
    Unused,
}

impl<'a> CounterUse<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        match name {
            "vusers.created" => Self::Created,
            "vusers.completed" => Self::Completed,
            "vusers.failed" => Self::Failed,
            "vusers.skipped" => Self::Skipped,
            "http.requests" => Self::Requests,
            "http.responses" => Self::Responses,
            "http.downloaded_bytes" => Self::BytesReceived,
            "websocket.messages_sent" | "socketio.emit" => Self::MessagesSent,
            "websocket.messages_received" => Self::MessagesReceived,
            name => {
                let status = name.strip_prefix("http.codes.").filter(|status| is_status(status));
                let error = name.strip_prefix("errors.").filter(|error| !error.is_empty());
                match (status, error) {
                    (Some(status), _) => Self::Status(status),
                    (_, Some(error)) => Self::Error(error),
                    _ => Self::Unused,
                }
            }
        }
    }

    /// Returns the name in the report of the import, and what becomes of the counter.
    pub(super) fn fate(self, name: &str) -> (&str, (Fidelity, String)) {
        match self {
            Self::Status(_) => {
                let how = "a status is no error in Artillery, and in throng only 2xx is none";
                ("http.codes", approximated(how))
            }
            Self::Unused if name.starts_with("vusers.created_by_name.") => {
                ("vusers.created_by_name", not_needed("the users of vusers.created"))
            }
            Self::Unused => (name, not_supported("a run file has no place for this counter")),
            _ => (name, fate_of(COUNTERS, name)),
        }
    }
}

/// What a summary tells the durations of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SummaryUse<'a> {
    Http,
    Message,
    Step(&'a str),
    PartOfRequest,
    Unknown,
}

impl<'a> SummaryUse<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        match name {
            "http.response_time" => Self::Http,
            "socketio.response_time" => Self::Message,
            "vusers.session_length" => Self::Step("session"),
            name if name.starts_with("http.") => Self::PartOfRequest,
            name => match name.strip_prefix(BY_ENDPOINT) {
                Some(endpoint) if !endpoint.is_empty() => Self::Step(endpoint),
                _ => Self::Unknown,
            },
        }
    }

    pub(super) fn is_used(self) -> bool {
        !matches!(self, Self::PartOfRequest | Self::Unknown)
    }

    pub(super) fn kind(self, name: &str) -> &str {
        if self == Self::PartOfRequest { "parts of http.response_time" } else { name }
    }

    pub(super) fn fate(self) -> (Fidelity, String) {
        match self {
            Self::Http => approximated(
                "until the first byte of an answer of any status, rounded to 0.1 ms; percentiles \
                 are those of a sketch that is exact to 1 %",
            ),
            Self::Message | Self::Step(_) => approximated(
                "rounded to 0.1 ms; percentiles are those of a sketch that is exact to 1 %",
            ),
            Self::PartOfRequest => not_needed("a part of http.response_time, or before it"),
            Self::Unknown => not_supported("its unit is not known"),
        }
    }
}

fn is_status(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0')
}

/// The durations of the plugin metrics-by-endpoint, before the name of the endpoint.
const BY_ENDPOINT: &str = "plugins.metrics-by-endpoint.response_time.";

/// Counters that the run file has nearly as they are.
const COUNTERS: &[Row] = rows! {
    "vusers.skipped" Approximated "" => "an arrival that did not start is an error of this name";
    "http.responses" Approximated "" =>
        "a request that has no answer at the end of the run has failed";
};
