//! What a server did while it answered nobody.

use throng_report::Evidence;

use crate::gaps::Gap;
use crate::history::Sample;
use crate::run_view::{Endpoint, RunView};

/// What the server did in a gap.
pub(super) struct ServerActivity {
    pub(super) what: ActivityKind,
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
pub(super) enum ActivityKind {
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

impl ServerActivity {
    pub(super) fn of(run: &RunView<'_>, gap: &Gap<'_>) -> Self {
        let is_so = |name: &str| inside(run, gap).any(|now| of_server(run, now, name) > Some(0));
        let cpus = share_in(run, gap);
        let what = match cpus {
            _ if is_so("stopped") => ActivityKind::Stopped,
            Some(cpus) if cpus >= BUSY_SHARE => ActivityKind::Busy,
            Some(cpus) if cpus >= BUSY_DELAYED_SHARE && waited(run, gap) => ActivityKind::Busy,
            Some(cpus) if cpus <= IDLE_SHARE && is_so("uninterruptible") => {
                ActivityKind::Uninterruptible
            }
            Some(cpus) if cpus <= IDLE_SHARE => ActivityKind::Idle,
            _ => ActivityKind::Unclear,
        };
        let queue = queue(run, gap);
        let spoke = before(run, gap).is_some_and(|moment| moment.interval.server.is_some());
        let is_silent = spoke
            && inside(run, gap).count() > 0
            && inside(run, gap).all(|moment| moment.interval.server.is_none());
        let shown = if what == ActivityKind::Stopped { "stopped" } else { "gap_cpu_us" };
        Self {
            what,
            is_seen: within(run, gap).any(|now| of_server(run, now, "cpu_us").is_some()),
            queued: queue.as_ref().map(|queue| queue.to as i64),
            cpus,
            is_whole: queue.is_some() || is_silent,
            evidence: queue.into_iter().chain(peak(run, gap, shown)).collect(),
            pid: run.server_pid().map_or_else(|| "PID".to_owned(), |pid| pid.to_string()),
        }
    }

    /// What may have been the reason, in a sentence.
    pub(super) fn why(&self) -> &'static str {
        match self.what {
            ActivityKind::Stopped => {
                "A signal (SIGSTOP), a debugger or the job control of a shell leaves a process so."
            }
            ActivityKind::Uninterruptible => {
                "So it waited for a disk or a network file system, or was frozen by its control group."
            }
            ActivityKind::Idle if self.is_whole => {
                "It was paused as a whole (frozen, a pause of its virtual machine), or its only loop waited for something: a \
                 lock, a disk, a sleep."
            }
            ActivityKind::Idle => {
                "It was paused, or everybody waited for the same thing: a lock, a database, a disk, a sleep."
            }
            ActivityKind::Busy => {
                "One long piece of work holds up all users that the same thread serves."
            }
            ActivityKind::Unclear => {
                "It computed, or it waited for something that all users need: the figures do not tell which."
            }
        }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> String {
        let pid = &self.pid;
        match self.what {
            ActivityKind::Stopped => format!("find what stops it; kill -CONT {pid} lets it go on"),
            ActivityKind::Uninterruptible => format!(
                "look while it lasts: cat /proc/{pid}/wchan /proc/{pid}/stack, the freezer of its control group, iostat -x 1"
            ),
            ActivityKind::Idle => format!(
                "see what it waits for while it lasts (ps -o stat,wchan -p {pid}, strace -f -p {pid}, a stack dump), and what \
                 pauses it (freezer, VM, garbage collector)"
            ),
            ActivityKind::Busy => format!(
                "profile what it computes then (perf top -p {pid}, or the profiler of its language): do it in another thread, or \
                 in pieces"
            ),
            ActivityKind::Unclear if self.is_seen => format!(
                "profile it while it lasts (perf top -p {pid}), and see what it waits for (strace -f -p {pid}, a stack dump)"
            ),
            ActivityKind::Unclear => "throng doctor --watch --listen ADDR:PORT on its machine and throng run --server-facts HOST:PORT \
                              here show which"
                .to_owned(),
        }
    }
}

/// Tells whether the server waited for a CPU in a gap, and did not use what it got for something else: it is not the server that
/// stood still.
pub(super) fn waits_for_a_cpu(run: &RunView<'_>, gap: &Gap<'_>) -> bool {
    waited(run, gap) && share_in(run, gap).is_none_or(|share| share < BUSY_DELAYED_SHARE)
}

/// Whether a thread of the server was ready to run for long and had no CPU.
fn waited(run: &RunView<'_>, gap: &Gap<'_>) -> bool {
    let delayed = |now: &Sample| of_server(run, now, "most_delayed_thread_permille");
    within(run, gap).any(|moment| delayed(moment) > Some(DELAYED_MOST))
}

/// The CPUs that the server had in a gap.
fn share_in(run: &RunView<'_>, gap: &Gap<'_>) -> Option<f64> {
    let used_us = of_server(run, gap.moment, "gap_cpu_us").filter(|_| !gap.is_open);
    let exact = used_us.map(|us| us as f64 / 1000.0 / gap.gap.length_ms().max(1) as f64);
    exact.or_else(|| cpus(run, gap))
}

/// The same from the intervals that lie in the gap as a whole.
fn cpus(run: &RunView<'_>, gap: &Gap<'_>) -> Option<f64> {
    let inside = run.steps().filter(|(before, now)| {
        before.interval.at_ms >= gap.gap.from_ms && now.interval.at_ms <= gap.gap.to_ms
    });
    let (mut used_us, mut span_ms) = (0, 0);
    for (before, now) in inside {
        let used = |moment| of_server(run, moment, "cpu_us");
        used_us += (used(now)? - used(before)?).max(0);
        span_ms += now.interval.span_ms;
    }
    (span_ms > 0).then(|| used_us as f64 / 1000.0 / span_ms as f64)
}

/// Connections that wait to be accepted in a gap, where those are more than before it.
fn queue(run: &RunView<'_>, gap: &Gap<'_>) -> Option<Evidence> {
    let queued = |moment: &Sample| run.value(Endpoint::Server, moment, "listener.accept_queue");
    let from = before(run, gap).and_then(queued).unwrap_or(0);
    let looks = inside(run, gap).filter_map(|now| Some((now.interval.at_ms, queued(now)?)));
    let (at_ms, to) = looks.max_by_key(|(_, queued)| *queued)?;
    (to >= from + QUEUED_MIN).then(|| Evidence {
        counter: "listener.accept_queue".to_owned(),
        from: from as f64,
        to: to as f64,
        at_ms,
    })
}

/// The height of a gauge of the server's process in a gap.
fn peak(run: &RunView<'_>, gap: &Gap<'_>, name: &str) -> Option<Evidence> {
    let looks = within(run, gap);
    let looks = looks.filter_map(|now| Some((now.interval.at_ms, of_server(run, now, name)?)));
    let (at_ms, to) = looks.max_by_key(|(_, value)| *value)?;
    let from = before(run, gap).and_then(|now| of_server(run, now, name)).unwrap_or(0);
    let (from, to) = (from as f64, to as f64);
    Some(Evidence { counter: format!("process.server.{name}"), from, to, at_ms })
}

fn of_server(run: &RunView<'_>, moment: &Sample, name: &str) -> Option<i64> {
    run.value(Endpoint::Server, moment, &format!("process.server.{name}"))
}

/// The intervals that a gap has a part in.
fn within<'a>(run: &RunView<'a>, gap: &Gap<'_>) -> impl Iterator<Item = &'a Sample> {
    let (from_ms, to_ms) = (gap.gap.from_ms, gap.gap.to_ms);
    run.samples().iter().filter(move |moment| {
        let end_ms = moment.interval.at_ms;
        end_ms > from_ms && end_ms.saturating_sub(moment.interval.span_ms) < to_ms
    })
}

/// Those of them that ended in the gap: what they say is of a moment in it.
fn inside<'a>(run: &RunView<'a>, gap: &Gap<'_>) -> impl Iterator<Item = &'a Sample> {
    let (to_ms, is_open) = (gap.gap.to_ms, gap.is_open);
    within(run, gap).filter(move |moment| moment.interval.at_ms < to_ms || is_open)
}

/// The last look before a gap.
fn before<'a>(run: &RunView<'a>, gap: &Gap<'_>) -> Option<&'a Sample> {
    run.samples().iter().rev().find(|moment| moment.interval.at_ms <= gap.gap.from_ms)
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
