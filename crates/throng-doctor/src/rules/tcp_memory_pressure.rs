//! The machine's sockets hold more memory than TCP may use.

use throng_measure::{Finding, Limit, Metric};

use super::{Rule, retransmission};
use crate::counted::times;
use crate::kernels::{Kernel, kernels};
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("tcp_memory_pressure", find).explains(&[
    "retransmits",
    "server_slow",
    "slow_consumers",
    "syn_queue_overflow",
]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    kernels(run).iter().find_map(|kernel| of_kernel(run, kernel))
}

/// The limit is the machine's, and the kernel adds its counters to the namespace of the socket that
/// hits it first. Drops at single sockets with full buffers (`PruneCalled`, `TCPRcvQDrop`) are
/// evidence only while TCP's memory is short.
fn of_kernel(run: &RunView<'_>, kernel: &Kernel) -> Option<Finding> {
    let began = run.growth(kernel.endpoint, PRESSURES_BEGUN);
    let lasted = run
        .growth(kernel.endpoint, PRESSURE_MS)
        .or_else(|| run.growth_to_the_end(kernel.endpoint, PRESSURE_MS))
        .filter(|growth| growth.by() <= growth.began_ms);
    let pressure: Vec<_> = began.into_iter().chain(lasted).collect();
    let pages = run.peak(kernel.endpoint, Metric::SOCKSTAT_TCP_MEM_PAGES);
    let from = run.facts(kernel.endpoint).tcp_mem_pressure_pages;
    let most = run.facts(kernel.endpoint).tcp_mem_max_pages;
    let over = pages.filter(|pages| from.is_some_and(|from| pages.value >= from));
    if pressure.is_empty() && over.is_none() {
        return None;
    }
    let symptom = retransmission::by_everything(run)?;
    let held = run.peak(kernel.endpoint, Metric::SOCKSTAT_TCP_MEM_PAGES);
    let remedy = remedy(run, kernel, most, held.as_ref().map(|held| held.value));
    let bytes = |pages: i64| format!("{} MiB", pages * PAGE_BYTES / (1 << 20));
    let amounts = match (&held, most) {
        (Some(held), Some(most)) => {
            format!(": its sockets held {} of {}", bytes(held.value), bytes(most))
        }
        (Some(held), None) => format!(": its sockets held {}", bytes(held.value)),
        _ => String::new(),
    };
    let lost: Vec<_> =
        LOST.iter().filter_map(|counter| run.growth(kernel.endpoint, *counter)).collect();
    let drops = Growth::total(&lost);
    let finding = Finding::new(
        RULE.id,
        kernel.side,
        format!(
            "TCP on {} ran short of memory (net.ipv4.tcp_mem){amounts}. The kernel shrinks every \
             buffer{}, and senders wait.",
            kernel.whose,
            if drops > 0 {
                format!(", dropped received segments {}", times(drops))
            } else {
                String::new()
            }
        ),
    )
    .with_severity(symptom.severity)
    .with_evidence(pressure.iter().chain(&lost).map(Growth::evidence))
    .with_evidence(held)
    .with_evidence([symptom.evidence])
    .remedied_by(remedy);
    Some(finding)
}

/// Returns what to do: a higher limit, up to half of the machine's memory, because programs cannot
/// use what sockets hold. If the limit is unknown, the memory that sockets held shows how high it
/// may be.
fn remedy(run: &RunView<'_>, kernel: &Kernel, most: Option<i64>, held: Option<i64>) -> String {
    let half = run.facts(kernel.endpoint).memory_bytes.map(|total| total / 2 / PAGE_BYTES);
    let wanted = most.or(held).unwrap_or(0).saturating_mul(4).max(WANTED_PAGES);
    let wanted = wanted.min(half.unwrap_or(wanted));
    if most.is_some_and(|most| most >= wanted) {
        return "use smaller buffers for each connection (throng serve --sndbuf, --rcvbuf), or add \
                memory: net.ipv4.tcp_mem already allows half of it"
            .to_owned();
    }
    let pages = format!("{} {} {wanted}", wanted / 2, wanted / 4 * 3);
    format!(
        "{}, or use smaller buffers for each connection (throng serve --sndbuf, --rcvbuf)",
        Limit::TCP_MEMORY.raise(pages)
    )
}

/// The counter that grows when memory pressure begins.
const PRESSURES_BEGUN: Metric = Metric::TCPEXT_TCP_MEMORY_PRESSURES;

/// The counter that grows when memory pressure ends, which may be when the users leave, by the
/// milliseconds that it lasted. A growth beyond the run's own length includes time before the run.
const PRESSURE_MS: Metric = Metric::TCPEXT_TCP_MEMORY_PRESSURES_CHRONO;

/// Counters of what the kernel frees or drops under memory pressure.
const LOST: [Metric; 4] = [
    Metric::TCPEXT_TCP_ABORT_ON_MEMORY,
    Metric::TCPEXT_TCP_RCV_Q_DROP,
    Metric::TCPEXT_RCV_PRUNED,
    Metric::TCPEXT_TCP_OFO_DROP,
];

/// Bytes of a page. With larger pages the amounts in the text are too small.
const PAGE_BYTES: i64 = throng_machine::meminfo::PAGE_BYTES as i64;

/// Pages of 8 GiB: room for half a million connections with 16 KiB each.
const WANTED_PAGES: i64 = 2_097_152;

#[cfg(test)]
mod tests {
    use throng_measure::{Operation, Side};

    use super::super::fixture::Run;
    use super::*;

    fn slow(run: Run) -> Run {
        run.loaded(|load, second| {
            if second > 5 {
                load.times[Operation::Message].record_n(400_000, 50);
            }
        })
    }

    #[test]
    fn pressure_with_a_symptom_is_reported_with_the_memory_held() {
        let run = slow(Run::quiet())
            .growing(Metric::TCPEXT_TCP_MEMORY_PRESSURES, 4, 1, 5)
            .growing(Metric::TCPEXT_TCP_RCV_Q_DROP, 0, 100, 5)
            .with(Metric::SYSCTL_NET_IPV4_TCP_MEM_MAX_PAGES, 512)
            .growing(Metric::SOCKSTAT_TCP_MEM_PAGES, 0, 100, 0);
        let found = run.speaks(&RULE);
        assert!(found.text.contains("its sockets held 3 MiB of 2 MiB"), "{found}");
        assert!(found.text.contains("500 times"), "{found}");
    }

    #[test]
    fn the_side_is_that_of_the_kernel() {
        let side = |run: &Run| run.speaks(&RULE).side;
        let one = || slow(Run::quiet()).growing(PRESSURES_BEGUN, 4, 1, 5);
        assert_eq!(side(&one()), Side::Kernel);
        let of_client = one().changed(|interval, _| interval.server_kernel.set(PRESSURES_BEGUN, 4));
        assert_eq!(side(&of_client), Side::Client);
        let of_server = one().changed(|interval, _| {
            interval.server_kernel = std::mem::take(&mut interval.kernel);
        });
        assert_eq!(side(&of_server), Side::Server);
    }

    #[test]
    fn no_more_is_advised_than_half_of_what_the_machine_has() {
        let remedy = |total: i64, most: i64| {
            let run = slow(Run::quiet())
                .growing(Metric::TCPEXT_TCP_MEMORY_PRESSURES, 4, 1, 5)
                .with(Metric::MEMORY_TOTAL_BYTES, total)
                .with(Metric::SYSCTL_NET_IPV4_TCP_MEM_MAX_PAGES, most);
            run.speaks(&RULE).remedy
        };
        assert!(remedy(64 << 30, 512).contains("\"1048576 1572864 2097152\""));
        assert!(remedy(1 << 30, 512).contains("\"65536 98304 131072\""));
        assert!(remedy(1 << 30, 131_072).starts_with("use smaller buffers"));
    }

    #[test]
    fn pressure_from_before_the_run_shows_in_the_pages() {
        let run = slow(Run::quiet())
            .with(Metric::SYSCTL_NET_IPV4_TCP_MEM_PRESSURE_PAGES, 300)
            .with(Metric::SOCKSTAT_TCP_MEM_PAGES, 900);
        run.speaks(&RULE);
    }

    #[test]
    fn pressure_that_lasts_until_the_users_have_left_is_reported() {
        let run = slow(Run::quiet()).changed(|interval, second| {
            let load = interval.load.as_mut().unwrap();
            if second > 8 {
                load.phase = throng_measure::LEAVING.into();
            }
            let ended_ms = if second == 10 { 9_500 } else { 0 };
            interval.kernel.set(PRESSURE_MS, ended_ms);
        });
        let found = run.speaks(&RULE);
        assert!(
            found.evidence.iter().any(|evidence| evidence.counter == PRESSURE_MS.name()),
            "{found}"
        );
    }

    #[test]
    fn a_socket_that_is_full_for_itself_is_no_pressure() {
        let run = slow(Run::quiet())
            .growing(Metric::TCPEXT_TCP_RCV_Q_DROP, 0, 100, 5)
            .growing(Metric::TCPEXT_PRUNE_CALLED, 0, 100, 5)
            .with(Metric::SYSCTL_NET_IPV4_TCP_MEM_PRESSURE_PAGES, 300_000)
            .with(Metric::SOCKSTAT_TCP_MEM_PAGES, 9_000);
        run.is_silent(&RULE);
    }

    #[test]
    fn pressure_that_ends_early_in_the_run_is_no_finding() {
        let left = |ms| {
            slow(Run::quiet()).changed(move |interval, second| {
                let total = if second > 2 { ms } else { 0 };
                interval.kernel.set(Metric::TCPEXT_TCP_MEMORY_PRESSURES_CHRONO, total);
            })
        };
        left(5_900).is_silent(&RULE);
        left(1_500).speaks(&RULE);
    }

    #[test]
    fn all_answers_may_be_late_under_memory_pressure() {
        let run = Run::quiet().growing(Metric::TCPEXT_TCP_MEMORY_PRESSURES, 4, 1, 5);
        let late = |load: &mut throng_measure::LoadInterval, _: u64| {
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(400_000, 50);
        };
        run.loaded(late).speaks(&RULE);
    }

    #[test]
    fn pressure_without_a_symptom_is_no_finding() {
        Run::quiet().growing(Metric::TCPEXT_TCP_MEMORY_PRESSURES, 0, 1, 5).is_silent(&RULE);
    }
}
