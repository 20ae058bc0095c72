//! What tsung has counted so far, and the interval of a dump.

use std::collections::BTreeMap;

use throng_measure::{
    CoreCounters, LatencyStats, LoadCounters, LoadInterval, Merge, STEP_NAMES_MAX, StepInterval,
};

use super::super::count::count_of;
use super::super::counted_lines::{CountedLines, approximated, fate_of, not_supported, translated};
use super::line::{Sample, Values};
use crate::fidelity::Fidelity;
use crate::row::Row;
use crate::source::Span;
use crate::translator::Translator;

/// What `request` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Messages over TCP, WebSockets and others.
    Message,
    /// Requests of HTTP.
    Http,
    /// Both: their durations cannot be told apart.
    Both,
}

/// The run so far.
#[derive(Debug)]
pub(super) struct TsungRun {
    requests: RequestKind,
    /// The total of each counter.
    totals: BTreeMap<String, u64>,
    /// The users and the connections at this moment.
    users: u64,
    connected: u64,
    /// Samples by name, in the order of the log.
    samples: Vec<SampleTotal>,
}

/// A sample since the run began.
#[derive(Debug)]
struct SampleTotal {
    name: String,
    total: u64,
    extremes: Option<(f64, f64)>,
    /// Values since the last interval.
    stats: LatencyStats,
}

impl TsungRun {
    pub(super) fn new(requests: RequestKind) -> Self {
        let (totals, samples) = (BTreeMap::new(), Vec::new());
        Self { requests, totals, users: 0, connected: 0, samples }
    }

    /// Adds a line of a dump.
    pub(super) fn add(
        &mut self,
        translator: &mut Translator<'_>,
        lines: &mut CountedLines,
        span: &Span,
        (name, values): &(&str, Values),
    ) {
        match values {
            Values::Pair(..) if is_sample(name) => {
                let label = "a cut line? expected `COUNT MEAN DEVIATION MAX MIN MEAN COUNT`";
                translator.mistake(span, format!("`{name}` has two numbers, and not seven"), label);
            }
            Values::Pair(now, total) => {
                let kind = if is_status(name) { "HTTP status" } else { name };
                lines.add(kind, span, || self.fate_of_counter(name));
                let value = if *name == "users" { *now } else { *total };
                self.count(translator, span, name, value);
            }
            Values::Sample(sample) => {
                let is_new = !self.samples.iter().any(|known| known.name == *name);
                let is_too_many = is_new && self.samples.len() >= STEP_NAMES_MAX;
                lines.add(name, span, || match is_too_many {
                    true => not_supported(TOO_MANY),
                    false => self.fate_of_sample(name),
                });
                if !name.starts_with('{') && !is_too_many {
                    self.sample(translator, lines, span, name, sample);
                }
            }
        }
    }

    /// Returns the interval that ends with the lines so far.
    pub(super) fn interval(&mut self, phase: &str, is_last: bool) -> LoadInterval {
        let mut load = LoadInterval {
            phase: phase.to_owned(),
            counters: self.counters(is_last),
            core: CoreCounters {
                bytes_received: self.total("size_rcv"),
                bytes_sent: self.total("size_sent"),
                ..CoreCounters::default()
            },
            ..LoadInterval::default()
        };
        for (name, total) in &self.totals {
            match name.strip_prefix("error_connect_") {
                Some(reason) => load.connect_failed.add(errno(reason), *total),
                None if is_error(name) => load.errors.add(name, *total),
                None if is_status(name) => load.http_statuses.add(name, *total),
                None => {}
            }
        }
        for sample in &mut self.samples {
            let stats = std::mem::take(&mut sample.stats);
            let latency = match sample.name.as_str() {
                "connect" => "connect".to_owned(),
                "request" if self.requests == RequestKind::Http => "http".to_owned(),
                "request" if self.requests == RequestKind::Message => "message".to_owned(),
                name => {
                    let (name, ok) = (step_name(name), sample.total);
                    let latency = format!("step.{name}");
                    load.steps.push(StepInterval { name, ok, ..StepInterval::default() });
                    latency
                }
            };
            if stats.count > 0 {
                load.latency_stats.insert(latency, stats);
            }
        }
        load
    }

    /// Reports whether tsung stopped users, because the time of its load was over or by request.
    pub(super) fn was_stopped(&self) -> bool {
        self.total("error_abort") > 0
    }

    fn counters(&self, is_last: bool) -> LoadCounters {
        let (began, ended) = (self.total("users_count"), self.total("finish_users_count"));
        let failed = ABORTS.map(|name| self.total(name)).iter().sum::<u64>().min(ended);
        let failed_connects = self.sum_of(|name| name.starts_with("error_connect_"));
        let connects = self.sampled("connect");
        let (requests, statuses) = (self.sampled("request"), self.sum_of(is_status));
        let (http, messages) = match self.requests {
            RequestKind::Message => (0, requests),
            RequestKind::Http => (requests, 0),
            RequestKind::Both => (statuses, requests.saturating_sub(statuses)),
        };
        let class = |digit: char| self.sum_of(|name| is_status(name) && name.starts_with(digit));
        LoadCounters {
            users_intended: began,
            users_started: began,
            iterations: began,
            users_finished: ended - failed,
            users_failed: failed,
            users_cut: if is_last { began.saturating_sub(ended) } else { 0 },
            users_active: self.users,
            connected: self.connected,
            connects_started: connects.saturating_add(failed_connects),
            connects_ok: connects,
            connects_failed: failed_connects,
            messages_sent: messages.saturating_add(self.total("request_noack")),
            messages_expected: messages,
            messages_answered: messages,
            http_started: http,
            http_ok: http,
            http_2xx: class('2'),
            http_3xx: class('3'),
            http_4xx: class('4'),
            http_5xx: class('5'),
            ..LoadCounters::default()
        }
    }

    fn count(&mut self, translator: &mut Translator<'_>, span: &Span, name: &str, value: f64) {
        let is_known = is_counted(name) || is_error(name) || is_status(name);
        if !is_known && !matches!(name, "users" | "connected") {
            return;
        }
        // Connections that were open before tsung counted can make the sum negative.
        let value = if name == "connected" { value.max(0.0) } else { value };
        let Some(total) = count_of(value) else {
            let label = "expected a whole number, not less than zero";
            return translator.mistake(span, format!("`{name}` is no count"), label);
        };
        match name {
            "users" => self.users = total,
            "connected" => self.connected = total,
            name => {
                let before = self.totals.entry(name.to_owned()).or_default();
                if total < *before {
                    let title = format!("the total of `{name}` fell from {before} to {total}");
                    translator.mistake(span, title, TWO_LOGS);
                }
                *before = total;
            }
        }
    }

    fn sample(
        &mut self,
        translator: &mut Translator<'_>,
        lines: &mut CountedLines,
        span: &Span,
        name: &str,
        sample: &Sample,
    ) {
        let known = self.samples.iter().position(|known| known.name == name);
        let at = known.unwrap_or_else(|| {
            let (name, stats) = (name.to_owned(), LatencyStats::default());
            self.samples.push(SampleTotal { name, total: 0, extremes: None, stats });
            self.samples.len() - 1
        });
        let before = &mut self.samples[at];
        if sample.total() < before.total || sample.count_before < before.total {
            let (was, is) = (before.total, sample.count_before);
            let title = format!("`{name}` had {was} values before, and this line says {is}");
            return translator.mistake(span, title, TWO_LOGS);
        }
        if sample.count_before > before.total {
            lines.add("missing dump", span, || {
                let why = "the log lacks a dump before this one: its values count, and no mean and \
                           no extreme of theirs is known";
                (Fidelity::Suspicious, why.to_owned())
            });
        }
        before.total = sample.total();
        if sample.count == 0 {
            return;
        }
        let micros = |ms: f64| ms * 1_000.0;
        // The log has the extremes since the run began: one that moved is of this interval.
        let (min_before, max_before) = before.extremes.unwrap_or((f64::INFINITY, -1.0));
        before.stats.merge(&LatencyStats {
            count: sample.count,
            mean_us: micros(sample.mean),
            deviation_us: Some(micros(sample.deviation)),
            min_us: (sample.min < min_before).then(|| micros(sample.min)),
            max_us: (sample.max > max_before).then(|| micros(sample.max)),
            ..LatencyStats::default()
        });
        before.extremes = Some((sample.min, sample.max));
    }

    fn fate_of_counter(&self, name: &str) -> (Fidelity, String) {
        let is_known = is_counted(name) || is_error(name) || name == "connected";
        match name {
            name if Row::of(COUNTERS, name).is_some() || is_known => fate_of(COUNTERS, name),
            name if is_status(name) => approximated(match self.requests {
                RequestKind::Both => "each is a request of HTTP; the other requests are messages",
                _ => "a status is no error in tsung, and in throng only 2xx is none",
            }),
            _ => not_supported("a run file has no place for this counter; tsung_stats.pl shows it"),
        }
    }

    fn fate_of_sample(&self, name: &str) -> (Fidelity, String) {
        match name {
            "request" if self.requests == RequestKind::Both => approximated(
                "HTTP and other requests share one duration: a step of the name request",
            ),
            name if name.starts_with('{') => not_supported(
                "a load, a share or an amount of a machine whose size the log does not say",
            ),
            _ => translated(),
        }
    }

    fn total(&self, name: &str) -> u64 {
        self.totals.get(name).copied().unwrap_or(0)
    }

    fn sum_of(&self, is_wanted: impl Fn(&str) -> bool) -> u64 {
        let wanted = self.totals.iter().filter(|(name, _)| is_wanted(name));
        wanted.fold(0, |sum, (_, total)| sum.saturating_add(*total))
    }

    fn sampled(&self, name: &str) -> u64 {
        self.samples.iter().find(|sample| sample.name == name).map_or(0, |sample| sample.total)
    }
}

/// Reports whether a counter is the status of an HTTP answer.
pub(super) fn is_status(name: &str) -> bool {
    name.len() == 3 && name.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('0')
}

/// Reports whether tsung writes statistics of this name, and no counter.
fn is_sample(name: &str) -> bool {
    matches!(name, "request" | "connect" | "page" | "session") || name.starts_with("tr_")
}

fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || ABORTS.contains(&name)
}

/// Reports whether a counter is an error that the run file names as tsung does. A user that was
/// given up failed because of errors that are counted already.
fn is_error(name: &str) -> bool {
    let has_name = name.starts_with("error_") || name == "websocket_fail";
    has_name && name != "error_abort" && !ABORTS.contains(&name)
}

/// Returns an errno as throng names it.
fn errno(reason: &str) -> String {
    match reason.starts_with('e') {
        true => reason.to_uppercase(),
        false => reason.to_owned(),
    }
}

/// Returns the name of the step of a sample.
fn step_name(sample: &str) -> String {
    let name = sample.strip_prefix("tr_").unwrap_or(sample);
    match name {
        "" | "page" | "session" | "request" | "connect" => sample.to_owned(),
        name => name.to_owned(),
    }
}

/// Counters of which the run file has the total.
const COUNTED: [&str; 6] =
    ["users_count", "finish_users_count", "size_rcv", "size_sent", "request_noack", "error_abort"];
/// Counters of users that tsung gave up.
const ABORTS: [&str; 2] = ["error_abort_max_conn_retries", "error_abort_max_send_retries"];
const TWO_LOGS: &str = "two logs in one file? Import each by itself";
const TOO_MANY: &str = "a run file has room for 64 names of steps";

/// Counters that the run file has nearly as they are, or does not need.
const COUNTERS: &[Row] = rows! {
    "users" Approximated "" =>
        "the users of the moment; the most at a time, the second column, has no place";
    "finish_users_count" Approximated "" =>
        "a user that tsung gave up (error_abort_max_*) has failed, any other has finished";
    "error_abort" NotNeeded "" => "tsung stopped its users when its time was over";
    "websocket_succ" NotNeeded "" => "the handshakes are among the requests";
    "newphase" NotNeeded "" => "the run file names no phases of tsung";
};
