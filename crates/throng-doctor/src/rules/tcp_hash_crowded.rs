//! The kernel's table of TCP sockets has far fewer buckets than sockets.

use throng_measure::{Endpoint, Evidence, Finding, Metric, Severity};
use throng_report::render::count;

use super::Rule;
use crate::history::Sample;
use crate::kernels::{Kernel, kernels};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("tcp_hash_crowded", find);

fn find(run: &RunView<'_>) -> Option<Finding> {
    kernels(run).iter().find_map(|kernel| of_kernel(run, kernel))
}

/// Every packet finds its socket along a chain of a bucket. The rule requires long chains, and
/// connects that cost more CPU time than while the chains were short.
fn of_kernel(run: &RunView<'_>, kernel: &Kernel) -> Option<Finding> {
    let buckets = run.facts(kernel.endpoint).tcp_ehash_entries?.max(1);
    let chain =
        |sample: &Sample| Some(sockets(run, kernel.endpoint, sample)? as f64 / buckets as f64);
    let most =
        run.peak_of("sockstat.tcp.inuse + tw", |sample| sockets(run, kernel.endpoint, sample))?;
    let longest = most.value as f64 / buckets as f64;
    if longest < CROWDED {
        return None;
    }
    let is_short = |sample: &Sample| chain(sample).is_some_and(|chain| chain <= longest / 4.0);
    let is_long = |sample: &Sample| chain(sample).is_some_and(|chain| chain >= longest / 2.0);
    let (short, long) = (Cost::of(run, is_short)?, Cost::of(run, is_long)?);
    let times = long.us_per_connect() / short.us_per_connect();
    if times < DEARER {
        return None;
    }
    let severity = if times >= MUCH_DEARER { Severity::Slowed } else { Severity::Noted };
    let wanted = (most.value as u64).next_power_of_two();
    let finding = Finding::new(
        RULE.id,
        kernel.side,
        format!(
            "The TCP hash table of {} is crowded: {} sockets in {} buckets. A connect costs \
             {times:.1} times the kernel CPU time that it cost with a quarter of them.",
            kernel.whose,
            count(most.value as f64),
            count(buckets as f64)
        ),
    )
    .with_severity(severity)
    .with_confidence(0.7)
    .with_evidence([most])
    .with_evidence([Evidence {
        counter: "cpu_system_us per connect".to_owned(),
        from: short.us_per_connect(),
        to: long.us_per_connect(),
        at_ms: long.began_ms,
    }])
    .remedied_by(remedy(buckets, wanted));
    Some(finding)
}

/// Returns what to do. A network namespace may have a table of its own; the machine's is never so
/// small.
fn remedy(buckets: i64, wanted: u64) -> String {
    let in_a_namespace = format!(
        "sysctl -w net.ipv4.tcp_child_ehash_entries={wanted} and create the network namespace \
         again (unshare -n, ip netns add)"
    );
    if buckets < SMALLEST_OF_A_MACHINE {
        format!("this namespace has a small table of its own: outside of it, {in_a_namespace}")
    } else {
        format!(
            "{in_a_namespace}, which gets a table of that size; or boot with \
             thash_entries={wanted} on the kernel's command line"
        )
    }
}

/// Returns all sockets in the table, those in TIME-WAIT included.
fn sockets(run: &RunView<'_>, end: Endpoint, sample: &Sample) -> Option<i64> {
    let value = |name| run.value(end, sample, name);
    let six = value(Metric::SOCKSTAT_TCP6_INUSE).unwrap_or(0);
    Some(value(Metric::SOCKSTAT_TCP_INUSE)? + value(Metric::SOCKSTAT_TCP_TW)? + six)
}

/// The kernel's CPU time for generator and server, in intervals with hardly anything but connects.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    connects: u64,
    system_us: u64,
    began_ms: u64,
}

impl Cost {
    /// Returns the cost over the intervals for which `counts` is true, or `None` if there are too
    /// few connects.
    fn of(run: &RunView<'_>, counts: impl Fn(&Sample) -> bool) -> Option<Self> {
        let mut cost = Self::default();
        for (before, now) in run.steps().filter(|(_, now)| counts(now)) {
            let (from, to) = (before.load()?, now.load()?);
            let did = to.counters.since(&from.counters);
            if did.connects_ok == 0 || did.messages_sent + did.pushes_sent > did.connects_ok {
                continue;
            }
            let server = |sample: &Sample| {
                sample.interval.server.as_ref().map(|server| server.process.cpu_system_us)
            };
            let server = match (server(before), server(now)) {
                (Some(before), Some(now)) => now.saturating_sub(before),
                // Without the server's numbers, its cost is left out of every interval.
                (None, None) => 0,
                _ => continue,
            };
            if cost.connects == 0 {
                cost.began_ms = now.interval.at_ms;
            }
            let client = to.process.cpu_system_us.saturating_sub(from.process.cpu_system_us);
            cost.connects += did.connects_ok;
            cost.system_us += client + server;
        }
        (cost.connects >= CONNECTS_MIN && cost.system_us > 0).then_some(cost)
    }

    fn us_per_connect(&self) -> f64 {
        self.system_us as f64 / self.connects as f64
    }
}

/// The number of sockets a bucket above which chains count as long. The kernel's own table has
/// about one bucket for each 64 KiB of memory, and shorter chains cost less than the rest of a
/// packet's path.
const CROWDED: f64 = 4.0;

/// A size below that of any machine's table: a machine with a gigabyte of memory gets more buckets.
const SMALLEST_OF_A_MACHINE: i64 = 8_192;

/// The fewest connects from which a cost is known well enough.
const CONNECTS_MIN: u64 = 500;

/// The smallest factor by which a connect must cost more.
const DEARER: f64 = 1.5;

/// The factor from which the cost slows the run.
const MUCH_DEARER: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A run with 2,000 connects a second; after the fifth second each costs `times` as much.
    fn connecting(times: u64) -> Run {
        Run::quiet()
            .loaded(move |load, second| {
                load.counters.messages_sent = 0;
                load.counters.connects_ok = 2_000 * second;
                load.process.cpu_system_us =
                    40_000 * (second + second.saturating_sub(5) * (times - 1));
            })
            .growing(Metric::SOCKSTAT_TCP_INUSE, 0, 2_000, 0)
            .with(Metric::SOCKSTAT_TCP_TW, 0)
    }

    #[test]
    fn long_chains_that_cost_are_reported() {
        let run = connecting(4).with(Metric::SYSCTL_NET_IPV4_TCP_EHASH_ENTRIES, 2_500);
        let found = run.speaks(&RULE);
        assert_eq!(found.severity, Severity::Slowed);
        assert!(
            found.remedy.starts_with("this namespace has") && !found.remedy.contains("boot"),
            "{found}"
        );
        assert!(remedy(262_144, 1 << 21).contains("or boot with thash_entries=2097152"));
        assert!(
            found.text.contains("20k sockets in 2.5k buckets. A connect costs 3.5 times"),
            "{found}"
        );
    }

    #[test]
    fn long_chains_that_cost_nothing_and_short_ones_are_silent() {
        connecting(1).with(Metric::SYSCTL_NET_IPV4_TCP_EHASH_ENTRIES, 2_500).is_silent(&RULE);
        connecting(4).with(Metric::SYSCTL_NET_IPV4_TCP_EHASH_ENTRIES, 262_144).is_silent(&RULE);
        connecting(4).with(Metric::SYSCTL_NET_IPV4_TCP_EHASH_ENTRIES, 6_000).is_silent(&RULE);
        connecting(4).is_silent(&RULE);
    }

    #[test]
    fn cpu_time_of_a_server_that_was_silent_is_no_connects_cost() {
        let run = connecting(1).with(Metric::SYSCTL_NET_IPV4_TCP_EHASH_ENTRIES, 2_500);
        run.changed(|interval, second| {
            let mut server = throng_measure::ServerSnapshot::default();
            server.process.cpu_system_us = 30_000_000 + 10_000 * second;
            interval.server = (second != 7).then_some(server);
        })
        .is_silent(&RULE);
    }
}
