//! The end of a run in words: the verdict, then a compact table, then what to know about it.

use std::fmt::Write as _;

use super::{Table, bytes, count, micros, or_dash, percent, rate};
use crate::summary::{ServerSummary, Summary};
use crate::threshold::Judgement;
use crate::validity::Grade;
use crate::{LatencySummary, Tally};

/// The final report. The first line is the verdict; `judgements` are those of the scenario's thresholds.
pub fn render_text(summary: &Summary, judgements: &[Judgement]) -> String {
    let mut text = verdict(summary, judgements) + "\n";
    for reason in &summary.validity.reasons {
        _ = writeln!(text, "  because {reason}");
    }
    _ = write!(text, "\n{}\n{}", latencies(summary), costs(summary));
    for (title, tally) in
        [("failed connects", &summary.connect.failed), ("errors", &summary.errors)]
    {
        if tally.total() > 0 {
            _ = writeln!(text, "\n{title}: {}", by_name(tally));
        }
    }
    if !judgements.is_empty() {
        _ = writeln!(text, "\nthresholds");
        judgements.iter().for_each(|judgement| _ = writeln!(text, "  {judgement}"));
    }
    text
}

fn verdict(summary: &Summary, judgements: &[Judgement]) -> String {
    let trust = match summary.validity.grade {
        Grade::Valid => "Valid run",
        Grade::Degraded => "Degraded run",
        Grade::Invalid => "Invalid run: these numbers describe the generator, not the target",
    };
    let mut parts =
        vec![format!("{} connections at most", count(summary.users.connected_most as f64))];
    if let Some(best) = summary.connect.rate_most {
        let p99 = micros(summary.connect.latency_us.p99);
        parts.push(format!("{} connects at best (p99 {p99})", rate(best)));
    }
    if let Some(best) = summary.message.rate_most {
        let latency = &summary.message.latency_us;
        let p99 = if latency.count > 0 {
            format!(" (p99 {})", micros(latency.p99))
        } else {
            String::new()
        };
        parts.push(format!("{} messages at best{p99}", rate(best)));
    }
    let errors = summary.errors.total();
    parts.push(if errors == 0 {
        "no errors".to_owned()
    } else {
        format!("{} errors", count(errors as f64))
    });
    let missed = judgements.iter().filter(|judgement| !judgement.met).count();
    parts.extend(match (judgements.len(), missed) {
        (0, _) => None,
        (1, 0) => Some("the threshold met".to_owned()),
        (all, 0) => Some(format!("all {all} thresholds met")),
        (all, missed) => Some(format!("{missed} of {all} thresholds missed")),
    });
    format!("{trust}: {}; {:.0} s.", parts.join(", "), summary.duration_s)
}

fn latencies(summary: &Summary) -> Table {
    let mut table =
        Table::with_head(["", "done", "mean rate", "p50", "p90", "p99", "p99.9", "max"]);
    let (connect, message) = (&summary.connect, &summary.message);
    let mut row = |name: &str, done: u64, mean: Option<f64>, l: &LatencySummary| {
        let show = |us| if l.count > 0 { micros(us) } else { "-".to_owned() };
        let mut cells = vec![name.to_owned(), count(done as f64), or_dash(mean, rate)];
        cells.extend([l.p50, l.p90, l.p99, l.p999, l.max].map(show));
        table.row(cells);
    };
    row("connects", connect.ok, connect.rate_mean, &connect.latency_us);
    if message.sent > 0 || message.answered > 0 {
        row("messages", message.answered.max(message.sent), message.rate_mean, &message.latency_us);
    }
    row("generator lag", summary.generator.lag_us.count, None, &summary.generator.lag_us);
    table
}

fn costs(summary: &Summary) -> Table {
    let mut table =
        Table::with_head(["", "CPU/connect", "CPU/message", "memory/connection", "CPUs used"]);
    let us = |us: Option<f64>| or_dash(us, |us| format!("{us:.1} µs"));
    let mut row = |name: &str, connect, message, memory: Option<f64>, used: Option<f64>| {
        let used = or_dash(used, |cores| format!("{cores:.2}"));
        table.row([name.to_owned(), us(connect), us(message), or_dash(memory, bytes), used]);
    };
    let g = &summary.generator;
    row(
        "generator",
        g.cpu_us_per_connect,
        g.cpu_us_per_message,
        g.rss_bytes_per_user,
        g.cpu_cores_used,
    );
    if let Some(ServerSummary {
        cpu_us_per_connection,
        cpu_us_per_message,
        rss_bytes_per_connection,
        cpu_cores_used,
        ..
    }) = summary.server
    {
        row(
            "server",
            cpu_us_per_connection,
            cpu_us_per_message,
            rss_bytes_per_connection,
            cpu_cores_used,
        );
    }
    let m = &summary.machine;
    let used = m.cpu_busy_share.map(|share| share * m.cpus as f64);
    row("whole machine", m.cpu_us_per_connect, m.cpu_us_per_message, None, used);
    if let Some(stolen) = m.cpu_stolen_share.filter(|share| *share >= 0.01) {
        table.row([format!("{} of the CPU was stolen by the hypervisor", percent(stolen))]);
    }
    table
}

/// `ECONNREFUSED 12, timeout 3`, the most frequent first.
fn by_name(tally: &Tally) -> String {
    let mut entries: Vec<_> = tally.0.iter().collect();
    entries.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let shown: Vec<_> = entries.into_iter().map(|(name, n)| format!("{name} {n}")).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Validity;

    fn summary() -> Summary {
        let mut summary = Summary { duration_s: 61.2, ..Summary::default() };
        summary.users.connected_most = 100_000;
        summary.connect.ok = 250_000;
        summary.connect.rate_most = Some(12_345.0);
        summary.connect.latency_us =
            LatencySummary { p99: 3400, count: 250_000, ..Default::default() };
        summary.generator.cpu_us_per_connect = Some(17.26);
        summary
    }

    #[test]
    fn the_first_line_is_the_verdict() {
        let text = render_text(&summary(), &[]);
        assert_eq!(
            text.lines().next().unwrap(),
            "Valid run: 100k connections at most, 12.3k/s connects at best (p99 3.40 ms), no errors; 61 s."
        );
    }

    #[test]
    fn the_reasons_of_a_bad_grade_follow_the_verdict() {
        let mut summary = summary();
        let reasons = vec!["the generator was late by 200 ms (p99)".to_owned()];
        summary.validity = Validity { grade: Grade::Invalid, reasons };
        let text = render_text(&summary, &[]);
        assert!(text.starts_with("Invalid run: these numbers describe the generator"));
        assert_eq!(
            text.lines().nth(1).unwrap(),
            "  because the generator was late by 200 ms (p99)"
        );
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_errors_are_named() {
        let mut summary = summary();
        summary.connect.failed.add("ECONNREFUSED", 2);
        summary.connect.failed.add("timeout", 5);
        let text = render_text(&summary, &[]);
        let line =
            |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert_eq!(
            line("generator  ").split_whitespace().collect::<Vec<_>>(),
            ["generator", "17.3", "µs", "-", "-", "-"]
        );
        assert_eq!(line("failed connects"), "failed connects: timeout 5, ECONNREFUSED 2");
        assert!(!text.contains("messages"));
    }
}
