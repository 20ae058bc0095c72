//! Memory ran out before all connections were open, or would run out.

use throng_measure::{Endpoint, Evidence, Finding, Metric, ProcessMetric, Severity, Side};
use throng_report::render::{bytes, count};

use super::accept_backlog::open;
use super::{Rule, RuleTrait, server_lost};
use crate::counted::{connections, times};
use crate::history::Sample;
use crate::impact::impact;
use crate::run_view::{Growth, Peak, RunView};

pub(super) const RULE: Rule = Rule::new("memory_runs_out", find)
    .with(&[RuleTrait::WithoutLoad])
    .explains(&["server_lost", "server_slow", "server_closes_early"]);

/// Looks first for what has happened, then for what would happen.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let of_a_group = |find: fn(&RunView<'_>, Group) -> Option<Finding>| {
        GROUPS.into_iter().find_map(|group| find(run, group))
    };
    of_a_group(killed)
        .or_else(|| of_a_group(limited))
        .or_else(|| exhausted(run))
        .or_else(|| of_a_group(foreseen_in_group))
        .or_else(|| foreseen(run))
}

/// A control group that was sampled. It is the group of the first sampled process: the server's if
/// its process is known, else the generator's.
#[derive(Clone, Copy)]
struct Group {
    endpoint: Endpoint,
    side: Side,
    whose: &'static str,
}

/// Both control groups, the server's first.
const GROUPS: [Group; 2] = [
    Group { endpoint: Endpoint::Server, side: Side::Server, whose: "the server's control group" },
    Group {
        endpoint: Endpoint::Client,
        side: Side::Client,
        whose: "the generator's control group",
    },
];

impl Group {
    /// Returns a gauge of this group, or `None` if the sampled group is the other one.
    fn value(self, run: &RunView<'_>, sample: &Sample, metric: Metric) -> Option<i64> {
        let is_servers =
            KNOWN_BY.iter().any(|known| run.value(self.endpoint, sample, *known).is_some());
        let is_it = is_servers == (self.endpoint == Endpoint::Server);
        run.value(self.endpoint, sample, metric).filter(|_| is_it)
    }

    fn growth(self, run: &RunView<'_>, counter: Metric) -> Option<Growth> {
        run.growth_of(counter.name(), |sample| self.value(run, sample, counter))
    }

    fn peak(self, run: &RunView<'_>, gauge: Metric) -> Option<Peak> {
        run.peak_of(gauge.name(), |sample| self.value(run, sample, gauge))
    }

    fn limit(self, run: &RunView<'_>) -> Option<i64> {
        run.samples().iter().find_map(|sample| self.value(run, sample, LIMIT))
    }
}

/// Looks for kills at a control group's memory limit.
fn killed(run: &RunView<'_>, group: Group) -> Option<Finding> {
    let kills = group.growth(run, Metric::CGROUP_MEMORY_OOM_KILLS)?;
    let limit = group.limit(run);
    let of = limit.map_or_else(String::new, |limit| format!(" of {}", bytes(limit as f64)));
    let victims = match kills.by() {
        1 => "a process".to_owned(),
        killed => format!("{} processes", count(killed as f64)),
    };
    let text = format!(
        "The kernel killed {victims} because the memory{of} of {} was full.{}",
        group.whose,
        reached(run)
    );
    let finding = Finding::new(RULE.id, group.side, text)
        .with_evidence([kills])
        .with_evidence(group.peak(run, USED))
        .remedied_by(GROUP_REMEDY);
    Some(finding)
}

/// Looks for a control group at its limit, where the kernel spends time to reclaim memory.
fn limited(run: &RunView<'_>, group: Group) -> Option<Finding> {
    let hits = group.growth(run, Metric::CGROUP_MEMORY_LIMIT_HITS)?;
    let impact = impact(run).filter(|impact| hits.began_ms <= impact.last_ms)?;
    let limit = group.limit(run)?;
    let text = format!(
        "The memory of {} ran into its limit of {} {}.{} Meanwhile {}.",
        group.whose,
        bytes(limit as f64),
        times(hits.by()),
        reached(run),
        impact.what
    );
    let finding = Finding::new(RULE.id, group.side, text)
        .with_severity(impact.severity)
        .with_confidence(0.8)
        .with_evidence([hits])
        .with_evidence([impact.evidence])
        .remedied_by(GROUP_REMEDY);
    Some(finding)
}

/// Looks for a server that ended when hardly any memory was left.
fn exhausted(run: &RunView<'_>) -> Option<Finding> {
    let (lost_ms, _) = server_lost::ended(run)?;
    let total = run.facts(Endpoint::Server).memory_bytes?;
    let before = run.samples().iter().filter(|sample| sample.interval.at_ms <= lost_ms);
    let least = before.filter_map(|sample| left(run, sample)).min()?;
    if least as f64 > total as f64 * EXHAUSTED_SHARE {
        return None;
    }
    let text = format!(
        "The server ended when only {} of {} memory was left: the kernel then kills the largest \
         process.{}",
        bytes(least as f64),
        bytes(total as f64),
        reached(run)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_confidence(0.9)
        .with_evidence(run.peak(Endpoint::Server, USED_OF_ALL))
        .remedied_by(
            "give the machine more memory, or each connection less (smaller buffers: --rcvbuf, \
         --sndbuf, net.ipv4.tcp_rmem)",
        );
    Some(finding)
}

/// Looks for a control group whose memory use grows with each connection and would reach the limit
/// before the last one is open.
fn foreseen_in_group(run: &RunView<'_>, group: Group) -> Option<Finding> {
    let value = |sample: &Sample, name| group.value(run, sample, name);
    let available = |sample: &Sample| Some(value(sample, LIMIT)? - value(sample, USED)?);
    let used = |sample: &Sample| value(sample, USED);
    let trend = MemoryTrend::of(run, USED, used, GROUP_TAKEN_BYTES_MIN, available)?;
    let text = too_few(run, &trend, group.whose)?;
    Some(noted(group.side, text, trend).remedied_by(GROUP_REMEDY))
}

/// Looks for a machine whose memory use grows with each connection and would reach its total.
fn foreseen(run: &RunView<'_>) -> Option<Finding> {
    let used = |sample: &Sample| run.value(Endpoint::Server, sample, USED_OF_ALL);
    let trend =
        MemoryTrend::of(run, USED_OF_ALL, used, TAKEN_BYTES_MIN, |sample| left(run, sample))?;
    let text = too_few(run, &trend, "the machine")?;
    let less = "or plan fewer connections, or give each less memory (--rcvbuf, --sndbuf, \
                net.ipv4.tcp_rmem)";
    Some(noted(Side::Server, text, trend).remedied_by(if run.header.target_is_here {
        format!("put generator and server on two machines, {less}")
    } else {
        format!("give the server's machine more memory, {less}")
    }))
}

/// Returns the machine's memory that is not in use. The kernel's own estimate,
/// `memory.available_bytes`, counts half of each socket's inode as reclaimable.
pub(super) fn left(run: &RunView<'_>, sample: &Sample) -> Option<i64> {
    let total = run.facts(Endpoint::Server).memory_bytes?;
    Some(total - run.value(Endpoint::Server, sample, USED_OF_ALL)?)
}

/// Returns a finding about memory that would run out.
fn noted(side: Side, text: String, trend: MemoryTrend) -> Finding {
    Finding::new(RULE.id, side, text)
        .with_severity(Severity::Noted)
        .with_confidence(0.7)
        .with_evidence([trend.evidence])
}

/// Returns a sentence about how many connections would fit, if that is fewer than planned.
fn too_few(run: &RunView<'_>, trend: &MemoryTrend, whose: &str) -> Option<String> {
    let missing = run.header.users_planned.saturating_sub(trend.connections);
    if trend.bytes_each * missing as f64 <= trend.available {
        return None;
    }
    let fit = trend.connections as f64 + trend.available / trend.bytes_each;
    Some(format!(
        "Memory would run out at about {} connections, before the {} that are planned. Each uses \
         {} of the memory of {whose}, kernel and programs together; {} were free at {}.",
        count(fit),
        count(run.header.users_planned as f64),
        bytes(trend.bytes_each),
        bytes(trend.available),
        count(trend.connections as f64)
    ))
}

/// The decrease of memory while connections opened.
struct MemoryTrend {
    connections: u64,
    available: f64,
    bytes_each: f64,
    evidence: Evidence,
}

/// Connections at a time, available memory in bytes, and the time in milliseconds.
type Point = (u64, f64, u64);

impl MemoryTrend {
    /// Returns `None` if memory did not decrease in step with the connections: another program may
    /// have used it.
    fn of(
        run: &RunView<'_>,
        gauge: Metric,
        value: impl Fn(&Sample) -> Option<i64>,
        taken_min: f64,
        available: impl Fn(&Sample) -> Option<i64>,
    ) -> Option<Self> {
        let point = |sample: &Sample| -> Option<Point> {
            let available = available(sample)? as f64;
            Some((sample.load()?.counters.connected, available, sample.interval.at_ms))
        };
        let points: Vec<_> = run.samples().iter().filter_map(point).collect();
        let first = points.first()?;
        let last = points.iter().rev().max_by_key(|(connected, ..)| *connected)?;
        let grown = last.0.checked_sub(first.0).filter(|grown| *grown >= CONNECTIONS_MIN)?;
        let taken = Some(first.1 - last.1).filter(|taken| *taken >= taken_min)?;
        let bytes_each = taken / grown as f64;
        let is_off = |point: &Point| {
            let expected = first.1 - bytes_each * point.0.saturating_sub(first.0) as f64;
            point.2 <= last.2 && (point.1 - expected).abs() > taken * OFF_MAX
        };
        let at = |at_ms| {
            run.samples().iter().find(|sample| sample.interval.at_ms == at_ms).and_then(&value)
        };
        (!points.iter().any(is_off)).then_some(Self {
            connections: last.0,
            available: last.1,
            bytes_each,
            evidence: Evidence {
                counter: gauge.to_string(),
                from: at(first.2)? as f64,
                to: at(last.2)? as f64,
                at_ms: last.2,
            },
        })
    }
}

/// Returns a sentence with the most connections, by the larger count of generator and server.
fn reached(run: &RunView<'_>) -> String {
    let open = run.samples().iter().filter_map(open).max().unwrap_or(0);
    match run.summary.users.connected_most.max(open) {
        0 => String::new(),
        1 => " There was 1 connection at most.".to_owned(),
        most => format!(" There were {} at most.", connections(most)),
    }
}

const USED_OF_ALL: Metric = Metric::MEMORY_USED_BYTES;
const USED: Metric = Metric::CGROUP_MEMORY_USED_BYTES;
const LIMIT: Metric = Metric::CGROUP_MEMORY_LIMIT_BYTES;

/// Gauges that exist only while the server process is sampled. The first survives the process being
/// killed.
const KNOWN_BY: [Metric; 2] = [ProcessMetric::FDS_MAX.server, ProcessMetric::CPU_US.server];

const GROUP_REMEDY: &str = "raise the limit of the control group (memory.max, \
                            memory.limit_in_bytes; a container's --memory): it includes the \
                            kernel's memory for sockets";

/// The share of all memory below which none is left: the kernel needs as much to work at all.
const EXHAUSTED_SHARE: f64 = 0.03;

/// The fewest connections, and the least memory, that tell how much each connection uses.
const CONNECTIONS_MIN: u64 = 1_000;
const TAKEN_BYTES_MIN: f64 = (64 << 20) as f64;
/// The least memory in a control group, where no other program uses memory.
const GROUP_TAKEN_BYTES_MIN: f64 = (4 << 20) as f64;

/// The largest distance of memory from the straight line, as a share of all that was used.
const OFF_MAX: f64 = 0.25;

#[cfg(test)]
mod tests {
    use throng_measure::{Operation, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    /// A run on a machine with 4 GB, of which each of the thousand connections uses `bytes_each`.
    fn falling(bytes_each: i64) -> Run {
        let mut run = Run::quiet().with(Metric::MEMORY_TOTAL_BYTES, 4_000_000_000).changed(
            move |interval, _| {
                let connected = interval.load.as_ref().unwrap().counters.connected as i64;
                interval.kernel.set(USED_OF_ALL, 1_000_000_000 + bytes_each * connected);
            },
        );
        run.header.users_planned = 20_000;
        run
    }

    #[test]
    fn memory_that_would_run_out_is_foreseen() {
        let found = falling(200_000).speaks(&RULE);
        assert_eq!(found.severity, Severity::Noted);
        assert_eq!(
            found.first_sentence(),
            "Memory would run out at about 15k connections, before the 20k that are planned"
        );
    }

    #[test]
    fn reaching_the_limit_of_a_control_group_is_foreseen() {
        let mut run = falling(0)
            .with(LIMIT, 12 << 20)
            .with(ProcessMetric::FDS_MAX.server, 1_024)
            .changed(|interval, _| {
                let connected = interval.load.as_ref().unwrap().counters.connected as i64;
                interval.kernel.set(USED, 1_000_000 + 6_000 * connected);
            });
        assert!(run.speaks(&RULE).text.contains("of the memory of the server's control group"));
        run.header.users_planned = 1_500;
        run.is_silent(&RULE);
    }

    #[test]
    fn memory_that_is_enough_is_no_finding() {
        falling(100_000).is_silent(&RULE);
        let mut met = falling(200_000);
        met.header.users_planned = 1_000;
        met.is_silent(&RULE);
    }

    #[test]
    fn memory_that_another_program_took_at_once_is_not_the_connections() {
        let elsewhere = falling(0).changed(|interval, second| {
            let taken = if second > 1 { 500_000_000 } else { 0 };
            interval.kernel.set(USED_OF_ALL, 1_000_000_000 + taken);
        });
        elsewhere.is_silent(&RULE);
    }

    #[test]
    fn a_server_that_ended_when_memory_was_full_was_killed_for_it() {
        let lost = |bytes_each| {
            falling(bytes_each).changed(|interval, second| {
                if second == 7 {
                    let kind = RunEventKind::ServerLost { reason: "gone".into() };
                    interval.events.push(RunEvent::new(7_000, kind));
                }
                if second > 7 {
                    interval.load.as_mut().unwrap().counters.connected = 0;
                }
            })
        };
        let found = lost(2_950_000).speaks(&RULE);
        assert_eq!(found.severity, Severity::Stopped);
        assert!(found.first_sentence().contains("only 47.7 MiB of 3.73 GiB"), "{found}");
        lost(100_000).is_silent(&RULE);
        lost(2_950_000).check_all(&["memory_runs_out", "server_lost"]);
    }

    #[test]
    fn a_control_group_that_kills_or_delays_is_reported() {
        let grouped =
            || Run::quiet().with(LIMIT, 100 << 20).with(ProcessMetric::FDS_MAX.server, 1_024);
        let killed = grouped().growing(Metric::CGROUP_MEMORY_OOM_KILLS, 2, 1, 7).speaks(&RULE);
        assert!(killed.text.contains("of 100 MiB of the server's control group"), "{killed}");
        assert_eq!(killed.side, Side::Server);
        let hits = grouped().growing(Metric::CGROUP_MEMORY_LIMIT_HITS, 0, 90, 3);
        hits.is_silent(&RULE);
        let hits = hits.loaded(|load, _| load.times[Operation::Message].record_n(400_000, 500));
        assert_eq!(hits.speaks(&RULE).severity, Severity::Slowed);
    }

    #[test]
    fn without_the_servers_process_the_group_is_the_generators() {
        let kills = |run: Run| run.growing(Metric::CGROUP_MEMORY_OOM_KILLS, 2, 1, 7);
        let found = kills(Run::quiet()).speaks(&RULE);
        assert_eq!(found.side, Side::Client);
        assert!(found.text.contains("of the generator's control group"), "{found}");
        // A recorder on the server's machine reports its own group, which is neither the server's
        // nor the generator's.
        let watch = kills(Run::quiet()).changed(|interval, _| {
            interval.server_kernel = std::mem::take(&mut interval.kernel);
        });
        watch.is_silent(&RULE);
        // Once the server is known, the group is another one with another count.
        let found_late = kills(Run::quiet()).changed(|interval, second| {
            interval.kernel.set(Metric::CGROUP_MEMORY_OOM_KILLS, 7 * i64::from(second > 0));
            if second > 0 {
                interval.kernel.set(ProcessMetric::FDS_MAX.server, 1_024);
            }
        });
        found_late.is_silent(&RULE);
    }
}
