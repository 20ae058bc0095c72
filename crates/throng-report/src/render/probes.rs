//! The table of probes.

use throng_measure::ProbeCounters;

use super::{Table, count, micros, or_dash};
use crate::summary::BroadcastSummary;

/// Returns the deliveries of each probe; of many probes, the first and the last ones.
pub(crate) fn probes(broadcast: &BroadcastSummary) -> Table {
    let mut table = Table::with_head([
        "broadcast",
        "due",
        "expected",
        "delivered",
        "first",
        "p50",
        "p99",
        "last",
        "left",
        "missing",
        "twice",
        "unordered",
    ]);
    let all = &broadcast.probes;
    for (place, probe) in all.iter().enumerate() {
        let in_the_middle = place >= PROBES_SHOWN / 2 && place + PROBES_SHOWN / 2 < all.len();
        if in_the_middle && all.len() > PROBES_SHOWN {
            continue;
        }
        let c = &probe.counters;
        let mut cells = vec![
            probe.number.to_string(),
            format!("{:.1} s", probe.due_ms as f64 / 1000.0),
            count(c.expected as f64),
            count(c.delivered as f64),
        ];
        let latencies = [probe.first_us, probe.p50_us, probe.p99_us, probe.last_us];
        cells.extend(latencies.map(|us| or_dash(us, micros)));
        cells.extend([c.left, c.missing, c.duplicates, c.out_of_order].map(|n| count(n as f64)));
        table.row(cells);
    }
    table
}

/// Returns the columns of the table of probes that are left out where it is too wide: those that
/// are 0 in every row, then the median.
pub(super) fn probes_left_out_first(broadcast: &BroadcastSummary) -> Vec<&'static str> {
    let sum = |of: fn(&ProbeCounters) -> u64| -> u64 {
        broadcast.probes.iter().map(|probe| of(&probe.counters)).sum()
    };
    let zeros = [
        ("unordered", sum(|c| c.out_of_order)),
        ("twice", sum(|c| c.duplicates)),
        ("left", sum(|c| c.left)),
    ];
    let zeros = zeros.into_iter().filter(|(_, sum)| *sum == 0).map(|(name, _)| name);
    zeros.chain(["p50"]).collect()
}

/// Rows of the table of probes.
const PROBES_SHOWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::super::render_details;
    use super::*;
    use crate::Summary;
    use throng_measure::ProbeReport;

    #[test]
    fn each_probe_has_a_row_and_of_many_the_middle_is_left_out() {
        let probe = |number| ProbeReport {
            number,
            due_ms: number * 10_000,
            counters: ProbeCounters { expected: 9, delivered: 8, missing: 1, ..Default::default() },
            first_us: Some(300),
            last_us: Some(5_000 + number),
            ..Default::default()
        };
        let mut broadcast = BroadcastSummary {
            probes: (1..=3).map(probe).collect(),
            last_us: Some(5_003),
            ..Default::default()
        };
        let with = |broadcast: &BroadcastSummary| {
            let mut summary = Summary { broadcast: Some(broadcast.clone()), ..Default::default() };
            (summary.users.connected_most, summary.connect.ok) = (9, 9);
            render_details(&summary, &[], None)
        };
        let text = with(&broadcast);
        assert!(text.contains("broadcasts received by all within 5.00 ms"), "{text}");
        assert!(
            text.contains("3          30.0 s         9          8  300 µs    -    -  5.00 ms"),
            "{text}"
        );
        (broadcast.counters.expected, broadcast.counters.missing) = (180, 20);
        broadcast.probes = (1..=20).map(probe).collect();
        let text = with(&broadcast);
        assert!(text.contains("20 of 180 deliveries of broadcasts missing (11.1 %)"), "{text}");
        let due = |number: u64| format!(" {number}0.0 s ");
        let rows = |number| {
            text.lines()
                .any(|line| line.starts_with(&format!("{number} ")) && line.contains(&due(number)))
        };
        assert!((1..=6).chain(15..=20).all(rows) && !(7..=14).any(rows), "{text}");
    }
}
