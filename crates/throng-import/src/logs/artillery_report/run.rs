//! What Artillery has counted so far, and the interval of a period.

use std::collections::BTreeMap;

use throng_measure::{LatencyStats, LoadInterval, Merge, STEP_NAMES_MAX, StepInterval};

use super::Period;
use super::metric::{CounterUse, SummaryUse};

/// The run so far.
#[derive(Debug, Default)]
pub(super) struct ArtilleryRun {
    /// Counters since the run began.
    load: LoadInterval,
    requests: u64,
    responses: u64,
    /// The number of values of each step since the run began, in the order of the report.
    steps: Vec<(String, u64)>,
    /// Statistics since the last interval.
    stats: BTreeMap<String, LatencyStats>,
}

impl ArtilleryRun {
    /// Returns the statistics of the whole run.
    pub(super) fn whole(aggregate: &Period) -> BTreeMap<String, LatencyStats> {
        let mut run = Self::default();
        run.add(aggregate);
        run.stats
    }

    pub(super) fn add(&mut self, period: &Period) {
        for (name, value) in &period.counters {
            self.count(CounterUse::of(name), value.unwrap_or(0.0) as u64);
        }
        for (name, stats) in &period.summaries {
            let Some(stats) = stats.known() else { continue };
            let latency = match SummaryUse::of(name) {
                SummaryUse::Http => "http".to_owned(),
                SummaryUse::Message => {
                    let counters = &mut self.load.counters;
                    counters.messages_answered =
                        counters.messages_answered.saturating_add(stats.count);
                    counters.messages_expected = counters.messages_answered;
                    "message".to_owned()
                }
                SummaryUse::Step(step) => {
                    let known = self.steps.iter().position(|(it, _)| it == step);
                    match known {
                        Some(at) => self.steps[at].1 = self.steps[at].1.saturating_add(stats.count),
                        None if self.steps.len() >= STEP_NAMES_MAX => continue,
                        None => self.steps.push((step.to_owned(), stats.count)),
                    }
                    format!("step.{step}")
                }
                SummaryUse::PartOfRequest | SummaryUse::Unknown => continue,
            };
            self.stats.entry(latency).or_default().merge(&stats);
        }
    }

    /// Returns the interval of the periods since the last one.
    pub(super) fn interval(&mut self, phase: &str, is_last: bool) -> LoadInterval {
        let counters = &mut self.load.counters;
        let ended = counters.users_finished.saturating_add(counters.users_failed);
        let open = counters.users_started.saturating_sub(ended);
        if is_last {
            counters.users_cut = open;
            counters.http_failed = self.requests.saturating_sub(self.responses);
        }
        counters.users_active = if is_last { 0 } else { open };
        counters.iterations = ended.saturating_add(open);
        counters.http_started = self.requests.max(self.responses);
        counters.http_ok = self.responses;
        let mut load = self.load.without_measured();
        phase.clone_into(&mut load.phase);
        load.latency_stats = std::mem::take(&mut self.stats);
        for (name, ok) in &self.steps {
            let (name, ok) = (name.clone(), *ok);
            load.steps.push(StepInterval { name, ok, ..StepInterval::default() });
        }
        load
    }

    fn count(&mut self, of: CounterUse<'_>, n: u64) {
        let Self { load, requests, responses, .. } = self;
        let LoadInterval { counters, core, .. } = load;
        let add = |counter: &mut u64| *counter = counter.saturating_add(n);
        match of {
            CounterUse::Created => {
                add(&mut counters.users_intended);
                add(&mut counters.users_started);
            }
            CounterUse::Completed => add(&mut counters.users_finished),
            CounterUse::Failed => add(&mut counters.users_failed),
            CounterUse::Skipped if n > 0 => load.errors.add("vusers.skipped", n),
            CounterUse::Requests => add(requests),
            CounterUse::Responses => add(responses),
            CounterUse::BytesReceived => add(&mut core.bytes_received),
            CounterUse::MessagesSent => add(&mut counters.messages_sent),
            CounterUse::MessagesReceived => add(&mut counters.messages_received),
            CounterUse::Error(error) if n > 0 => load.errors.add(error, n),
            CounterUse::Status(status) => {
                match status.as_bytes().first() {
                    Some(b'2') => add(&mut counters.http_2xx),
                    Some(b'3') => add(&mut counters.http_3xx),
                    Some(b'4') => add(&mut counters.http_4xx),
                    Some(b'5'..=b'9') => add(&mut counters.http_5xx),
                    _ => {}
                }
                load.http_statuses.add(status, n);
            }
            CounterUse::Error(_) | CounterUse::Skipped | CounterUse::Unused => {}
        }
    }
}
