//! The machines of a fleet as a table.

use throng_base::units::{
    brief_bytes as bytes, brief_count as count, brief_micros as micros, brief_rate as rate,
    brief_share as percent,
};

use super::table::{Table, or_dash};
use crate::Summary;
use crate::summary::{LostTime, RunMachineSummary};

/// Returns a row for each machine of a fleet, or `None` for a run of one machine.
pub(crate) fn machines(summary: &Summary) -> Option<Table> {
    if summary.machines.is_empty() {
        return None;
    }
    let has_messages = summary.machines.iter().any(|it| it.message_us_p99_most.is_some());
    let has_lost = summary.machines.iter().any(|it| !it.lost.is_empty());
    let mut head = vec!["agent", "users", "connects/s", CONNECT];
    head.extend(has_messages.then_some("message p99"));
    head.extend(["lag p99", "busiest core", CPUS, MEMORY, START]);
    head.extend(has_lost.then_some("lost"));
    let mut table = Table::with_head(head);
    for machine in &summary.machines {
        let RunMachineSummary { name, users_most, .. } = machine;
        let mut cells = vec![
            name.clone(),
            count(*users_most as f64),
            or_dash(machine.connects_per_s_most, rate),
            or_dash(machine.connect_us_p99_most, micros),
        ];
        if has_messages {
            cells.push(or_dash(machine.message_us_p99_most, micros));
        }
        cells.push(or_dash(machine.lag_us_p99_most, micros));
        cells.push(or_dash(machine.busiest_core_most, percent));
        cells.push(or_dash(machine.cpu_cores_used, |cores| format!("{cores:.2}")));
        cells.push(or_dash(machine.rss_bytes_most, |rss| bytes(rss as f64)));
        cells.push(format!("±{}", micros(machine.start_error_us)));
        if has_lost {
            cells.push(lost(&machine.lost));
        }
        table.row(cells);
    }
    Some(table)
}

/// Explains the table.
pub(crate) const MACHINES_NOTE: &str = "Of each agent: the most users, the best \
     second, the p99 of its worst interval, and how exactly it began with the others.";

/// Columns that are left out where the table is too wide, one after another.
pub(super) const LEFT_OUT_FIRST: [&str; 4] = [MEMORY, CPUS, CONNECT, START];
const START: &str = "start";
const MEMORY: &str = "memory";
const CPUS: &str = "CPUs used";
const CONNECT: &str = "connect p99";

/// Writes when a machine was lost: `12.0 to 20.0 s`, `from 31.0 s`.
fn lost(times: &[LostTime]) -> String {
    let (earlier, last) = match times {
        [] => return String::new(),
        [earlier @ .., last] => (earlier.len(), last),
    };
    let LostTime { from_s, until_s, .. } = last;
    let when = match until_s {
        Some(until_s) => format!("{from_s:.1} to {until_s:.1} s"),
        None => format!("from {from_s:.1} s"),
    };
    match earlier {
        0 => when,
        earlier => format!("{when}, and {earlier} earlier"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_of_a_fleet_has_a_row_and_a_lost_one_says_when() {
        let machine = |name: &str| RunMachineSummary {
            name: name.to_owned(),
            users_most: 5_000,
            connects_per_s_most: Some(512.0),
            connect_us_p99_most: Some(310),
            lag_us_p99_most: Some(1_200),
            busiest_core_most: Some(0.42),
            start_error_us: 240,
            ..RunMachineSummary::default()
        };
        let slow = RunMachineSummary {
            lost: vec![
                LostTime { from_s: 3.0, until_s: Some(4.0), ..LostTime::default() },
                LostTime { from_s: 12.0, until_s: None, ..LostTime::default() },
            ],
            busiest_core_most: None,
            ..machine("b")
        };
        let summary = Summary { machines: vec![machine("a"), slow], ..Summary::default() };
        let text = machines(&summary).unwrap().fitted(90, &LEFT_OUT_FIRST).to_string();
        assert_eq!(
            text,
            "agent  users  connects/s  lag p99  busiest core    start                        lost\n\
             -----  -----  ----------  -------  ------------  -------  --------------------------\n\
             a         5k       512/s  1.20 ms        42.0 %  ±240 µs\n\
             b         5k       512/s  1.20 ms             -  ±240 µs  from 12.0 s, and 1 earlier\n"
        );
        assert!(machines(&Summary::default()).is_none());
    }
}
