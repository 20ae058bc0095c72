//! The activity of a server while it answered no user.

use throng_measure::{Endpoint, Evidence, Metric, ProcessMetric};

use super::super::cpu_cause::COLLECTOR_REMEDY;
use crate::cpu_waits::CpuWaits;
use crate::cpus::CpuUse;
use crate::gaps::Gap;
use crate::history::Sample;
use crate::run_view::RunView;

/// The activity of the server in a gap.
pub(super) struct ServerActivity {
    pub(super) what: ActivityKind,
    /// True if the server's process could be read.
    pub(super) is_seen: bool,
    /// Connections that waited to be accepted, if they became more.
    pub(super) queued: Option<i64>,
    /// CPUs that the server used.
    pub(super) cpus: Option<f64>,
    pub(super) evidence: Vec<Evidence>,
    /// True if it accepted no connection, or its control socket was silent too.
    is_whole: bool,
    pid: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActivityKind {
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Without CPU use, waiting in the kernel.
    Uninterruptible,
    /// Without CPU use.
    Idle,
    /// Computing all the time, most of it for its garbage collector.
    Collects,
    /// Computing all the time.
    Busy,
    /// Computing, waiting, or both.
    Unclear,
}

impl ServerActivity {
    pub(super) fn of(run: &RunView<'_>, gap: &Gap<'_>) -> Self {
        let is_so = |gauge| inside(run, gap).any(|now| of_server(run, now, gauge) > Some(0));
        let cpus = share_in(run, gap);
        let what = match cpus {
            _ if is_so(ProcessMetric::STOPPED) => ActivityKind::Stopped,
            Some(cpus) if cpus >= BUSY_DELAYED_SHARE && collects(run, gap) => {
                ActivityKind::Collects
            }
            Some(cpus) if cpus >= BUSY_SHARE => ActivityKind::Busy,
            Some(cpus) if cpus >= BUSY_DELAYED_SHARE && waited(run, gap) => ActivityKind::Busy,
            Some(cpus) if cpus <= IDLE_SHARE && is_so(ProcessMetric::UNINTERRUPTIBLE) => {
                ActivityKind::Uninterruptible
            }
            Some(cpus) if cpus <= IDLE_SHARE => ActivityKind::Idle,
            _ => ActivityKind::Unclear,
        };
        let queue = queue(run, gap);
        let spoke = before(run, gap).is_some_and(|sample| sample.interval.server.is_some());
        let is_silent = spoke
            && inside(run, gap).count() > 0
            && inside(run, gap).all(|sample| sample.interval.server.is_none());
        let shown = match what {
            ActivityKind::Stopped => peak(run, gap, ProcessMetric::STOPPED),
            _ => cpu_evidence(run, gap),
        };
        Self {
            what,
            is_seen: within(run, gap)
                .any(|now| of_server(run, now, ProcessMetric::CPU_US).is_some()),
            queued: queue.as_ref().map(|queue| queue.to as i64),
            cpus,
            is_whole: queue.is_some() || is_silent,
            evidence: queue.into_iter().chain(shown).collect(),
            pid: run.server_pid().map_or_else(|| "PID".to_owned(), |pid| pid.to_string()),
        }
    }

    /// Returns a sentence about the likely reason.
    pub(super) fn why(&self) -> &'static str {
        match self.what {
            ActivityKind::Stopped => {
                "A signal (SIGSTOP), a debugger or a shell's job control leaves a process in that \
                 state."
            }
            ActivityKind::Uninterruptible => {
                "It waited for a disk or a network file system, or its control group was frozen."
            }
            ActivityKind::Idle if self.is_whole => {
                "It was paused as a whole (frozen, a pause of its virtual machine), or its only \
                 loop waited for something: a lock, a disk, a sleep."
            }
            ActivityKind::Idle => {
                "It was paused, or all users waited for the same thing: a lock, a database, a \
                 disk, a sleep."
            }
            ActivityKind::Collects => {
                "It stopped its threads to collect garbage: its heap is too small, or each request \
                 makes too much garbage."
            }
            ActivityKind::Busy => {
                "One long task blocks the thread, such as an event loop, and with it all its users."
            }
            ActivityKind::Unclear => {
                "It computed, or it waited for something that all users need: the measurements do \
                 not show which."
            }
        }
    }

    /// Returns what to do.
    pub(super) fn remedy(&self) -> String {
        let pid = &self.pid;
        match self.what {
            ActivityKind::Stopped => {
                format!("find what stops it, and run kill -CONT {pid} to continue it")
            }
            ActivityKind::Uninterruptible => format!(
                "while it lasts, check cat /proc/{pid}/wchan /proc/{pid}/stack, the freezer of its \
                 control group, and iostat -x 1"
            ),
            ActivityKind::Idle => format!(
                "while it lasts, find what it waits for (ps -o stat,wchan -p {pid}, strace -f -p \
                 {pid}, a stack dump) and what pauses it (freezer, VM, garbage collector)"
            ),
            ActivityKind::Collects => COLLECTOR_REMEDY.to_owned(),
            ActivityKind::Busy => format!(
                "profile what it computes then (perf top -p {pid}, or the profiler of its \
                 language), and move it to another thread or split it into pieces"
            ),
            ActivityKind::Unclear if self.is_seen => format!(
                "profile it while it lasts (perf top -p {pid}), and find what it waits for (strace \
                 -f -p {pid}, a stack dump)"
            ),
            ActivityKind::Unclear => "find which with throng doctor --watch --listen ADDR:PORT on \
                                      its machine and throng run --server-facts HOST:PORT here"
                .to_owned(),
        }
    }
}

/// Reports whether the server waited for a CPU in a gap and used what it got for its work: then the
/// server did not stand still.
pub(super) fn waits_for_a_cpu(run: &RunView<'_>, gap: &Gap<'_>) -> bool {
    waited(run, gap) && share_in(run, gap).is_none_or(|share| share < BUSY_DELAYED_SHARE)
}

/// Reports whether a thread of the server was ready to run and had no CPU for so long that this
/// explains the gap.
fn waited(run: &RunView<'_>, gap: &Gap<'_>) -> bool {
    CpuWaits::of(run).explain_silence(gap.gap.from_ms, gap.gap.to_ms)
}

/// Reports whether the collector used most of the CPU time of the intervals that a gap touches.
fn collects(run: &RunView<'_>, gap: &Gap<'_>) -> bool {
    let touches = |used: &CpuUse| used.at_ms > gap.gap.from_ms && used.from_ms < gap.gap.to_ms;
    let uses = CpuUse::of(run, Endpoint::Server).into_iter().filter(touches);
    let servers = uses.filter_map(|used| Some((used.server?.collector?, used.server?.taken)));
    let (collector, taken) = servers.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    collector > 0.0 && collector * 2.0 >= taken
}

/// Returns the CPUs that the server used in a gap.
fn share_in(run: &RunView<'_>, gap: &Gap<'_>) -> Option<f64> {
    let used_us = cpu_us(run, gap);
    let exact = used_us.map(|us| us as f64 / 1000.0 / gap.gap.length_ms().max(1) as f64);
    exact.or_else(|| cpus(run, gap))
}

/// Returns the CPU time that the server used in this gap, if it was measured. The gauge of an
/// interval belongs to the gap that the generator reports there.
fn cpu_us(run: &RunView<'_>, gap: &Gap<'_>) -> Option<i64> {
    let is_measured = gap.sample.load()?.answer_gap == Some(gap.gap) && !gap.is_open;
    of_server(run, gap.sample, ProcessMetric::GAP_CPU_US).filter(|_| is_measured)
}

/// Returns that CPU time as evidence: nothing was used of it when the gap began.
fn cpu_evidence(run: &RunView<'_>, gap: &Gap<'_>) -> Option<Evidence> {
    let counter = ProcessMetric::GAP_CPU_US.server.to_string();
    let to = cpu_us(run, gap)? as f64;
    Some(Evidence { counter, from: 0.0, to, at_ms: gap.sample.interval.at_ms })
}

/// Returns the CPUs that the server used in the intervals that lie wholly in the gap.
fn cpus(run: &RunView<'_>, gap: &Gap<'_>) -> Option<f64> {
    let inside = run.steps().filter(|(before, now)| {
        before.interval.at_ms >= gap.gap.from_ms && now.interval.at_ms <= gap.gap.to_ms
    });
    let (mut used_us, mut span_ms) = (0, 0);
    for (before, now) in inside {
        let used = |sample| of_server(run, sample, ProcessMetric::CPU_US);
        used_us += (used(now)? - used(before)?).max(0);
        span_ms += now.interval.span_ms;
    }
    (span_ms > 0).then(|| used_us as f64 / 1000.0 / span_ms as f64)
}

/// Returns the connections that waited to be accepted in a gap, if they are more than before it.
fn queue(run: &RunView<'_>, gap: &Gap<'_>) -> Option<Evidence> {
    let queued =
        |sample: &Sample| run.value(Endpoint::Server, sample, Metric::LISTENER_ACCEPT_QUEUE);
    let from = before(run, gap).and_then(queued).unwrap_or(0);
    let looks = inside(run, gap).filter_map(|now| Some((now.interval.at_ms, queued(now)?)));
    let (at_ms, to) = looks.max_by_key(|(_, queued)| *queued)?;
    (to >= from + QUEUED_MIN).then(|| Evidence {
        counter: Metric::LISTENER_ACCEPT_QUEUE.to_string(),
        from: from as f64,
        to: to as f64,
        at_ms,
    })
}

/// Returns the peak of a gauge of the server's process in a gap.
fn peak(run: &RunView<'_>, gap: &Gap<'_>, gauge: ProcessMetric) -> Option<Evidence> {
    let looks = within(run, gap);
    let looks = looks.filter_map(|now| Some((now.interval.at_ms, of_server(run, now, gauge)?)));
    let (at_ms, to) = looks.max_by_key(|(_, value)| *value)?;
    let from = before(run, gap).and_then(|now| of_server(run, now, gauge)).unwrap_or(0);
    let (from, to) = (from as f64, to as f64);
    Some(Evidence { counter: gauge.server.to_string(), from, to, at_ms })
}

/// Returns a value of the server's process.
fn of_server(run: &RunView<'_>, sample: &Sample, metric: ProcessMetric) -> Option<i64> {
    run.value(Endpoint::Server, sample, metric.server)
}

/// Returns the intervals that overlap a gap.
fn within<'a>(run: &RunView<'a>, gap: &Gap<'_>) -> impl Iterator<Item = &'a Sample> {
    let (from_ms, to_ms) = (gap.gap.from_ms, gap.gap.to_ms);
    run.samples().iter().filter(move |sample| {
        let end_ms = sample.interval.at_ms;
        end_ms > from_ms && end_ms.saturating_sub(sample.interval.span_ms) < to_ms
    })
}

/// Returns the intervals that ended inside a gap: their gauges were read in it.
fn inside<'a>(run: &RunView<'a>, gap: &Gap<'_>) -> impl Iterator<Item = &'a Sample> {
    let (to_ms, is_open) = (gap.gap.to_ms, gap.is_open);
    within(run, gap).filter(move |sample| sample.interval.at_ms < to_ms || is_open)
}

/// Returns the last sample before a gap.
fn before<'a>(run: &RunView<'a>, gap: &Gap<'_>) -> Option<&'a Sample> {
    run.samples().iter().rev().find(|sample| sample.interval.at_ms <= gap.gap.from_ms)
}

/// The smallest increase of connections that wait to be accepted.
const QUEUED_MIN: i64 = 3;

/// The largest share of a CPU that counts as idle: one tick of the kernel's accounting in the
/// shortest gap.
const IDLE_SHARE: f64 = 0.10;

/// The smallest share of a CPU that counts as busy.
const BUSY_SHARE: f64 = 0.6;

/// The smallest share of a CPU that counts as busy if the server has to share the CPUs.
const BUSY_DELAYED_SHARE: f64 = 0.25;
