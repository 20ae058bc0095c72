//! The rows of WebSockets: the cost of opening one, its memory, and the cost of a broadcast.

use super::super::result::Row;
use super::{grouped, ratio};
use std::fmt::Write;

/// Returns the table; empty without rows.
pub(super) fn markdown(rows: &[&Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "\n| workload | peer | server CPU us | least-most | x bare | rate /s | \
                    rate x bare | p50 us | p99 us | last us | memory B | client CPU us | \
                    machine CPU us | errors |\n\
                    |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_string();
    for row in rows {
        line(&mut text, row);
    }
    text
}

fn line(text: &mut String, row: &Row) {
    let some = |value: f64| if value == 0.0 { "-".into() } else { grouped(value) };
    _ = writeln!(
        text,
        "| {} | {} | {:.1} | {:.1}-{:.1} | {} | {}{} | {} | {} | {} | {} | {} | \
         {:.1} | {:.1} | {} |",
        row.workload.name(),
        row.peer,
        row.server_us,
        row.server_us_least,
        row.server_us_most,
        ratio(row.to_bare),
        grouped(row.rate),
        if row.kept_up() { "" } else { "\\*" },
        ratio(row.rate_to_bare),
        grouped(row.p50_us),
        grouped(row.p99_us),
        some(row.last_us),
        row.memory_bytes.map_or("-".into(), grouped),
        row.client_us,
        row.machine_us,
        row.errors,
    );
}

#[cfg(test)]
mod tests {
    use super::super::super::result::tests::{report, sample};
    use super::super::super::workload::Workload;
    use super::*;

    #[test]
    fn rows_have_as_many_cells_as_the_header_and_show_missing_values_as_dashes() {
        let mut open = sample("bare", 0, 20.0);
        open.workload = Workload::WsOpenSaturated;
        open.memory_bytes = Some(280.4);
        let mut broadcast = sample("bare", 0, 5.0);
        broadcast.workload = Workload::WsBroadcast;
        broadcast.last_us = 91_234.0;
        let report = report(vec![open, broadcast]);
        let text = markdown(&report.rows().iter().collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 4, "{text}");
        let cells = |line: &&str| line.matches('|').count();
        assert!(lines.iter().all(|line| cells(line) == cells(&lines[0])), "{text}");
        assert!(lines[2].contains("| - | 280 |"), "{text}");
        assert!(lines[3].contains("| 91,234 | - |"), "{text}");
        assert_eq!(markdown(&[]), "");
    }
}
