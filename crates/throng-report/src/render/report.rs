//! The end of a run in words: the verdict, then a compact table, then what to know about it.

use std::fmt::Write as _;

use super::{Table, bytes, count, micros, or_dash, percent, rate};
use crate::summary::{BroadcastSummary, ServerSummary, Summary};
use crate::threshold::Judgement;
use crate::validity::Grade;
use crate::{Diagnosis, LatencySummary, Tally};

/// The final report. The first line is the diagnosis's verdict, where there is a diagnosis, the next the outcome in
/// numbers; `judgements` are those of the scenario's thresholds.
pub fn render_text(
    summary: &Summary,
    judgements: &[Judgement],
    diagnosis: Option<&Diagnosis>,
) -> String {
    let mut text = String::new();
    if let Some(diagnosis) = diagnosis {
        _ = writeln!(text, "{}", diagnosis.verdict);
    }
    _ = writeln!(text, "{}", outcome(summary, judgements));
    for reason in &summary.validity.reasons {
        _ = writeln!(text, "  because {reason}");
    }
    _ = write!(text, "\n{}\n{}", latencies(summary), costs(summary));
    if let Some(broadcast) = &summary.broadcast {
        _ = write!(text, "\n{}", probes(broadcast));
    }
    notes(summary).iter().for_each(|note| _ = writeln!(text, "{note}"));
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
    if let Some(diagnosis) = diagnosis {
        text += &findings(diagnosis);
    }
    text
}

/// What was found, with its evidence, and what could not be looked at.
pub fn findings(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    if !diagnosis.findings.is_empty() {
        _ = writeln!(text, "\nfindings, the most important first");
        for (n, finding) in diagnosis.findings.iter().enumerate() {
            let indented = finding.to_string().replace('\n', "\n   ");
            _ = writeln!(text, "  {}. {indented}", n + 1);
        }
    }
    if !diagnosis.unseen.is_empty() {
        _ = writeln!(text, "\nnot seen, so nothing is said about it");
        diagnosis.unseen.iter().for_each(|what| _ = writeln!(text, "  {what}"));
    }
    text
}

fn outcome(summary: &Summary, judgements: &[Judgement]) -> String {
    let trust = match summary.validity.grade {
        Grade::Valid => "Valid run",
        Grade::Degraded => "Degraded run",
        Grade::Invalid => "Invalid run: these numbers describe the generator, not the target",
    };
    let mut parts = Vec::from_iter(connections_at_most(summary));
    let join = summary.join.clone().unwrap_or_default();
    let push = summary.push.clone().unwrap_or_default();
    for (what, best, latency) in [
        ("connects", summary.connect.rate_most, &summary.connect.latency_us),
        ("messages", summary.message.rate_most, &summary.message.latency_us),
        ("joins", join.rate_most, &join.latency_us),
        ("pushes", push.rate_most, &push.latency_us),
    ] {
        if what == "messages" && summary.message.sent > 0 && summary.message.answered == 0 {
            parts.push(format!("{} messages sent, 0 answered", count(summary.message.sent as f64)));
            continue;
        }
        let Some(best) = best else { continue };
        // The latency is the whole run's and not that of its best second.
        let p99 = match latency.count {
            0 => String::new(),
            _ => format!(" (p99 {} over the run)", micros(latency.p99)),
        };
        parts.push(format!("{} {what} at best{p99}", rate(best)));
    }
    if let Some(BroadcastSummary { counters, last_us: Some(last), .. }) = &summary.broadcast {
        parts.push(match counters.missing {
            0 => format!("broadcasts received by all within {}", micros(*last)),
            missing => format!("{} deliveries of broadcasts missing", count(missing as f64)),
        });
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
    let paused = if summary.paused_s > 0.0 {
        format!(", for {:.0} s of which the load was paused (throng ctl pause)", summary.paused_s)
    } else {
        String::new()
    };
    format!("{trust}: {}; {:.0} s{paused}.", parts.join(", "), summary.duration_s)
}

/// How many connections were open at once, as far as a gauge that is read once a second knows it.
fn connections_at_most(summary: &Summary) -> Option<String> {
    let (most, established) = (summary.users.connected_most, summary.connect.ok);
    let in_a_second = summary.connect.rate_most.unwrap_or(0.0);
    match most {
        _ if established == 0 => Some("no connection established".to_owned()),
        1 if established == 1 => Some("1 connection at most".to_owned()),
        // Everything that was ever established was open at once.
        _ if most >= established => Some(format!("{} connections at most", count(most as f64))),
        // They live shorter than they are counted.
        _ if (most as f64) < in_a_second / 2.0 => None,
        0 => None,
        _ => {
            Some(format!("{} connections open at the end of a second at most", count(most as f64)))
        }
    }
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
        let done = if message.answered > 0 { message.answered } else { message.sent };
        row("messages", done, message.rate_mean, &message.latency_us);
    }
    if let Some(join) = &summary.join {
        row("joins", join.ok, join.rate_mean, &join.latency_us);
    }
    if let Some(push) = &summary.push {
        row("pushes", push.ok, push.rate_mean, &push.latency_us);
    }
    if let Some(broadcast) = &summary.broadcast {
        row("broadcasts", broadcast.counters.delivered, None, &broadcast.latency_us);
    }
    row("generator lag", summary.generator.lag_us.count, None, &summary.generator.lag_us);
    table
}

/// When everybody had each probe; of many, the first and the last ones.
fn probes(broadcast: &BroadcastSummary) -> Table {
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

/// Rows of the table of probes.
const PROBES_SHOWN: usize = 12;

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
    let ours = |us: Option<f64>| us.filter(|_| !others_used_more(summary));
    row("whole machine", ours(m.cpu_us_per_connect), ours(m.cpu_us_per_message), None, used);
    table
}

/// What to know about the costs.
fn notes(summary: &Summary) -> Vec<String> {
    let m = &summary.machine;
    let mut notes = Vec::new();
    if m.cpu_busy_share.is_some() {
        notes.push(match others_used_more(summary) {
            true => "Whole machine: everything that ran on it. More than half of that was not this run's, so it is not \
                     shared out."
                .to_owned(),
            false => "Whole machine: everything that ran on it, other programs too.".to_owned(),
        });
    }
    if let Some(share) = summary.generator.ceiling_share {
        let used = match share * 100.0 {
            percent if percent < 1.0 => "less than 1 %".to_owned(),
            percent => format!("{percent:.0} %"),
        };
        notes.push(format!("The run used {used} of what this generator can do."));
    }
    if let Some(stolen) = m.cpu_stolen_share.filter(|share| *share >= 0.01) {
        notes.push(format!("{} of the CPU was stolen by the hypervisor.", percent(stolen)));
    }
    notes
}

/// Whether both ends together used less than half of the CPU that was busy: what the machine used is then no
/// cost of the run's connects and messages.
fn others_used_more(summary: &Summary) -> bool {
    let machine = &summary.machine;
    let server = summary.server.as_ref().and_then(|server| server.cpu_cores_used);
    let ends = summary.generator.cpu_cores_used.unwrap_or(0.0) + server.unwrap_or(0.0);
    machine.cpu_busy_share.is_some_and(|share| ends < share * machine.cpus as f64 / 2.0)
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
    use crate::{ProbeCounters, ProbeReport, Validity};

    fn summary() -> Summary {
        let mut summary = Summary { duration_s: 61.2, ..Summary::default() };
        summary.users.connected_most = 100_000;
        summary.connect.ok = 100_000;
        summary.connect.rate_most = Some(12_345.0);
        summary.connect.latency_us =
            LatencySummary { p99: 3400, count: 250_000, ..Default::default() };
        summary.generator.cpu_us_per_connect = Some(17.26);
        summary
    }

    #[test]
    fn the_first_line_is_the_verdict() {
        let text = render_text(&summary(), &[], None);
        assert_eq!(
            text.lines().next().unwrap(),
            "Valid run: 100k connections at most, 12.3k/s connects at best (p99 3.40 ms over the run), no errors; 61 s."
        );
    }

    #[test]
    fn a_run_that_was_paused_says_for_how_long() {
        let text = render_text(&Summary { paused_s: 46.0, ..summary() }, &[], None);
        let says = "; 61 s, for 46 s of which the load was paused (throng ctl pause).";
        assert!(text.lines().next().unwrap().ends_with(says), "{text}");
    }

    #[track_caller]
    fn check_connections(most: u64, established: u64, rate_most: f64, said: Option<&str>) {
        let mut summary = summary();
        summary.users.connected_most = most;
        summary.connect.ok = established;
        summary.connect.rate_most = (rate_most > 0.0).then_some(rate_most);
        assert_eq!(connections_at_most(&summary).as_deref(), said);
    }

    #[test]
    fn connections_at_most_are_said_only_as_far_as_they_are_known() {
        check_connections(60_000, 60_000, 10_000.0, Some("60k connections at most"));
        check_connections(1, 1, 1.0, Some("1 connection at most"));
        check_connections(0, 0, 0.0, Some("no connection established"));
        let ends = "30.7k connections open at the end of a second at most";
        check_connections(30_700, 400_000, 26_900.0, Some(ends));
        check_connections(0, 1033, 122.0, None);
        check_connections(1, 1033, 122.0, None);
        check_connections(0, 3, 0.0, None);
    }

    /// A machine of two CPUs that were busy all the time, with both ends using so much of them.
    fn on_a_busy_machine(generator: f64, server: f64) -> String {
        let mut summary = summary();
        summary.generator.cpu_cores_used = Some(generator);
        summary.server =
            Some(ServerSummary { cpu_cores_used: Some(server), ..ServerSummary::default() });
        summary.machine.cpus = 2;
        summary.machine.cpu_busy_share = Some(1.0);
        summary.machine.cpu_us_per_connect = Some(19_426.6);
        render_text(&summary, &[], None)
    }

    #[test]
    fn what_others_used_is_not_shown_as_the_cost_of_a_connect() {
        let text = on_a_busy_machine(0.02, 0.01);
        assert!(!text.contains("19426.6"), "{text}");
        assert!(text.contains("not this run's"), "{text}");
        let text = on_a_busy_machine(0.7, 0.3);
        assert!(text.contains("19426.6 µs"), "{text}");
        assert!(text.contains("everything that ran on it, other programs too."), "{text}");
    }

    #[test]
    fn messages_done_are_the_answered_ones() {
        let mut summary = summary();
        (summary.message.sent, summary.message.answered) = (900, 850);
        let text = render_text(&summary, &[], None);
        let line = text.lines().find(|line| line.starts_with("messages")).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some("850"));
    }

    #[test]
    fn messages_that_nobody_answered_are_not_a_rate() {
        let mut summary = summary();
        summary.message.sent = 900;
        summary.message.rate_most = Some(300.0);
        let text = render_text(&summary, &[], None);
        let verdict = text.lines().next().unwrap();
        assert!(verdict.contains(", 900 messages sent, 0 answered, no errors"), "{verdict}");
        assert!(!verdict.contains("messages at best"), "{verdict}");
    }

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
            render_text(&Summary { broadcast: Some(broadcast.clone()), ..summary() }, &[], None)
        };
        let text = with(&broadcast);
        assert!(text.starts_with("Valid run") && text.contains("by all within 5.00 ms"), "{text}");
        assert!(
            text.contains("3          30.0 s         9          8  300 µs    -    -  5.00 ms"),
            "{text}"
        );
        broadcast.counters.missing = 20;
        broadcast.probes = (1..=20).map(probe).collect();
        let text = with(&broadcast);
        assert!(text.contains("20 deliveries of broadcasts missing"), "{text}");
        let due = |number: u64| format!(" {number}0.0 s ");
        let rows = |number| {
            text.lines()
                .any(|line| line.starts_with(&format!("{number} ")) && line.contains(&due(number)))
        };
        assert!((1..=6).chain(15..=20).all(rows) && !(7..=14).any(rows), "{text}");
    }

    #[test]
    fn the_headroom_of_a_calibrated_generator_is_said() {
        let said = |share| {
            let mut summary = summary();
            summary.generator.ceiling_share = share;
            render_text(&summary, &[], None)
        };
        assert!(said(Some(0.34)).contains("\nThe run used 34 % of what this generator can do.\n"));
        assert!(said(Some(0.004)).contains("The run used less than 1 % of what"));
        assert!(!said(None).contains("generator can do"));
    }

    #[test]
    fn a_stolen_share_does_not_widen_the_table() {
        let mut summary = summary();
        summary.machine.cpu_stolen_share = Some(0.05);
        let text = render_text(&summary, &[], None);
        assert!(text.contains("\n5.00 % of the CPU was stolen by the hypervisor.\n"), "{text}");
    }

    #[test]
    fn the_reasons_of_a_bad_grade_follow_the_verdict() {
        let mut summary = summary();
        let reasons = vec!["the generator was late by 200 ms (p99)".to_owned()];
        summary.validity = Validity { grade: Grade::Invalid, reasons };
        let text = render_text(&summary, &[], None);
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
        let text = render_text(&summary, &[], None);
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
