//! Notes about the numbers of a report, one sentence each.

use super::{count, micros, percent};
use crate::LatencySummary;
use crate::summary::{MessageSummary, Summary};
use crate::validity::is_owned;

/// Returns the notes about the report's latencies and costs.
pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let m = &summary.machine;
    let mut notes = Vec::from_iter(unanswered_note(summary));
    notes.extend(clocks_note(summary));
    notes.extend(unrequested_note(summary));
    notes.extend(lateness_note(summary));
    if m.cpu_busy_share.is_some() {
        notes.push(if others_used_more(summary) {
            "Whole machine: everything that ran on it. More than half of that was not this run's, \
             so it is not divided by the run's connects and messages."
                .to_owned()
        } else {
            "Whole machine: everything that ran on it, other programs too.".to_owned()
        });
    }
    if let Some(share) = summary.generator.ceiling_share {
        let used = match share * 100.0 {
            percent if percent < 1.0 => "less than 1 %".to_owned(),
            percent => format!("{percent:.0} %"),
        };
        notes.push(format!("The run used {used} of this generator's capacity."));
    }
    if let Some(stolen) = m.cpu_stolen_share.filter(|share| *share >= 0.01) {
        notes.push(format!("{} of the CPU was stolen by the hypervisor.", percent(stolen)));
    }
    notes
}

/// Explains the rows of unanswered waits, if there are any.
fn unanswered_note(summary: &Summary) -> Option<String> {
    let (connect, message) = (&summary.connect, &summary.message);
    let join = summary.join.clone().unwrap_or_default();
    let push = summary.push.clone().unwrap_or_default();
    let http = summary.http.clone().unwrap_or_default();
    let differs = [
        (connect.latency_us, connect.judged_us),
        (message.latency_us, message.judged_us),
        (join.latency_us, join.judged_us),
        (push.latency_us, push.judged_us),
        (http.latency_us, http.judged_us),
    ]
    .into_iter()
    .chain(summary.steps.iter().map(|step| (step.latency_us, step.judged_us)))
    .any(|(answered, judged)| shown(&answered) != shown(&judged));
    differs.then(|| {
        "+ unanswered: the latency with the waits that no answer ended, because they timed out or \
         the run ended. Each counts with its duration so far; turns of `every` that came due \
         meanwhile are included. Thresholds judge these rows."
            .to_owned()
    })
}

/// Explains the rows of the generator's own clock, if there are any, or that there is no other
/// clock.
fn clocks_note(summary: &Summary) -> Option<String> {
    let (connect, message) = (&summary.connect, &summary.message);
    let join = summary.join.clone().unwrap_or_default();
    let push = summary.push.clone().unwrap_or_default();
    let http = summary.http.clone().unwrap_or_default();
    let broadcast = summary.broadcast.clone().unwrap_or_default();
    let differs = [
        (connect.latency_us, connect.seen_us),
        (message.latency_us, message.seen_us),
        (join.latency_us, join.seen_us),
        (push.latency_us, push.seen_us),
        (http.latency_us, http.seen_us),
        (broadcast.latency_us, broadcast.seen_us),
    ]
    .into_iter()
    .chain(summary.steps.iter().map(|step| (step.latency_us, step.seen_us)))
    .any(|(arrived, seen)| differ(&arrived, &seen));
    let by_own = summary.generator.by_kernels_clock.filter(|share| *share < ALL_BY_KERNEL);
    match by_own {
        Some(share) => Some(format!(
            "The kernel timed the arrival of {} of the answers. The others are timed by the \
             generator, as late as it read them.",
            percent(share)
        )),
        None => differs.then(|| {
            "Latencies end when the answer arrived, by the kernel's clock. As seen: when the busy \
             generator read it."
                .to_owned()
        }),
    }
}

/// The share of arrivals timed by the kernel from which the note leaves out the others.
const ALL_BY_KERNEL: f64 = 0.99;

/// Describes the messages that answered nothing, if some step waited for messages.
fn unrequested_note(summary: &Summary) -> Option<String> {
    let MessageSummary { answered, unasked, doubtful, .. } = summary.message;
    (answered > 0 && unasked > 0).then(|| {
        let of_others = match doubtful {
            0 => "No answer could be confused with them.".to_owned(),
            n => format!("{} of the answers may be such messages.", count(n as f64)),
        };
        let unasked = count(unasked as f64);
        format!("{unasked} messages arrived that no `expect` waited for. {of_others}")
    })
}

/// Names the first latency whose slowest value was the generator's own.
fn lateness_note(summary: &Summary) -> Option<String> {
    let lag_us = summary.generator.lag_us.max;
    let slowest = [
        ("connect", Some(summary.connect.latency_us)),
        ("message", Some(summary.message.latency_us)),
        ("join", summary.join.as_ref().map(|join| join.latency_us)),
        ("push", summary.push.as_ref().map(|push| push.latency_us)),
        ("http", summary.http.as_ref().map(|http| http.latency_us)),
    ];
    let is_own = |us: LatencySummary| us.count > 0 && is_owned(us.max, lag_us);
    let (what, _) = slowest.iter().find(|(_, us)| us.is_some_and(is_own))?;
    let at_s = summary.generator.lag_most_at_s?;
    Some(format!(
        "The slowest {what} may be the generator's own: it was late by {} at {at_s:.0} s.",
        micros(lag_us)
    ))
}

/// Reports whether generator and server together used less than half of the busy CPU time. Then the
/// machine's use is no cost of the run's connects and messages.
pub(super) fn others_used_more(summary: &Summary) -> bool {
    let machine = &summary.machine;
    let server = summary.server_costs().and_then(|server| server.cpu_cores_used);
    let ends = summary.generator.cpu_cores_used.unwrap_or(0.0) + server.unwrap_or(0.0);
    machine.cpu_busy_share.is_some_and(|share| ends < share * machine.cpus as f64 / 2.0)
}

/// Reports whether the generator read answers so much later than they arrived that both are shown:
/// by a tenth and by half a millisecond, at one of the percentiles.
pub(super) fn differ(arrived: &LatencySummary, seen: &LatencySummary) -> bool {
    let shown = |l: &LatencySummary| [l.p50, l.p90, l.p95, l.p99, l.p999];
    let differs = |(arrived, seen): (u64, u64)| {
        let later = seen.saturating_sub(arrived);
        later > CLOCKS_DIFFER_US && later > arrived / 10
    };
    arrived.count > 0 && shown(arrived).into_iter().zip(shown(seen)).any(differs)
}

/// The delay between an answer's arrival and its reading above which both are shown, in
/// microseconds.
const CLOCKS_DIFFER_US: u64 = 500;

/// Returns the columns of a latency.
pub(super) fn shown(l: &LatencySummary) -> [u64; 6] {
    [l.p50, l.p90, l.p95, l.p99, l.p999, l.max]
}
