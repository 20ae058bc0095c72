//! Why a foreign server uses all CPU time that it can, where more CPUs, processes or event loops
//! would not help.

use throng_measure::{Endpoint, Evidence, Metric, Operation, ProcessMetric, RunEventKind};

use crate::counted::counted;
use crate::cpus::{CpuUse, ProcessCpus, mean, whole_percent};
use crate::history::Sample;
use crate::run_view::RunView;

/// A cause, as the first sentence of a finding without its end, and what to do.
pub(super) struct CpuCause {
    pub(super) sentence: String,
    pub(super) remedy: String,
    pub(super) evidence: Vec<Evidence>,
}

impl CpuCause {
    /// Returns the cause that shows in the intervals in which the server was `hot`.
    pub(super) fn of(run: &RunView<'_>, hot: &[CpuUse]) -> Option<Self> {
        let is_throng = run.samples().iter().any(|sample| sample.interval.server.is_some());
        if is_throng {
            return None;
        }
        collector(run, hot)
            .or_else(|| idle_workers(run, hot))
            .or_else(|| any_load(run, hot))
            .or_else(|| closed_sockets(run, hot))
    }
}

/// The thread that was the busiest.
pub(super) struct BusyThread<'a> {
    pub(super) program: &'a str,
    pub(super) thread: &'a str,
    pub(super) is_main: bool,
}

impl<'a> BusyThread<'a> {
    /// Returns the thread that was the busiest in the last of these intervals, if it was reported.
    pub(super) fn of(run: &RunView<'a>, hot: &[CpuUse]) -> Option<Self> {
        let last_ms = hot.last()?.at_ms;
        let samples = run.samples().iter().filter(|sample| sample.interval.at_ms <= last_ms);
        let kinds = samples.flat_map(|sample| &sample.interval.events).map(|event| &event.kind);
        let mut found = kinds.filter_map(|kind| match kind {
            RunEventKind::ServerThreadBusy { program, thread, is_main, .. } => {
                Some(Self { program, thread, is_main: *is_main })
            }
            _ => None,
        });
        found.next_back()
    }
}

/// Reports whether the collector uses most of the CPU time of a server, and much of a CPU.
pub(super) fn collects(server: &ProcessCpus) -> bool {
    let collector = server.collector.unwrap_or(0.0);
    collector >= COLLECTOR_CPUS_MIN && collector * 2.0 >= server.taken
}

/// What to do about a collector that has too much to do.
pub(super) const COLLECTOR_REMEDY: &str = "give it a larger heap (java -Xmx, .NET \
     GCHeapHardLimit), and find what it keeps or makes for each request: its collector's log (java \
     -Xlog:gc), an allocation profile";

fn collector(run: &RunView<'_>, hot: &[CpuUse]) -> Option<CpuCause> {
    let server = mean(hot)?.server.filter(collects)?;
    let thread = BusyThread::of(run, hot)
        .map(|busy| format!(" (thread `{}` of {})", busy.thread, busy.program))
        .unwrap_or_default();
    let used = server.collector?;
    let sentence = format!(
        "The server's garbage collector{thread} used {used:.2} CPUs, {} of all that the server \
         used: its heap is too small, or each request makes too much garbage",
        whole_percent((used / server.taken).min(1.0))
    );
    let gauge = ProcessMetric::COLLECTOR_PERMILLE.server;
    let evidence = run.peak(Endpoint::Server, gauge).map(Evidence::from);
    let evidence = evidence.into_iter().collect();
    Some(CpuCause { sentence, remedy: COLLECTOR_REMEDY.to_owned(), evidence })
}

/// Looks for workers without work beside one that has no time left.
fn idle_workers(run: &RunView<'_>, hot: &[CpuUse]) -> Option<CpuCause> {
    let of = |used: &CpuUse| {
        let sample = at(run, used)?;
        let value = |metric: ProcessMetric| run.value(Endpoint::Server, sample, metric.server);
        let idle = value(ProcessMetric::WORKERS_IDLE)?;
        Some((sample.interval.at_ms, u64::try_from(idle).ok()?, value(ProcessMetric::WORKERS)?))
    };
    let known: Vec<_> = hot.iter().filter_map(of).collect();
    let with_idle: Vec<_> = known.iter().filter(|(_, idle, _)| *idle > 0).collect();
    let (at_ms, idle, workers) = **with_idle.last()?;
    if with_idle.len() * 2 <= known.len() {
        return None;
    }
    let busy = mean(hot)?.server?.busiest?;
    let sentence = format!(
        "One of the server's {workers} worker processes was busy for {} of the time, and {} idle: \
         the connections are not spread over the workers",
        whole_percent(busy),
        counted(idle, "was", "were")
    );
    let counter = ProcessMetric::WORKERS_IDLE.server.name().to_owned();
    Some(CpuCause {
        sentence,
        remedy: "find why one worker has the connections: a balancer that keeps them together by \
                 address or cookie, one accept lock, or long connections that came while the other \
                 workers were away; SO_REUSEPORT or least connections spread them"
            .to_owned(),
        evidence: vec![Evidence { counter, from: 0.0, to: idle as f64, at_ms }],
    })
}

/// Looks for a thread that was as busy when there was hardly anything to do.
fn any_load(run: &RunView<'_>, hot: &[CpuUse]) -> Option<CpuCause> {
    let loads: Vec<Load> = run.steps().filter_map(Load::of).collect();
    let most = loads.iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s))?;
    let connected = loads.iter().map(|load| load.connected).max()?;
    let is_hot = |load: &&Load| hot.iter().any(|used| used.at_ms == load.at_ms);
    let is_low = |load: &&Load| {
        load.per_s * LOW_TIMES <= most.per_s
            && load.connected as f64 * LOW_TIMES <= connected as f64
            && load.is_in_time
    };
    let low: Vec<&Load> = loads.iter().filter(is_hot).filter(is_low).collect();
    let first = low.first().filter(|_| low.len() >= LOW_MIN && most.per_s >= PER_S_MIN)?;
    // It never rested since, however little there was to do.
    if !loads.iter().filter(|load| load.at_ms >= first.at_ms).all(|load| is_hot(&load)) {
        return None;
    }
    let busy = mean(hot)?.server?.busiest?;
    let unit = format!("{}s", run.summary.unit_of_work());
    let sentence = format!(
        "One thread of the server was busy for {} of the time at any load, at {:.0} {unit} a \
         second as at {:.0}: what it computes does not follow the load",
        whole_percent(busy),
        first.per_s,
        most.per_s
    );
    let gauge = ProcessMetric::BUSIEST_THREAD_PERMILLE.server;
    let shown = at_ms(run, first.at_ms).and_then(|now| run.value(Endpoint::Server, now, gauge));
    let evidence = shown.map(|permille| Evidence {
        counter: gauge.name().to_owned(),
        from: 0.0,
        to: permille as f64,
        at_ms: first.at_ms,
    });
    let closed = kept_closed(run, hot).map_or_else(String::new, |(_, count)| {
        format!(
            ": it keeps {} in CLOSE_WAIT",
            counted(count, "socket that its client has closed", "sockets that clients have closed")
        )
    });
    Some(CpuCause {
        sentence,
        remedy: format!(
            "find what it does between requests (strace -c -f -p PID, perf top): a loop whose \
             epoll_wait returns at once, because nothing closes a socket that has ended{closed}; a \
             timer of 0; a job without an end"
        ),
        evidence: evidence.into_iter().collect(),
    })
}

/// Looks for sockets that clients have closed and the server has not, though it answers in time.
fn closed_sockets(run: &RunView<'_>, hot: &[CpuUse]) -> Option<CpuCause> {
    let (at_ms, count) = kept_closed(run, hot)?;
    let is_in_time = |used: &&CpuUse| at(run, used).is_some_and(is_in_time);
    if hot.iter().filter(is_in_time).count() * 2 <= hot.len() {
        return None;
    }
    let busy = mean(hot)?.server?.busiest?;
    let counter = Metric::LISTENER_CLOSE_WAIT.name().to_owned();
    Some(CpuCause {
        sentence: format!(
            "One thread of the server was busy for {} of the time, and keeps {} open that clients \
             have closed (CLOSE_WAIT): a loop that polls them never waits",
            whole_percent(busy),
            counted(count, "socket", "sockets")
        ),
        remedy: "close each socket when its peer has ended it (recv returns 0, EPOLLRDHUP), or \
                 take it out of the poll; strace -c -f -p PID shows an epoll_wait that returns at \
                 once"
            .to_owned(),
        evidence: vec![Evidence { counter, from: 0.0, to: count as f64, at_ms }],
    })
}

/// Returns the sockets that clients have closed and the server keeps, and since when: their number
/// never falls.
fn kept_closed(run: &RunView<'_>, hot: &[CpuUse]) -> Option<(u64, u64)> {
    let of = |used: &CpuUse| {
        let closed = run.value(Endpoint::Server, at(run, used)?, Metric::LISTENER_CLOSE_WAIT)?;
        Some((used.at_ms, u64::try_from(closed).ok()?))
    };
    let known: Vec<_> = hot.iter().filter_map(of).filter(|(_, closed)| *closed > 0).collect();
    let is_kept = known.len() * 2 >= hot.len() && known.is_sorted_by_key(|(_, closed)| *closed);
    let (first, last) = (known.first()?, known.last()?);
    (is_kept && known.len() >= LOW_MIN && last.1 >= CLOSED_MIN).then_some((first.0, last.1))
}

/// What users did in an interval.
struct Load {
    at_ms: u64,
    connected: u64,
    /// Requests and messages that users began, and those that they received, a second.
    per_s: f64,
    is_in_time: bool,
}

impl Load {
    fn of((before, now): (&Sample, &Sample)) -> Option<Self> {
        let load = &now.load()?.counters;
        let grown = load.since(&before.load()?.counters);
        let asked = grown.requests_begun() + grown.joins_started;
        let received = grown.messages_received.saturating_sub(grown.messages_answered);
        let answered = grown.requests_answered() + grown.joins_ok;
        Some(Self {
            at_ms: now.interval.at_ms,
            connected: load.connected,
            per_s: (asked.max(grown.connects_started) + received) as f64 * 1000.0
                / now.interval.span_ms as f64,
            is_in_time: is_in_time(now) && answered * 5 >= asked * 4,
        })
    }
}

/// Reports whether most answers of an interval were there at once: no queue was before the server.
fn is_in_time(sample: &Sample) -> bool {
    let kinds = Operation::requests().map(|operation| sample.latency(operation));
    let p50_us: Vec<u64> = kinds.filter(|kind| kind.count > 0).map(|kind| kind.p50_us).collect();
    !p50_us.is_empty() && p50_us.iter().all(|us| *us <= IN_TIME_US)
}

/// Returns the sample at the end of an interval.
fn at<'a>(run: &RunView<'a>, used: &CpuUse) -> Option<&'a Sample> {
    at_ms(run, used.at_ms)
}

fn at_ms<'a>(run: &RunView<'a>, at_ms: u64) -> Option<&'a Sample> {
    run.samples().iter().find(|sample| sample.interval.at_ms == at_ms)
}

/// The CPUs from which a collector's use matters.
const COLLECTOR_CPUS_MIN: f64 = 0.4;

/// How many times as much there is to do at most as in an interval with hardly anything to do.
const LOW_TIMES: f64 = 4.0;

/// The fewest such intervals, and the fewest with sockets that were kept.
const LOW_MIN: usize = 2;

/// The load that a run must reach: less may not keep a CPU busy at all.
const PER_S_MIN: f64 = 10.0;

/// The fewest sockets that clients have closed.
const CLOSED_MIN: u64 = 5;

/// The longest median of answers that wait in no queue.
const IN_TIME_US: u64 = 100_000;
