//! What k6 has counted so far, and the interval of a second.

use std::collections::BTreeMap;

use throng_measure::{LoadInterval, Operation, StepInterval};

use super::super::known_latency::KnownLatency;
use super::line::Point;
use super::metric::{MetricNames, MetricUse};

/// The run so far.
#[derive(Debug)]
pub(super) struct K6Run {
    names: MetricNames,
    /// Counters since the run began, and histograms of the interval.
    load: LoadInterval,
    /// Values of steps in the interval, by the number of their name.
    steps: BTreeMap<usize, KnownLatency>,
    /// The number of values of each step since the run began, in the order of the log.
    done: Vec<(usize, u64)>,
}

impl K6Run {
    pub(super) fn new(names: MetricNames) -> Self {
        let load = LoadInterval::default();
        Self { names, load, steps: BTreeMap::new(), done: Vec::new() }
    }

    /// Adds a point of the interval.
    pub(super) fn add(&mut self, &Point { metric, value, .. }: &Point) {
        let counters = &mut self.load.counters;
        let add = |counter: &mut u64, n: u64| *counter = counter.saturating_add(n);
        let (n, us) = (value.round() as u64, (value * 1_000.0).round() as u64);
        let text = |number: usize| self.names.texts[number].as_str();
        match metric {
            MetricUse::Users => counters.users_active = n,
            MetricUse::Iterations => {
                for counter in [
                    &mut counters.users_intended,
                    &mut counters.users_started,
                    &mut counters.iterations,
                    &mut counters.users_finished,
                ] {
                    add(counter, n);
                }
            }
            MetricUse::DroppedIterations => add(&mut counters.users_intended, n),
            MetricUse::BytesSent => add(&mut self.load.core.bytes_sent, n),
            MetricUse::BytesReceived => add(&mut self.load.core.bytes_received, n),
            MetricUse::FailedCheck if value == 0.0 => self.load.errors.add("check_failed", 1),
            MetricUse::FailedCheck | MetricUse::Unused => {}
            MetricUse::Request(status) => {
                add(&mut counters.http_started, n);
                add(&mut counters.http_ok, n);
                answered(&mut self.load, text(status), n);
            }
            MetricUse::FailedRequest(status, error) => {
                add(&mut counters.http_started, n);
                add(&mut counters.http_failed, n);
                self.load.errors.add(text(error), n);
                if let Some(status) = status {
                    answered(&mut self.load, text(status), n);
                }
            }
            MetricUse::FailedConnectOfRequest(reason) => {
                for counter in [
                    &mut counters.http_started,
                    &mut counters.http_failed,
                    &mut counters.http_connects_failed,
                    &mut counters.connects_started,
                    &mut counters.connects_failed,
                ] {
                    add(counter, n);
                }
                self.load.connect_failed.add(text(reason), n);
            }
            MetricUse::RequestDuration => self.load.times[Operation::Http].record_us(us),
            MetricUse::ConnectOfRequest if value > 0.0 => {
                counters.http_connects += 1;
                counters.connects_started += 1;
                counters.connects_ok += 1;
                self.load.times[Operation::Connect].record_us(us);
            }
            MetricUse::ConnectOfRequest => {}
            MetricUse::WebSocketConnect => {
                counters.connects_started += 1;
                counters.connects_ok += 1;
                self.load.times[Operation::Connect].record_us(us);
            }
            MetricUse::FailedConnect(reason) => {
                counters.connects_started += 1;
                counters.connects_failed += 1;
                self.load.connect_failed.add(text(reason), 1);
            }
            MetricUse::MessagesSent => add(&mut counters.messages_sent, n),
            MetricUse::MessagesReceived => add(&mut counters.messages_received, n),
            MetricUse::Step(name) => {
                let is_long = self.names.long.contains(&name);
                self.steps.entry(name).or_default().add_ms(value, is_long);
                match self.done.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, done)) => *done += 1,
                    None => self.done.push((name, 1)),
                }
            }
        }
    }

    /// Returns the interval of the points since the last one.
    pub(super) fn interval(&mut self, phase: &str) -> LoadInterval {
        let mut load = self.load.without_measured();
        phase.clone_into(&mut load.phase);
        load.times[Operation::Connect] = std::mem::take(&mut self.load.times[Operation::Connect]);
        load.times[Operation::Http] = std::mem::take(&mut self.load.times[Operation::Http]);
        let mut values = std::mem::take(&mut self.steps);
        for (number, done) in &self.done {
            let name = self.names.texts[*number].clone();
            let KnownLatency { histogram, stats } = values.remove(number).unwrap_or_default();
            if stats.count > 0 {
                load.latency_stats.insert(format!("step.{name}"), stats);
            }
            let (ok, latency) = (*done, histogram);
            load.steps.push(StepInterval { name, ok, latency, ..StepInterval::default() });
        }
        load
    }
}

/// Counts an answer by its status.
fn answered(load: &mut LoadInterval, status: &str, n: u64) {
    let counters = &mut load.counters;
    let class = match status.as_bytes().first() {
        Some(b'2') => &mut counters.http_2xx,
        Some(b'3') => &mut counters.http_3xx,
        Some(b'4') => &mut counters.http_4xx,
        Some(b'5'..=b'9') => &mut counters.http_5xx,
        _ => return,
    };
    *class = class.saturating_add(n);
    load.http_statuses.add(status, n);
}
