//! The metrics of k6, and what each becomes.

use std::collections::{BTreeMap, BTreeSet};

use throng_measure::{ErrorKind, STEP_NAMES_MAX};

use super::super::counted_lines::{fate_of, not_supported, translated};
use super::line::Tags;
use crate::fidelity::Fidelity;
use crate::row::Row;

/// What a point becomes. Names are numbers of [`MetricNames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricUse {
    Users,
    Iterations,
    DroppedIterations,
    BytesSent,
    BytesReceived,
    FailedCheck,
    /// A request that was answered as expected, with its status.
    Request(usize),
    /// A request that failed: the status of its answer, if there is one, and the kind of its error.
    FailedRequest(Option<usize>, usize),
    /// A request whose connect failed, with the reason.
    FailedConnectOfRequest(usize),
    RequestDuration,
    ConnectOfRequest,
    WebSocketConnect,
    /// A connect that failed, with the reason.
    FailedConnect(usize),
    MessagesSent,
    MessagesReceived,
    /// A duration of a step.
    Step(usize),
    /// Nothing.
    Unused,
}

/// The metrics of a file.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// The type and the content of each declared metric.
    declared: BTreeMap<String, (String, String)>,
    texts: BTreeMap<String, usize>,
    steps: BTreeSet<usize>,
    /// The steps that have values longer than a histogram.
    long: BTreeSet<usize>,
}

/// The texts of statuses, reasons and steps.
#[derive(Debug, Default)]
pub(super) struct MetricNames {
    pub(super) texts: Vec<String>,
    /// The steps that have values longer than a histogram.
    pub(super) long: BTreeSet<usize>,
}

impl Metrics {
    /// Keeps what the line of a metric says of it.
    pub(super) fn declare(&mut self, name: &str, kind: Option<&str>, contains: Option<&str>) {
        let texts = [kind, contains].map(|text| text.unwrap_or_default().to_owned());
        let [kind, contains] = texts;
        self.declared.insert(name.to_owned(), (kind, contains));
    }

    pub(super) fn names(&mut self) -> MetricNames {
        let mut texts = vec![String::new(); self.texts.len()];
        for (text, number) in std::mem::take(&mut self.texts) {
            texts[number] = text;
        }
        MetricNames { texts, long: std::mem::take(&mut self.long) }
    }

    /// Keeps statistics of a step in place of its histograms. Returns whether that is new.
    pub(super) fn keep_statistics(&mut self, step: usize) -> bool {
        self.long.insert(step)
    }

    /// Returns what a point becomes, and what the report says of its metric.
    pub(super) fn of(&mut self, name: &str, tags: &Tags<'_>) -> (MetricUse, (Fidelity, String)) {
        let metric = match name {
            "vus" => MetricUse::Users,
            "iterations" => MetricUse::Iterations,
            "dropped_iterations" => MetricUse::DroppedIterations,
            "data_sent" => MetricUse::BytesSent,
            "data_received" => MetricUse::BytesReceived,
            "checks" => MetricUse::FailedCheck,
            "http_reqs" => self.request(tags),
            "http_req_duration" if is_expected(tags) => MetricUse::RequestDuration,
            "http_req_connecting" => MetricUse::ConnectOfRequest,
            "ws_connecting" => self.connect(tags),
            "ws_msgs_sent" => MetricUse::MessagesSent,
            "ws_msgs_received" => MetricUse::MessagesReceived,
            "ws_session_duration" => return self.step("session"),
            "ws_ping" => return self.step("ping"),
            "iteration_duration" => return self.step("iteration"),
            "grpc_req_duration" => return self.step("grpc"),
            "group_duration" => {
                let group = tags.group.as_deref().unwrap_or_default();
                return self.step(&group.trim_start_matches("::").replace("::", " / "));
            }
            name if Row::of(METRICS, name).is_some() => MetricUse::Unused,
            name => return self.own_metric(name),
        };
        (metric, fate_of(METRICS, name))
    }

    /// Returns what a metric of the script's own becomes.
    fn own_metric(&mut self, name: &str) -> (MetricUse, (Fidelity, String)) {
        let declared = self.declared.get(name);
        let why = match declared.map(|(kind, contains)| (kind.as_str(), contains.as_str())) {
            Some(("trend", "time")) if STEPS.contains(&name) => {
                return self.step(&format!("trend {name}"));
            }
            Some(("trend", "time")) => return self.step(name),
            Some(("trend", _)) => "the log does not say that this trend is a time",
            Some(_) => "a run file has no place for a script's counters",
            None => "the log does not declare this metric",
        };
        (MetricUse::Unused, not_supported(why))
    }

    fn request(&mut self, tags: &Tags<'_>) -> MetricUse {
        let status = status(tags);
        let number = status.map(|status| self.text(&status.to_string()));
        let code = tags.error_code.as_deref().unwrap_or_default();
        match (is_expected(tags), number, status) {
            (true, Some(number), _) => MetricUse::Request(number),
            (_, Some(number), Some(status)) => MetricUse::FailedRequest(
                Some(number),
                self.text(&ErrorKind::HttpStatus.with(status)),
            ),
            _ => match connect_failure(code) {
                Some(reason) => MetricUse::FailedConnectOfRequest(self.text(&reason)),
                None if code.is_empty() => MetricUse::FailedRequest(None, self.text("k6_error")),
                None => MetricUse::FailedRequest(None, self.text(&format!("k6_error_{code}"))),
            },
        }
    }

    fn connect(&mut self, tags: &Tags<'_>) -> MetricUse {
        match tags.status.as_deref() {
            None | Some("101") => MetricUse::WebSocketConnect,
            Some("" | "0") => MetricUse::FailedConnect(self.text("unknown")),
            Some(status) => {
                MetricUse::FailedConnect(self.text(&ErrorKind::UpgradeStatus.with(status)))
            }
        }
    }

    fn step(&mut self, name: &str) -> (MetricUse, (Fidelity, String)) {
        let name = if name.is_empty() { "group" } else { name };
        let number = self.text(name);
        if !self.steps.contains(&number) && self.steps.len() >= STEP_NAMES_MAX {
            let why = "a run file has room for 64 names of steps";
            return (MetricUse::Unused, not_supported(why));
        }
        self.steps.insert(number);
        (MetricUse::Step(number), translated())
    }

    fn text(&mut self, text: &str) -> usize {
        let next = self.texts.len();
        *self.texts.entry(text.to_owned()).or_insert(next)
    }
}

/// Returns the status of an answer; `None` if there was none.
fn status(tags: &Tags<'_>) -> Option<u16> {
    let status = tags.status.as_deref()?.parse().ok()?;
    (status >= 100).then_some(status)
}

/// Reports whether k6 counts the answer as expected; where the log does not say it, as k6 does
/// without a callback of the script.
fn is_expected(tags: &Tags<'_>) -> bool {
    match tags.expected_response.as_deref() {
        Some(expected) => expected == "true",
        None => status(tags).is_some_and(|status| (200..400).contains(&status)),
    }
}

/// Returns the reason of a connect that failed, by k6's number of it.
fn connect_failure(code: &str) -> Option<String> {
    let number: u32 = code.parse().ok()?;
    match number {
        1211 => Some("timeout".to_owned()),
        1212 => Some("ECONNREFUSED".to_owned()),
        1100..1200 | 1210 | 1213 => Some(format!("k6_{code}")),
        _ => None,
    }
}

/// Names of steps that k6's own metrics have.
const STEPS: [&str; 5] = ["session", "ping", "iteration", "grpc", "group"];

/// Metrics of k6's own that a run file has in part, or not at all.
const METRICS: &[Row] = rows! {
    "vus_max" Approximated "" => "the most of it, as the users of the plan";
    "iterations" Approximated "" =>
        "an iteration is an arrival that finished; those that were cut off are in no line";
    "dropped_iterations" Approximated "" => "an arrival that did not start";
    "checks" Approximated "" => "a check that failed is an error, check_failed";
    "http_req_duration" Approximated "" =>
        "the durations of expected answers; a failed request is an error";
    "http_req_connecting" Approximated "" => "a value above zero is a new connection";
    "http_req_failed" NotNeeded "" => "http_reqs says which requests failed";
    "http_req_blocked" "http_req_looking_up" "http_req_tls_handshaking" "http_req_sending"
        "http_req_waiting" "http_req_receiving" NotNeeded "" =>
        "a part of http_req_duration or before it";
    "ws_msgs_received" Approximated "" => "k6 does not say which messages are answers";
    "ws_sessions" NotNeeded "" => "ws_connecting has a value for each";
};
