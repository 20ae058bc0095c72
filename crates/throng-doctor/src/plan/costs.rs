//! The costs of one connection, one connect and one message on each side, and their sources.

use serde::Serialize;
use throng_measure::runfile::RunFile;
use throng_measure::{Interval, LoadInterval, Metric, ProcessMetric, ServerSnapshot};
use throng_report::Summary;

use super::FleetSpec;
use super::apportion::{Work, apportion};
use crate::preflight::KERNEL_BYTES;

/// A cost, in bytes or in microseconds of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Amount.
    pub value: f64,
    /// Source of the amount.
    pub source: CostSource,
}

/// The source of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// Documented in `docs/numbers.md`, for another machine.
    Documented,
    /// Sizes of this machine's kernel objects.
    Kernel,
    /// Calibration of a few seconds on this machine.
    Measured,
    /// A run file.
    Run,
}

/// The costs of one side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EndCosts {
    /// Memory of the program for each connection, in bytes.
    pub bytes: Cost,
    /// CPU time of each connect with its close, in microseconds.
    pub connect_us: Cost,
    /// CPU time of each message with its answer, in microseconds.
    pub message_us: Cost,
    /// CPU time of each delivery of a broadcast, in microseconds.
    pub delivery_us: Cost,
}

/// The costs of a connection, its connect and its messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Kernel memory for each side of an idle connection.
    pub kernel_bytes: Cost,
    /// Costs of a server.
    pub server: EndCosts,
    /// Costs of a generator.
    pub generator: EndCosts,
    /// CPUs of the machine on which the costs were measured.
    pub cpus: u64,
    /// Whether the server of the run is another program than throng, or its program is not known.
    /// Documented costs of a server are throng's.
    pub server_is_other: bool,
}

impl Costs {
    /// Returns the costs in `docs/numbers.md`: WebSocket users joined to a channel, connects at 40
    /// % of the maximum rate, messages at half of it.
    pub fn documented() -> Self {
        Self {
            kernel_bytes: documented(KERNEL_BYTES as f64),
            server: EndCosts {
                bytes: documented(222.0),
                connect_us: documented(64.5),
                message_us: documented(11.8),
                delivery_us: documented(7.6),
            },
            generator: EndCosts {
                bytes: documented(288.0),
                connect_us: documented(100.3),
                message_us: documented(15.2),
                delivery_us: documented(4.2),
            },
            cpus: 2,
            server_is_other: false,
        }
    }

    /// Adds what TLS 1.3 costs, as documented in `docs/decisions.md`: a full handshake for each
    /// connect, with an ECDSA certificate; the keys of each connection; a record for each message.
    #[must_use]
    pub fn over_tls(mut self) -> Self {
        for (end, handshake_us) in [(&mut self.server, 166.0), (&mut self.generator, 305.0)] {
            end.bytes.value += 144.0;
            end.connect_us.value += handshake_us;
            end.message_us.value += 0.75;
        }
        self.server.delivery_us.value += 0.6;
        self.generator.delivery_us.value += 0.4;
        self
    }

    /// Replaces documented costs with those of a run, as far as it has them.
    #[must_use]
    pub fn with_run(mut self, run: &RunFile) -> Self {
        let summary = Summary::of(run);
        let generator = &summary.generator;
        self.generator.bytes.replace(generator.rss_bytes_per_user, CostSource::Run);
        self.generator.replace_with(&work_of_generator(run));
        let server_bytes = summary.server_costs().and_then(|costs| costs.rss_bytes_per_connection);
        self.server.bytes.replace(server_bytes, CostSource::Run);
        self.server_is_other = summary.server.is_none();
        self.server.replace_with(&match self.server_is_other {
            true => work_of_other_server(run),
            false => work_of_server(run),
        });
        self.kernel_bytes.replace(kernel_bytes(run, &summary), CostSource::Run);
        if summary.machine.cpus > 0 {
            self.cpus = summary.machine.cpus;
        }
        self
    }

    /// Returns the costs of another program's server that are throng's, because the run does not
    /// tell them.
    pub(super) fn borrowed(&self) -> Vec<&'static str> {
        let EndCosts { bytes, connect_us, message_us, delivery_us } = self.server;
        let costs = [
            ("the memory", bytes),
            ("a connect", connect_us),
            ("a message", message_us),
            ("a delivery", delivery_us),
        ];
        let is_borrowed = |(_, cost): &(_, Cost)| cost.source == CostSource::Documented;
        let borrowed = costs.into_iter().filter(|_| self.server_is_other).filter(is_borrowed);
        borrowed.map(|(what, _)| what).collect()
    }

    /// Returns the least trustworthy source of the costs that the servers of a plan depend on.
    pub fn weakest_source(&self, spec: &FleetSpec) -> CostSource {
        let EndCosts { bytes, connect_us, message_us, delivery_us } = self.server;
        let of_work = [
            (spec.messages_per_s > 0.0).then_some(message_us),
            spec.broadcast_every_s.map(|_| delivery_us),
        ];
        let always = [self.kernel_bytes, bytes, connect_us];
        let costs = always.into_iter().chain(of_work.into_iter().flatten());
        costs.map(|cost| cost.source).min().unwrap_or(CostSource::Documented)
    }
}

impl EndCosts {
    /// Replaces the costs of each kind of work that a run did.
    fn replace_with(&mut self, run: &[Work<3>]) {
        let prior = [self.connect_us.value, self.message_us.value, self.delivery_us.value];
        let [connect_us, message_us, delivery_us] = apportion(run, prior);
        self.connect_us.replace(connect_us, CostSource::Run);
        self.message_us.replace(message_us, CostSource::Run);
        self.delivery_us.replace(delivery_us, CostSource::Run);
    }
}

impl Cost {
    /// Replaces the cost if there is a usable value.
    pub fn replace(&mut self, value: Option<f64>, source: CostSource) {
        if let Some(value) = value.filter(|value| value.is_finite() && *value > 0.0) {
            *self = Self { value, source };
        }
    }
}

fn documented(value: f64) -> Cost {
    Cost { value, source: CostSource::Documented }
}

/// Returns the generator's connects, messages and deliveries in each interval before users left.
fn work_of_generator(run: &RunFile) -> Vec<Work<3>> {
    let all: Vec<&LoadInterval> =
        before_the_end(run).filter_map(|interval| interval.load.as_ref()).collect();
    let work = all.windows(2).map(|pair| {
        let (before, now) = (pair[0], pair[1]);
        let cpu_us = now.process.cpu_us().saturating_sub(before.process.cpu_us());
        Work { done: done_by_users(before, now), cpu_us }
    });
    keep_busy(work.collect())
}

/// Returns the connects, messages and deliveries of all users between two intervals.
fn done_by_users(before: &LoadInterval, now: &LoadInterval) -> [u64; 3] {
    let grown = now.counters.since(&before.counters);
    // In a run without answers, the messages it sends are its work.
    let plain = match now.counters.messages_answered {
        0 => grown.messages_sent,
        _ => grown.messages_answered,
    };
    let replied = grown.pushes_ok + grown.heartbeats_answered;
    let replies = grown.messages_answered + replied + grown.joins_ok;
    let deliveries = grown.messages_received.saturating_sub(replies);
    [grown.connects_ok, plain + replied + grown.http_ok, deliveries]
}

/// Returns the server's connects, messages and deliveries in each interval before users left.
fn work_of_server(run: &RunFile) -> Vec<Work<3>> {
    let all: Vec<&ServerSnapshot> =
        before_the_end(run).filter_map(|interval| interval.server.as_ref()).collect();
    let work = all.windows(2).map(|pair| {
        let (before, now) = (pair[0], pair[1]);
        let grown = now.counters.since(&before.counters);
        let messages = grown.messages_received.saturating_sub(grown.joins);
        let done = [grown.accepted, messages, grown.fanned_out];
        Work { done, cpu_us: now.process.cpu_us().saturating_sub(before.process.cpu_us()) }
    });
    keep_busy(work.collect())
}

/// Returns the work of a server that is not throng's: what the users did, and the CPU time that the
/// kernel of its machine counted. A process that was replaced counts from its beginning.
fn work_of_other_server(run: &RunFile) -> Vec<Work<3>> {
    let cpu_us = |interval: &Interval| {
        let kernels = [&interval.server_kernel, &interval.kernel];
        let us = kernels.into_iter().find_map(|it| it.get(ProcessMetric::CPU_US.server))?;
        u64::try_from(us).ok()
    };
    let all: Vec<(&LoadInterval, u64)> = before_the_end(run)
        .filter_map(|interval| Some((interval.load.as_ref()?, cpu_us(interval)?)))
        .collect();
    let work = all.windows(2).map(|pair| {
        let ((before, before_us), (now, now_us)) = (pair[0], pair[1]);
        let cpu_us = now_us.checked_sub(before_us).unwrap_or(now_us);
        Work { done: done_by_users(before, now), cpu_us }
    });
    keep_busy(work.collect())
}

/// Returns the intervals before users left.
fn before_the_end(run: &RunFile) -> impl Iterator<Item = &Interval> {
    let leaves = |interval: &Interval| interval.load.as_ref().is_some_and(LoadInterval::is_leaving);
    run.intervals.iter().take_while(move |interval| !leaves(interval))
}

/// Removes intervals with little work: their fixed costs would count as costs of that work.
fn keep_busy(mut work: Vec<Work<3>>) -> Vec<Work<3>> {
    let most = work.iter().map(|work| work.cpu_us).max().unwrap_or(0);
    work.retain(|work| work.cpu_us.saturating_mul(BUSY) >= most);
    work
}

/// Returns the kernel's memory for each side of a connection: the growth of used memory less that
/// of both programs. It is known only if both were on the machine, with enough connections to show.
fn kernel_bytes(run: &RunFile, summary: &Summary) -> Option<f64> {
    let connections = summary.users.connected_most;
    if !run.header.target_is_here || connections < MEMORY_SHOWS {
        return None;
    }
    let used = |interval: &Interval| interval.kernel.get(Metric::MEMORY_USED_BYTES);
    let at_start = run.intervals.first().and_then(used)?;
    let most = run.intervals.iter().filter_map(used).max()?;
    let grew = (most - at_start) as f64 / connections as f64;
    let generator = summary.generator.rss_bytes_per_user?;
    let server = summary.server_costs()?.rss_bytes_per_connection?;
    Some((grew - generator - server) / 2.0)
}

/// The share of the busiest interval's CPU time, one in so many, below which an interval was idle.
const BUSY: u64 = 20;

/// The fewest connections whose memory shows among the machine's other changes.
const MEMORY_SHOWS: u64 = 20_000;

#[cfg(test)]
mod tests {
    use throng_measure::runfile::{RunEnd, RunHeader};

    use super::*;

    fn run(connections: u64, used_after: i64) -> RunFile {
        let at = |at_ms: u64, n: u64, used: i64| {
            let mut load = LoadInterval::default();
            load.counters.connected = n;
            load.counters.connects_ok = n;
            load.process.pid = 1;
            load.process.rss_bytes_at_start = 1_000_000;
            load.process.rss_bytes = 1_000_000 + 300 * n;
            load.process.cpu_user_us = 50 * n;
            let mut server = ServerSnapshot::default();
            server.counters.open = n;
            server.counters.accepted = n;
            server.process.pid = 2;
            server.process.rss_bytes_at_start = 1_000_000;
            server.process.rss_bytes = 1_000_000 + 100 * n;
            server.process.cpu_user_us = 30 * n;
            Interval {
                at_ms,
                span_ms: if at_ms == 0 { 0 } else { 1_000 },
                load: Some(load),
                server: Some(server),
                kernel: [(Metric::MEMORY_USED_BYTES, used)].into(),
                ..Interval::default()
            }
        };
        RunFile {
            header: RunHeader::default(),
            intervals: vec![at(0, 0, 1_000_000_000), at(1_000, connections, used_after)],
            end: Some(RunEnd::default()),
            lines_torn: 0,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_run_takes_the_place_of_what_is_documented_as_far_as_it_goes() {
        let costs = Costs::documented().with_run(&run(100_000, 1_840_000_000));
        assert_eq!(costs.generator.bytes, Cost { value: 300.0, source: CostSource::Run });
        assert_eq!(costs.server.bytes, Cost { value: 100.0, source: CostSource::Run });
        assert_eq!((costs.generator.connect_us.value, costs.server.connect_us.value), (50.0, 30.0));
        assert_eq!(costs.server.message_us, Costs::documented().server.message_us);
        assert_eq!(costs.kernel_bytes, Cost { value: 4_000.0, source: CostSource::Run });
    }

    #[test]
    fn a_server_that_is_not_throngs_has_the_costs_that_its_kernel_counts() {
        let mut foreign = run(100_000, 1_840_000_000);
        for (interval, us) in foreign.intervals.iter_mut().zip([70_000, 70_000 + 9_000_000]) {
            interval.server = None;
            interval.kernel.set(ProcessMetric::CPU_US.server, us);
            interval.kernel.set(ProcessMetric::RSS_BYTES.server, 1_000_000 + us * 10);
        }
        let costs = Costs::documented().with_run(&foreign);
        assert_eq!(costs.server.connect_us, Cost { value: 90.0, source: CostSource::Run });
        assert_eq!(costs.server.bytes, Cost { value: 900.0, source: CostSource::Run });
        assert!(costs.server_is_other);
        // The run tells nothing of its server.
        foreign.intervals.iter_mut().for_each(|interval| interval.kernel = Default::default());
        let costs = Costs::documented().with_run(&foreign);
        assert_eq!((costs.server, costs.server_is_other), (Costs::documented().server, true));
        assert!(!Costs::documented().with_run(&run(100_000, 0)).server_is_other);
    }

    #[test]
    fn the_kernels_memory_of_few_connections_or_of_another_machine_is_not_used() {
        let documented = Costs::documented().kernel_bytes;
        let few = run(19_999, 9_000_000_000);
        assert_eq!(Costs::documented().with_run(&few).kernel_bytes, documented);
        let mut elsewhere = run(100_000, 1_840_000_000);
        elsewhere.header.target_is_here = false;
        assert_eq!(Costs::documented().with_run(&elsewhere).kernel_bytes, documented);
        let shrank = run(100_000, 500_000_000);
        assert_eq!(Costs::documented().with_run(&shrank).kernel_bytes, documented);
    }
}
