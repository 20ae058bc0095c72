//! How many connections the server serves in each interval, and how many wait meanwhile.

use throng_measure::{Endpoint, Metric, Operation};

use crate::history::Sample;
use crate::run_view::RunView;

/// An interval.
pub(super) struct Step {
    pub(super) at_ms: u64,
    /// Connections on which the server has answered.
    pub(super) served: u64,
    /// Users in an iteration.
    pub(super) users: u64,
    /// Users that have started.
    pub(super) started: u64,
    /// Answers in this interval, or users that were let in if they ask nothing.
    pub(super) answers: u64,
    /// Connections established in this interval. Those for HTTP requests count only where there are
    /// no others.
    pub(super) connects: u64,
    /// Waits that were given up in it, on connections that were not served.
    pub(super) gave_up: u64,
    /// Connections that the server closed in it, before it had answered on them.
    pub(super) closed: u64,
    /// Connections in the accept queues, and the listeners: all, and those that have a queue while
    /// others of their address have none.
    pub(super) queue: Option<u64>,
    pub(super) listeners: Option<u64>,
    pub(super) behind: Option<u64>,
    /// Accepted connections that the server does not read.
    pub(super) unread: Option<u64>,
}

impl Step {
    pub(super) fn of(run: &RunView<'_>, (before, now): (&Sample, &Sample)) -> Option<Self> {
        let load = &now.load()?.counters;
        let grown = load.since(&before.load()?.counters);
        let asks = load.requests_begun() + load.joins_started > 0;
        let value = |metric| {
            let value = run.value(Endpoint::Server, now, metric)?;
            u64::try_from(value).ok()
        };
        Some(Self {
            at_ms: now.interval.at_ms,
            served: if asks { load.served } else { load.connected },
            users: load.users_active,
            started: load.users_started,
            answers: if asks { grown.requests_answered() + grown.joins_ok } else { load.connected },
            connects: match now.latency(Operation::Connect).count {
                timed if timed > 0 && load.http_started > 0 => timed,
                _ => grown.connects_ok,
            },
            gave_up: grown.timeouts_unserved,
            closed: grown.closed_unserved,
            queue: value(Metric::LISTENER_ACCEPT_QUEUE),
            listeners: value(Metric::LISTENER_COUNT),
            behind: value(Metric::LISTENER_BEHIND),
            unread: value(Metric::LISTENER_UNREAD),
        })
    }

    /// Reports whether connections wait at some of several listeners, and others are served.
    pub(super) fn has_stuck_listener(&self) -> bool {
        let some = self.behind.zip(self.listeners);
        // Sockets that are full, each for itself, are most of them.
        self.answers > 0 && some.is_some_and(|(behind, all)| behind > 0 && behind * 2 <= all)
    }
}

/// Returns the intervals in which the server served as many as it does, and others were `waiting`.
pub(super) fn full(steps: &[Step], waiting: impl Fn(&Step) -> bool) -> Option<&[Step]> {
    let most = steps.iter().map(|step| step.served).max().filter(|most| *most > 0)?;
    let is_full = |step: &Step| step.served * 10 >= most * 9 && waiting(step);
    let begin = steps.iter().position(is_full)?;
    let end = steps.iter().rposition(is_full)? + 1;
    let full = &steps[begin..end];
    let served = median(full.iter().map(|step| step.served));
    let spread = (served as f64 * SPREAD).max(1.0);
    let near = full.iter().filter(|step| step.served.abs_diff(served) as f64 <= spread).count();
    let answers = full.iter().all(|step| step.answers > 0);
    (full.len() >= STEPS_MIN && near * 5 >= full.len() * 4 && answers).then_some(full)
}

/// Reports whether users of several classes have run, who may ask differently.
pub(super) fn has_classes(run: &RunView<'_>) -> bool {
    let classes = run.counted().into_iter().flat_map(|load| load.classes.values());
    classes.filter(|class| class.users_started > 0).count() > 1
}

/// Returns the number of users while it was full. In the closed model, those that rest after an
/// error are users too.
pub(super) fn users(run: &RunView<'_>, full: &[Step]) -> u64 {
    let of = |of: fn(&Step) -> u64| full.iter().map(of).max().unwrap_or(0);
    if run.header.users_planned > 0 { of(|step| step.started) } else { of(|step| step.users) }
}

/// Returns the connections that were established while it was full.
pub(super) fn connects(full: &[Step]) -> u64 {
    full.iter().map(|step| step.connects).sum()
}

/// Returns the most of them, if those who are served stay and only the others come again.
pub(super) fn new_connections_most(full: &[Step]) -> u64 {
    let gave_up: u64 = full.iter().map(|step| step.gave_up).sum();
    let wait = full.iter().map(|step| step.users.saturating_sub(step.served)).max().unwrap_or(0);
    gave_up + gave_up / 2 + wait
}

pub(super) fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// The fewest intervals that show a limit.
pub(super) const STEPS_MIN: usize = 3;

/// How far the served connections of most intervals may be from their median, as a share.
const SPREAD: f64 = 0.05;
