//! The series of a page: which numbers of an interval it draws, and of which kind they are.

use std::collections::BTreeMap;

use throng_measure::metric::{Metric, MetricKind, ProcessMetric};
use throng_measure::{
    Histogram, Interval, KernelCounters, LoadInterval, Operation, ServerSnapshot,
};

use super::model::SeriesKind;

/// Reads the series of intervals. Keeps the last value of each counter, because a page draws how
/// much it grew.
#[derive(Debug, Default)]
pub(super) struct Growths {
    last: BTreeMap<String, i64>,
}

impl Growths {
    /// Reads `interval` and calls `set` with the id, the kind and the value of each known series.
    pub(super) fn read(&mut self, interval: &Interval, mut set: impl FnMut(&str, SeriesKind, i64)) {
        for series in SERIES {
            let Some(value) = (series.of)(interval) else { continue };
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            match series.kind {
                Kind::Counter => self.grow(series.id, value, &mut set),
                Kind::Amount => set(series.id, SeriesKind::Growth, value),
                Kind::Gauge => set(series.id, SeriesKind::Gauge, value),
                Kind::Most => set(series.id, SeriesKind::Most, value),
            }
        }
        if let Some(server) = &interval.server {
            self.read_cores("server", &server.cpu_us_per_core, &mut set);
            if let Some(most) = server.mailbox_per_core.iter().max() {
                let most = i64::try_from(*most).unwrap_or(i64::MAX);
                set("server.mailbox_per_core", SeriesKind::Most, most);
            }
        }
        let Some(load) = &interval.load else { return };
        self.read_cores("load", &load.cpu_us_per_core, &mut set);
        self.read_errors(load, &mut set);
        for machine in load.machines.iter().take(MACHINES_MAX).filter(|machine| !machine.lost) {
            let us = machine.lag_us_p99.map(|us| i64::try_from(us).unwrap_or(i64::MAX));
            if let Some(us) = us {
                set(&format!("machines.{}.lag_us_p99", machine.name), SeriesKind::Most, us);
            }
        }
        for (operation, latencies) in operations(load) {
            if latencies.is_empty() {
                continue;
            }
            for (name, percent) in PERCENTILES {
                let us = latencies.percentile(*percent) as i64;
                set(&format!("{operation}.{name}"), SeriesKind::Most, us);
            }
        }
        self.read_kernel("kernel", &interval.kernel, &mut set);
        self.read_kernel("server_kernel", &interval.server_kernel, &mut set);
    }

    fn read_errors(&mut self, load: &LoadInterval, set: &mut impl FnMut(&str, SeriesKind, i64)) {
        let connects = load.connect_failed.0.iter().map(|(kind, n)| (format!("connect {kind}"), n));
        let others = load.errors.0.iter().map(|(kind, n)| (kind.clone(), n));
        for (kind, n) in connects.chain(others) {
            let mut id = format!("errors.{kind}");
            if self.last.len() >= COUNTERS_MAX && !self.last.contains_key(&id) {
                id = "errors.other".to_owned();
            }
            // A kind that was not there before has happened now for the first time.
            self.last.entry(id.clone()).or_default();
            self.grow(&id, i64::try_from(*n).unwrap_or(i64::MAX), set);
        }
    }

    /// Sets the CPU time of each core, `server.cpu_us_per_core.000`, as far as a page draws them.
    fn read_cores(&mut self, end: &str, us: &[u64], set: &mut impl FnMut(&str, SeriesKind, i64)) {
        for (core, us) in us.iter().take(CORES_MAX).enumerate() {
            let us = i64::try_from(*us).unwrap_or(i64::MAX);
            self.grow(&format!("{end}.cpu_us_per_core.{core:03}"), us, set);
        }
    }

    /// Sets the growth of a counter. A counter that falls begins anew: its process was restarted.
    fn grow(&mut self, id: &str, now: i64, set: &mut impl FnMut(&str, SeriesKind, i64)) {
        let Some(last) = self.last.get_mut(id) else {
            self.last.insert(id.to_owned(), now);
            return;
        };
        let before = std::mem::replace(last, now);
        set(id, SeriesKind::Growth, if now >= before { now - before } else { now });
    }

    fn read_kernel(
        &mut self,
        side: &str,
        kernel: &KernelCounters,
        set: &mut impl FnMut(&str, SeriesKind, i64),
    ) {
        for metric in KERNEL {
            let Some(value) = kernel.get(*metric) else { continue };
            let id = format!("{side}.{metric}");
            match metric.kind() {
                MetricKind::Counter => self.grow(&id, value, set),
                MetricKind::Gauge => set(&id, SeriesKind::Gauge, value),
                MetricKind::Maximum => set(&id, SeriesKind::Most, value),
            }
        }
    }
}

/// Returns the histograms of an interval by the name of their operation.
pub(super) fn operations(load: &LoadInterval) -> impl Iterator<Item = (&'static str, &Histogram)> {
    let latencies = Operation::ALL.map(|operation| (operation.name(), load.latency(operation)));
    latencies.into_iter().chain([("lag", &load.lag)])
}

/// A number of an interval.
struct NumberOfInterval {
    id: &'static str,
    kind: Kind,
    of: fn(&Interval) -> Option<u64>,
}

/// The kinds of numbers in a run file.
enum Kind {
    /// Counts from a start.
    Counter,
    /// The amount of the interval alone.
    Amount,
    Gauge,
    Most,
}

const fn series(
    id: &'static str,
    kind: Kind,
    of: fn(&Interval) -> Option<u64>,
) -> NumberOfInterval {
    NumberOfInterval { id, kind, of }
}

fn load(interval: &Interval) -> Option<&LoadInterval> {
    interval.load.as_ref()
}

fn server(interval: &Interval) -> Option<&ServerSnapshot> {
    interval.server.as_ref()
}

/// Series that every page may have. The ids are those of the run file.
const SERIES: &[NumberOfInterval] = &[
    // Rates of the generator divide by this time.
    series("load.grown_us", Kind::Amount, |i| {
        load(i).map(|load| load.grown_us).filter(|us| *us > 0)
    }),
    series("load.users_intended", Kind::Counter, |i| Some(load(i)?.counters.users_intended)),
    series("load.users_started", Kind::Counter, |i| Some(load(i)?.counters.users_started)),
    series("load.users_active", Kind::Gauge, |i| Some(load(i)?.counters.users_active)),
    series("load.connected", Kind::Gauge, |i| Some(load(i)?.counters.connected)),
    series("load.joined", Kind::Gauge, |i| Some(load(i)?.counters.joined)),
    series("load.iterations", Kind::Counter, |i| Some(load(i)?.counters.iterations)),
    series("load.connects_started", Kind::Counter, |i| Some(load(i)?.counters.connects_started)),
    series("load.connects_ok", Kind::Counter, |i| Some(load(i)?.counters.connects_ok)),
    series("load.connects_failed", Kind::Counter, |i| Some(load(i)?.counters.connects_failed)),
    series("load.messages_sent", Kind::Counter, |i| Some(load(i)?.counters.messages_sent)),
    series("load.messages_answered", Kind::Counter, |i| Some(load(i)?.counters.messages_answered)),
    series("load.messages_received", Kind::Counter, |i| Some(load(i)?.counters.messages_received)),
    series("load.turns_intended", Kind::Counter, |i| Some(load(i)?.counters.turns_intended)),
    series("load.turns_started", Kind::Counter, |i| Some(load(i)?.counters.turns_started)),
    series("load.joins_ok", Kind::Counter, |i| Some(load(i)?.counters.joins_ok)),
    series("load.pushes_sent", Kind::Counter, |i| Some(load(i)?.counters.pushes_sent)),
    series("load.pushes_ok", Kind::Counter, |i| Some(load(i)?.counters.pushes_ok)),
    series("load.http_ok", Kind::Counter, |i| Some(load(i)?.counters.http_ok)),
    series("load.cpu_us", Kind::Counter, |i| Some(load(i)?.process.cpu_us()).filter(|us| *us > 0)),
    series("load.rss_bytes", Kind::Gauge, |i| Some(load(i)?.process.rss_bytes).filter(|n| *n > 0)),
    series("load.pending_bytes", Kind::Gauge, |i| Some(load(i)?.core.pending_bytes)),
    series("load.turn_us_most", Kind::Most, |i| Some(load(i)?.core.turn_us_most)),
    series("load.bytes_received", Kind::Counter, |i| Some(load(i)?.core.bytes_received)),
    series("load.bytes_sent", Kind::Counter, |i| Some(load(i)?.core.bytes_sent)),
    series("machine.busy_us", Kind::Counter, |i| Some(i.machine.as_ref()?.cpu_busy_us)),
    series("machine.stolen_us", Kind::Counter, |i| Some(i.machine.as_ref()?.cpu_stolen_us)),
    series("machine.cpus", Kind::Gauge, |i| Some(i.machine.as_ref()?.cpus)),
    series("server_machine.busy_us", Kind::Counter, |i| {
        Some(i.server_machine.as_ref()?.cpu_busy_us)
    }),
    series("server_machine.cpus", Kind::Gauge, |i| Some(i.server_machine.as_ref()?.cpus)),
    series("server.open", Kind::Gauge, |i| Some(server(i)?.counters.open)),
    series("server.accepted", Kind::Counter, |i| Some(server(i)?.counters.accepted)),
    series("server.paused_cores", Kind::Gauge, |i| Some(server(i)?.counters.paused_cores)),
    series("server.registry_mailbox_most", Kind::Most, |i| {
        Some(server(i)?.counters.registry_mailbox_most)
    }),
    series("server.fanned_out", Kind::Counter, |i| Some(server(i)?.counters.fanned_out)),
    series("server.fanout_queued", Kind::Counter, |i| Some(server(i)?.counters.fanout_queued)),
    series("server.pending_bytes", Kind::Gauge, |i| Some(server(i)?.core.pending_bytes)),
    series("server.turn_us_most", Kind::Most, |i| Some(server(i)?.core.turn_us_most)),
    series("server.mail_dropped", Kind::Counter, |i| Some(server(i)?.core.mail_dropped)),
    series("server.cpu_us", Kind::Counter, |i| {
        Some(server(i)?.process.cpu_us()).filter(|us| *us > 0)
    }),
    series("server.rss_bytes", Kind::Gauge, |i| {
        Some(server(i)?.process.rss_bytes).filter(|n| *n > 0)
    }),
];

/// The most counters of one page. Only a damaged file has so many kinds of errors.
const COUNTERS_MAX: usize = 300;

/// The kernel's numbers that a page draws.
const KERNEL: &[Metric] = &[
    Metric::TCPEXT_LISTEN_OVERFLOWS,
    Metric::TCPEXT_LISTEN_DROPS,
    Metric::TCPEXT_TCP_REQ_Q_FULL_DROP,
    Metric::TCPEXT_TCP_REQ_Q_FULL_DO_COOKIES,
    Metric::TCPEXT_TCP_TIMEOUTS,
    Metric::TCPEXT_TCP_TIME_WAIT_OVERFLOW,
    Metric::TCPEXT_TCP_ABORT_ON_MEMORY,
    Metric::TCPEXT_TCP_MEMORY_PRESSURES,
    Metric::TCPEXT_RCV_PRUNED,
    Metric::TCP_RETRANS_SEGS,
    Metric::LISTENER_ACCEPT_QUEUE,
    Metric::LISTENER_ACCEPT_QUEUE_MOST,
    Metric::LISTENER_BACKLOG,
    Metric::LISTENER_DROPS,
    Metric::LISTENER_SYN_RECV,
    Metric::SOCKSTAT_TCP_MEM_PAGES,
    Metric::SOCKSTAT_TCP_TW,
    Metric::SOFTNET_DROPPED,
    Metric::CONNTRACK_DROPPED,
    Metric::CONNTRACK_COUNT,
    Metric::MEMORY_USED_BYTES,
    Metric::CGROUP_CPU_THROTTLED_US,
    ProcessMetric::CPU_US.server,
    ProcessMetric::RSS_BYTES.server,
    ProcessMetric::BUSIEST_THREAD_PERMILLE.server,
    ProcessMetric::BUSIEST_THREAD_PERMILLE.client,
];

/// The most machines of a fleet that a page draws.
const MACHINES_MAX: usize = 64;

/// The most cores of each end that a page draws.
const CORES_MAX: usize = 64;

const PERCENTILES: &[(&str, f64)] =
    &[("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9), ("max", 100.0)];
