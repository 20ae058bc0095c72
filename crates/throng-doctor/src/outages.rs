//! Times in which the server was away, and came back.

use throng_measure::{Endpoint, ErrorClass, ErrorKey, ErrorKind, ProcessMetric, RunEventKind};

use crate::history::Sample;
use crate::run_view::RunView;

/// A time in which the server was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    /// Start, in milliseconds since the run began: the first lost connection or refused connect.
    pub(crate) from_ms: u64,
    /// Time of the first connect that succeeded again, or `None` if there was none.
    pub(crate) to_ms: Option<u64>,
    /// Connections that were lost.
    pub(crate) lost: u64,
    /// Connects that were refused.
    pub(crate) refused: u64,
}

/// Returns the times in which the server was away: connections were lost, or connects refused,
/// until one succeeded again. A server that closes some connections and accepts others at the same
/// time is not away.
pub(crate) fn outages(run: &RunView<'_>) -> Vec<Absence> {
    let mut found: Vec<Absence> = Vec::new();
    let mut open: Option<Absence> = None;
    for (before, now) in run.steps() {
        let marks = now.load().and_then(|load| load.outage);
        if let Some(from_ms) = marks.and_then(|marks| first(marks.lost_ms, marks.refused_ms)) {
            open.get_or_insert(Absence { from_ms, to_ms: None, lost: 0, refused: 0 });
        }
        let Some(away) = &mut open else { continue };
        away.lost += grown(before, now, lost);
        away.refused += grown(before, now, refused);
        // Refusals after the first successful connect of one core still belong to the outage.
        let back_ms = marks.and_then(|marks| marks.back_ms).filter(|ms| *ms >= away.from_ms);
        if let Some(back_ms) = back_ms {
            away.to_ms = Some(back_ms);
            found.extend(open.take());
            // It went away again in the same interval, whose losses count with the first time.
            let again = marks.and_then(|marks| marks.lost_ms).filter(|ms| *ms > back_ms);
            open = again.map(|from_ms| Absence { from_ms, to_ms: None, lost: 0, refused: 0 });
        }
    }
    found.extend(open);
    found.retain(|away| is_away(run, away));
    found
}

/// Reports whether the server served no user in that time: it refused connects, or its process
/// ended.
fn is_away(run: &RunView<'_>, away: &Absence) -> bool {
    let ended = process_ends(run).any(|at_ms| away.is_near(at_ms));
    let worker_ended = || worker_ends(run).iter().any(|end| away.is_of(end));
    away.refused > 0 || (away.lost > 0 && (ended || worker_ended()))
}

impl Absence {
    /// Reports whether something at `at_ms` belongs to this time. The end of a process is noticed a
    /// moment later than the loss of its connections, or earlier. A supervisor that holds the
    /// listener takes new connections at once.
    pub(crate) fn is_near(&self, at_ms: u64) -> bool {
        let end_ms = self.to_ms.map_or(u64::MAX, |to_ms| to_ms.max(self.from_ms + NEAR_MS));
        (self.from_ms.saturating_sub(NEAR_MS)..=end_ms).contains(&at_ms)
    }

    /// Reports whether the end of a worker belongs to this time. It was noticed in the sample after
    /// it.
    pub(crate) fn is_of(&self, end: &WorkerEnd) -> bool {
        let to_ms = self.to_ms.unwrap_or(u64::MAX).max(self.from_ms);
        end.from_ms <= to_ms.saturating_add(NEAR_MS)
            && self.from_ms <= end.at_ms.saturating_add(NEAR_MS)
    }
}

/// Reports whether the server stayed away: it is away at the end, and for longer than it ever was
/// before it came back. A server that ends again and again may be away at the end as well.
pub(crate) fn stays_away(run: &RunView<'_>, all: &[Absence]) -> bool {
    let Some(last) = all.last().filter(|last| last.to_ms.is_none()) else { return false };
    let longest = all.iter().filter_map(|away| Some(away.to_ms? - away.from_ms)).max();
    let end_ms = run.samples().last().map_or(0, |sample| sample.interval.at_ms);
    longest.is_none_or(|longest| end_ms.saturating_sub(last.from_ms) > longest + NEAR_MS)
}

/// Returns the moments at which a process of the server ended.
pub(crate) fn process_ends<'a>(run: &RunView<'a>) -> impl Iterator<Item = u64> + 'a {
    let ends =
        events(run).filter(|(_, kind)| matches!(kind, RunEventKind::ServerProcessEnded { .. }));
    ends.map(|(at_ms, _)| at_ms)
}

/// The end of a worker of the server, whose listener stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerEnd {
    /// The sample before.
    pub(crate) from_ms: u64,
    /// The sample in which it was noticed.
    pub(crate) at_ms: u64,
    pub(crate) pid: u32,
}

/// Returns the ends of workers. A server with a process for each connection has none: there, each
/// process ends with its connection.
pub(crate) fn worker_ends(run: &RunView<'_>) -> Vec<WorkerEnd> {
    let ended = run.growth(Endpoint::Server, ProcessMetric::PROCESSES_ENDED.server);
    let ended = ended.map_or(0, |growth| growth.by());
    if ended.saturating_mul(CONNECTS_TIMES) > run.summary.connect.ok {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (before, now) in run.steps() {
        let pids = now.interval.events.iter().filter_map(|event| match &event.kind {
            RunEventKind::ServerWorkerEnded { pid, .. } => Some(*pid),
            _ => None,
        });
        let (from_ms, at_ms) = (before.interval.at_ms, now.interval.at_ms);
        found.extend(pids.map(|pid| WorkerEnd { from_ms, at_ms, pid }));
    }
    found
}

/// Returns the events while the load was on, with their times.
pub(crate) fn events<'a>(
    run: &RunView<'a>,
) -> impl Iterator<Item = (u64, &'a RunEventKind)> + use<'a> {
    let events = run.samples().iter().flat_map(|sample| &sample.interval.events);
    events.map(|event| (event.at_ms, &event.kind))
}

/// Returns the connections that the server ended.
pub(crate) fn lost(sample: &Sample) -> u64 {
    let is_lost = |kind| ErrorKey::parse(kind).is(ErrorClass::Ended);
    let Some(load) = sample.load() else { return 0 };
    let open = load.errors.0.iter().filter(|(kind, _)| is_lost(kind)).map(|(_, count)| count);
    let upgrades =
        [ErrorKind::UpgradeClosed.name(), "ECONNRESET"].map(|kind| load.connect_failed.get(kind));
    open.sum::<u64>() + upgrades.iter().sum::<u64>()
}

/// Returns the connects that were refused.
fn refused(sample: &Sample) -> u64 {
    sample.load().map_or(0, |load| load.connect_failed.get("ECONNREFUSED"))
}

/// Returns the growth of a value over an interval.
fn grown(before: &Sample, now: &Sample, of: fn(&Sample) -> u64) -> u64 {
    of(now).saturating_sub(of(before))
}

/// Returns the earlier of two times.
fn first(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// The longest time between the end of a process and the loss of its connections, in either order.
const NEAR_MS: u64 = 1_000;

/// How many times as many connects as ends of workers there are at least.
const CONNECTS_TIMES: u64 = 2;
