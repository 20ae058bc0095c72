//! Times in which the server was away, and came back.

use throng_report::RunEventKind;

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
        }
    }
    found.extend(open);
    found.retain(|away| is_away(run, away));
    found
}

/// Reports whether the server served no user in that time: it refused connects, or its process
/// ended.
fn is_away(run: &RunView<'_>, away: &Absence) -> bool {
    let near = away.from_ms.saturating_sub(NEAR_MS)..=away.to_ms.unwrap_or(u64::MAX);
    let ended = events(run).any(|(at_ms, kind)| {
        matches!(kind, RunEventKind::ServerProcessEnded { .. }) && near.contains(&at_ms)
    });
    away.refused > 0 || (ended && away.lost > 0)
}

/// Returns the events while the load was on, with their times.
pub(crate) fn events<'a>(run: &RunView<'a>) -> impl Iterator<Item = (u64, &'a RunEventKind)> {
    let events = run.samples().iter().flat_map(|sample| &sample.interval.events);
    events.map(|event| (event.at_ms, &event.kind))
}

/// Returns the connections that the server ended.
pub(crate) fn lost(sample: &Sample) -> u64 {
    let is_lost = |kind: &str| {
        kind == "closed_by_peer" || kind == "reset_by_peer" || kind.starts_with("ws_close_")
    };
    let errors = sample.load().into_iter().flat_map(|load| &load.errors.0);
    errors.filter(|(kind, _)| is_lost(kind)).map(|(_, count)| count).sum()
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
