//! The results as Markdown, readable in a terminal and on a page.

mod websocket;

use super::generator;
use super::result::{Report, Row, Sample};
use std::fmt::Write;

/// Returns the progress line of a sample.
pub(super) fn progress(sample: &Sample) -> String {
    format!(
        "round {} {:18} {:22} server {:6.1} us, {:7.0}/s, p99 {:8.0} us",
        sample.round + 1,
        sample.workload.name(),
        sample.peer,
        sample.server_us,
        sample.rate,
        sample.p99_us
    )
}

/// Returns the progress line of a generator's sample.
pub(super) fn user_progress(sample: &generator::users::Sample) -> String {
    format!(
        "round {} {:18} {:22} {:7.1} us and {:.0} B a user",
        sample.round + 1,
        "users",
        sample.generator,
        sample.cpu_us,
        sample.memory_bytes
    )
}

/// Returns the complete report.
pub(super) fn markdown(report: &Report, threads: u16) -> String {
    let rows = report.rows();
    let (websockets, tcp): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.workload.is_websocket());
    let mut text = head(report, &rows, threads);
    if !tcp.is_empty() {
        text.push_str(
            "\n| workload | peer | server CPU us | least-most | x bare | x Ranch | x best Ranch | \
             rate /s | p50 us | p99 us | client CPU us | machine CPU us | errors |\n\
             |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
    }
    for row in tcp {
        line(&mut text, row);
    }
    text.push_str(&websocket::markdown(&websockets));
    if rows.iter().any(|row| !row.kept_up()) {
        text.push_str(
            "\n\\* did not keep up with the offered rate: it works in larger batches than at that \
             rate, so its CPU per operation flatters it.\n",
        );
    }
    text.push_str(&generator::markdown(&report.generators));
    text.push_str(&generator::users::markdown(&report.users));
    for missing in &report.missing {
        _ = writeln!(text, "\nNot measured: {missing}.");
    }
    for failed in &report.failed {
        _ = writeln!(text, "\nFailed: {failed}.");
    }
    text
}

/// Returns the paragraph on what all rows have in common.
fn head(report: &Report, rows: &[Row], threads: u16) -> String {
    let limits = [
        (report.limits.connections_per_s, "connections/s"),
        (report.limits.messages_per_s, "messages/s"),
        (report.limits.websockets_per_s, "WebSockets/s"),
    ];
    let known = limits.iter().filter(|(limit, _)| *limit > 0.0);
    let maxima: Vec<String> =
        known.map(|(limit, what)| format!("{} {what}", grouped(*limit))).collect();
    let foreign = 100.0 * rows.iter().map(|r| r.foreign_share).fold(0.0, f64::max);
    format!(
        "Medians of up to {} rounds on {} CPUs; {threads} threads for each server and for the \
         client. The bare loop's maximum, from which the offered rates are taken: {}. Other \
         programs on this machine used up to {foreign:.0} % of it (median of the worst row).\n",
        report.rounds,
        std::thread::available_parallelism().map_or(1, usize::from),
        maxima.join(", "),
    )
}

fn line(text: &mut String, row: &Row) {
    _ = writeln!(
        text,
        "| {} | {} | {:.1} | {:.1}-{:.1} | {} | {} | {} | {}{} | {} | {} | {:.1} | {:.1} | {} |",
        row.workload.name(),
        row.peer,
        row.server_us,
        row.server_us_least,
        row.server_us_most,
        ratio(row.to_bare),
        ratio(row.to_ranch),
        ratio(row.to_ranch_best),
        grouped(row.rate),
        if row.kept_up() { "" } else { "\\*" },
        grouped(row.p50_us),
        grouped(row.p99_us),
        row.client_us,
        row.machine_us,
        row.errors,
    );
}

/// Formats a ratio with two decimals, and a dash if there is none.
fn ratio(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

/// Formats a whole number with a comma at each thousand.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::{report, sample};
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(999.4), "999");
        assert_eq!(grouped(1_000.0), "1,000");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
    }

    #[test]
    fn every_row_has_as_many_cells_as_the_header() {
        let text = markdown(&report(vec![sample("bare", 0, 10.0), sample("throng", 0, 11.0)]), 2);
        let cells: Vec<usize> =
            text.lines().filter(|l| l.starts_with('|')).map(|l| l.matches('|').count()).collect();
        assert_eq!(cells.len(), 4, "{text}");
        assert!(cells.iter().all(|&count| count == cells[0]), "{text}");
        assert!(text.contains("| 1.10 |"), "{text}");
    }

    #[test]
    fn a_peer_that_fell_behind_is_marked_and_the_mark_explained() {
        let mut late = sample("ranch/many_sups", 0, 90.0);
        late.offered = 2_000.0;
        let text = markdown(&report(vec![late]), 2);
        assert!(text.contains("1,000\\*") && text.contains("did not keep up"), "{text}");
    }
}
