//! What a server did while it answered nobody.

use throng_report::Evidence;

use crate::case::{Case, End};
use crate::gaps::Gap;
use crate::history::Moment;

/// What the server did in a gap.
pub(super) struct Doing {
    pub(super) what: What,
    /// Whether its process could be looked at.
    pub(super) is_seen: bool,
    /// Connections that waited to be accepted, where they became more.
    pub(super) queued: Option<i64>,
    /// CPUs that it took.
    pub(super) cpus: Option<f64>,
    pub(super) evidence: Vec<Evidence>,
    /// Whether it accepted nobody, or its control socket was silent too.
    is_whole: bool,
    pid: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A signal or a debugger had stopped it.
    Stopped,
    /// It used no CPU, and waited in the kernel.
    Uninterruptible,
    /// It used no CPU.
    Idle,
    /// It computed without a rest.
    Busy,
    /// Either, or both.
    Unclear,
}

impl Doing {
    pub(super) fn of(case: &Case<'_>, gap: &Gap<'_>) -> Self {
        let is_so = |name: &str| inside(case, gap).any(|now| of_server(case, now, name) > Some(0));
        let cpus = share_in(case, gap);
        let what = match cpus {
            _ if is_so("stopped") => What::Stopped,
            Some(cpus) if cpus >= BUSY_SHARE => What::Busy,
            Some(cpus) if cpus >= BUSY_DELAYED_SHARE && waited(case, gap) => What::Busy,
            Some(cpus) if cpus <= IDLE_SHARE && is_so("uninterruptible") => What::Uninterruptible,
            Some(cpus) if cpus <= IDLE_SHARE => What::Idle,
            _ => What::Unclear,
        };
        let queue = queue(case, gap);
        let spoke = before(case, gap).is_some_and(|moment| moment.interval.server.is_some());
        let is_silent = spoke
            && inside(case, gap).count() > 0
            && inside(case, gap).all(|moment| moment.interval.server.is_none());
        let shown = if what == What::Stopped { "stopped" } else { "gap_cpu_us" };
        Self {
            what,
            is_seen: within(case, gap).any(|now| of_server(case, now, "cpu_us").is_some()),
            queued: queue.as_ref().map(|queue| queue.to as i64),
            cpus,
            is_whole: queue.is_some() || is_silent,
            evidence: queue.into_iter().chain(peak(case, gap, shown)).collect(),
            pid: case.server_pid().map_or_else(|| "PID".to_owned(), |pid| pid.to_string()),
        }
    }

    /// What may have been the reason, in a sentence.
    pub(super) fn why(&self) -> &'static str {
        match self.what {
            What::Stopped => {
                "A signal (SIGSTOP), a debugger or the job control of a shell leaves a process so."
            }
            What::Uninterruptible => {
                "So it waited for a disk or a network file system, or was frozen by its control group."
            }
            What::Idle if self.is_whole => {
                "It was paused as a whole (frozen, a pause of its virtual machine), or its only loop waited for something: a \
                 lock, a disk, a sleep."
            }
            What::Idle => {
                "It was paused, or everybody waited for the same thing: a lock, a database, a disk, a sleep."
            }
            What::Busy => "One long piece of work holds up all users that the same thread serves.",
            What::Unclear => {
                "It computed, or it waited for something that all users need: the figures do not tell which."
            }
        }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> String {
        let pid = &self.pid;
        match self.what {
            What::Stopped => format!("find what stops it; kill -CONT {pid} lets it go on"),
            What::Uninterruptible => format!(
                "look while it lasts: cat /proc/{pid}/wchan /proc/{pid}/stack, the freezer of its control group, iostat -x 1"
            ),
            What::Idle => format!(
                "see what it waits for while it lasts (ps -o stat,wchan -p {pid}, strace -f -p {pid}, a stack dump), and what \
                 pauses it (freezer, VM, garbage collector)"
            ),
            What::Busy => format!(
                "profile what it computes then (perf top -p {pid}, or the profiler of its language): do it in another thread, or \
                 in pieces"
            ),
            What::Unclear if self.is_seen => format!(
                "profile it while it lasts (perf top -p {pid}), and see what it waits for (strace -f -p {pid}, a stack dump)"
            ),
            What::Unclear => "throng doctor --watch --listen ADDR:PORT on its machine and throng run --server-facts HOST:PORT \
                              here show which"
                .to_owned(),
        }
    }
}

/// Tells whether the server waited for a CPU in a gap, and did not use what it got for something else: it is not the server that
/// stood still.
pub(super) fn waits_for_a_cpu(case: &Case<'_>, gap: &Gap<'_>) -> bool {
    waited(case, gap) && share_in(case, gap).is_none_or(|share| share < BUSY_DELAYED_SHARE)
}

/// Whether a thread of the server was ready to run for long and had no CPU.
fn waited(case: &Case<'_>, gap: &Gap<'_>) -> bool {
    let delayed = |now: &Moment| of_server(case, now, "most_delayed_thread_permille");
    within(case, gap).any(|moment| delayed(moment) > Some(DELAYED_MOST))
}

/// The CPUs that the server had in a gap.
fn share_in(case: &Case<'_>, gap: &Gap<'_>) -> Option<f64> {
    let used_us = of_server(case, gap.moment, "gap_cpu_us").filter(|_| !gap.is_open);
    let exact = used_us.map(|us| us as f64 / 1000.0 / gap.gap.length_ms().max(1) as f64);
    exact.or_else(|| cpus(case, gap))
}

/// The same from the intervals that lie in the gap as a whole.
fn cpus(case: &Case<'_>, gap: &Gap<'_>) -> Option<f64> {
    let inside = case.steps().filter(|(before, now)| {
        before.interval.at_ms >= gap.gap.from_ms && now.interval.at_ms <= gap.gap.to_ms
    });
    let (mut used_us, mut span_ms) = (0, 0);
    for (before, now) in inside {
        let used = |moment| of_server(case, moment, "cpu_us");
        used_us += (used(now)? - used(before)?).max(0);
        span_ms += now.interval.span_ms;
    }
    (span_ms > 0).then(|| used_us as f64 / 1000.0 / span_ms as f64)
}

/// Connections that wait to be accepted in a gap, where those are more than before it.
fn queue(case: &Case<'_>, gap: &Gap<'_>) -> Option<Evidence> {
    let queued = |moment: &Moment| case.value(End::Server, moment, "listener.accept_queue");
    let from = before(case, gap).and_then(queued).unwrap_or(0);
    let looks = inside(case, gap).filter_map(|now| Some((now.interval.at_ms, queued(now)?)));
    let (at_ms, to) = looks.max_by_key(|(_, queued)| *queued)?;
    (to >= from + QUEUED_MIN).then(|| Evidence {
        counter: "listener.accept_queue".to_owned(),
        from: from as f64,
        to: to as f64,
        at_ms,
    })
}

/// The height of a gauge of the server's process in a gap.
fn peak(case: &Case<'_>, gap: &Gap<'_>, name: &str) -> Option<Evidence> {
    let looks = within(case, gap);
    let looks = looks.filter_map(|now| Some((now.interval.at_ms, of_server(case, now, name)?)));
    let (at_ms, to) = looks.max_by_key(|(_, value)| *value)?;
    let from = before(case, gap).and_then(|now| of_server(case, now, name)).unwrap_or(0);
    let (from, to) = (from as f64, to as f64);
    Some(Evidence { counter: format!("process.server.{name}"), from, to, at_ms })
}

fn of_server(case: &Case<'_>, moment: &Moment, name: &str) -> Option<i64> {
    case.value(End::Server, moment, &format!("process.server.{name}"))
}

/// The intervals that a gap has a part in.
fn within<'a>(case: &Case<'a>, gap: &Gap<'_>) -> impl Iterator<Item = &'a Moment> {
    let (from_ms, to_ms) = (gap.gap.from_ms, gap.gap.to_ms);
    case.moments().iter().filter(move |moment| {
        let end_ms = moment.interval.at_ms;
        end_ms > from_ms && end_ms.saturating_sub(moment.interval.span_ms) < to_ms
    })
}

/// Those of them that ended in the gap: what they say is of a moment in it.
fn inside<'a>(case: &Case<'a>, gap: &Gap<'_>) -> impl Iterator<Item = &'a Moment> {
    let (to_ms, is_open) = (gap.gap.to_ms, gap.is_open);
    within(case, gap).filter(move |moment| moment.interval.at_ms < to_ms || is_open)
}

/// The last look before a gap.
fn before<'a>(case: &Case<'a>, gap: &Gap<'_>) -> Option<&'a Moment> {
    case.moments().iter().rev().find(|moment| moment.interval.at_ms <= gap.gap.from_ms)
}

/// A thread that waits longer for a CPU does not stand still by itself, in thousandths of the time.
const DELAYED_MOST: i64 = 300;

/// Connections that wait to be accepted, by so many more than before.
const QUEUED_MIN: i64 = 3;

/// A server that takes no more of a CPU does nothing: one tick of the kernel's accounting in the shortest gap.
const IDLE_SHARE: f64 = 0.10;

/// One that takes as much computes, …
const BUSY_SHARE: f64 = 0.6;
/// … or less, where it has to share the CPUs.
const BUSY_DELAYED_SHARE: f64 = 0.25;
