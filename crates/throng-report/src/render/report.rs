//! The whole report of a run as text: the head, all tables, notes, errors, thresholds and findings.
//!
//! If waits that no answer ended make a latency larger, the table has both: the latency of the
//! answered requests, and the latency that thresholds judge.

use std::fmt::Write as _;

use throng_measure::{Diagnosis, ErrorExchange, Tally};

use super::head::head;
use super::latency_table::{class_operations, known_statistics, latencies, steps};
use super::machines::{self, MACHINES_NOTE, machines};
use super::notes::{notes, others_used_more};
use super::probes::{probes, probes_left_out_first};
use super::{Table, bytes, count, micros, or_dash};
use crate::summary::Summary;
use crate::threshold::Judgement;

/// Returns everything that is known of a run. `judgements` are those of the scenario's thresholds.
pub fn render_details(
    summary: &Summary,
    judgements: &[Judgement],
    diagnosis: Option<&Diagnosis>,
) -> String {
    let mut text = head(summary, judgements, diagnosis, usize::MAX);
    let latencies = latencies(summary).fitted(WIDTH, &LEFT_OUT_FIRST);
    _ = write!(text, "\n{latencies}");
    if !summary.steps.is_empty() {
        _ = write!(text, "\n{}", steps(summary).fitted(WIDTH, &LEFT_OUT_FIRST));
    }
    if !summary.class_operations.is_empty() {
        _ = write!(text, "\n{}", class_operations(summary).fitted(WIDTH, &LEFT_OUT_FIRST));
    }
    if let Some(known) = known_statistics(summary) {
        _ = write!(text, "\n{known}");
    }
    // A log of another tool has no costs.
    if summary.run.imported.is_none() {
        _ = write!(text, "\n{}", costs(summary));
    }
    if let Some(machines) = machines(summary) {
        let machines = machines.fitted(WIDTH, &machines::LEFT_OUT_FIRST);
        _ = write!(text, "\n{machines}{MACHINES_NOTE}\n");
    }
    if let Some(broadcast) = &summary.broadcast {
        let left_out_first = probes_left_out_first(broadcast);
        _ = write!(text, "\n{}", probes(broadcast).fitted(WIDTH, &left_out_first));
    }
    notes(summary).iter().for_each(|note| _ = writeln!(text, "{note}"));
    if let Some(statuses) = statuses(summary) {
        _ = writeln!(text, "\nHTTP answers: {statuses}");
    }
    for (title, tally) in
        [("failed connects", &summary.connect.failed), ("errors", &summary.errors)]
    {
        if tally.total() > 0 {
            _ = writeln!(text, "\n{title}: {}", by_name(tally));
        }
    }
    text += &exchanges(summary);
    if !judgements.is_empty() {
        let so_far = match summary.run.incomplete {
            Some(_) => ", judged on the part that ran",
            None => "",
        };
        _ = writeln!(text, "\nthresholds{so_far}");
        judgements.iter().for_each(|judgement| _ = writeln!(text, "  {judgement}"));
    }
    if let Some(diagnosis) = diagnosis {
        text += &findings(diagnosis);
    }
    text
}

/// Returns one exchange for each kind of error: when, where, what was expected and what came.
fn exchanges(summary: &Summary) -> String {
    let mut text = String::new();
    for shown in &summary.exchanges {
        let ErrorExchange { kind, expected, .. } = &shown.exchange;
        let place = match shown.exchange.place().as_str() {
            "" => String::new(),
            place => format!("; the first: {place}"),
        };
        _ = writeln!(text, "  {kind} {}{place}", shown.when());
        // A file from outside may have line breaks in them.
        let got = shown.exchange.received();
        let [expected, got] = [expected, &got].map(|shown| shown.replace('\n', " "));
        _ = writeln!(text, "    expected {expected}");
        _ = writeln!(text, "    received {got}");
    }
    if text.is_empty() { text } else { format!("\nfirst error of each kind\n{text}") }
}

/// Returns the findings, with their evidence, and the sources that could not be read.
pub fn findings(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    if !diagnosis.findings.is_empty() {
        _ = writeln!(text, "\nfindings, the most important first");
        for (n, finding) in diagnosis.numbered().enumerate() {
            let indented = finding.to_string().replace('\n', "\n   ");
            _ = writeln!(text, "  {}. {indented}", n + 1);
        }
    }
    if !diagnosis.unseen.is_empty() {
        _ = writeln!(text, "\nnot readable, so not judged");
        diagnosis.unseen.iter().for_each(|what| _ = writeln!(text, "  {what}"));
    }
    text
}

/// The width of a terminal that shows all of a table of latencies, …
const WIDTH: usize = 80;
/// … and the columns that are left out where it does not, one after another.
const LEFT_OUT_FIRST: [&str; 3] = ["p90", "p99.9", "mean rate"];

/// Returns a row for each end: what a connect, a message and a connection cost.
pub(crate) fn costs(summary: &Summary) -> Table {
    let cpu_each = format!("CPU/{}", summary.unit_of_work());
    let mut table =
        Table::with_head(["", "CPU/connect", &cpu_each, "memory/connection", "CPUs used"]);
    let us = |us: Option<f64>| {
        or_dash(us, |us| match us {
            small if small < 1_000.0 => format!("{small:.1} µs"),
            us => micros(us.round() as u64),
        })
    };
    let mut row = |name: &str, connect, message, memory: Option<f64>, used: Option<f64>| {
        let used = or_dash(used, |cores| format!("{cores:.2}"));
        table.row([name.to_owned(), us(connect), us(message), or_dash(memory, bytes), used]);
    };
    let g = &summary.generator;
    let is_fleet = !summary.machines.is_empty();
    row(
        if is_fleet { "generators" } else { "generator" },
        g.cpu_us_per_connect,
        g.cpu_us_per_message,
        g.rss_bytes_per_user,
        g.cpu_cores_used,
    );
    if let Some(s) = summary.server_costs() {
        row(
            "server",
            s.cpu_us_per_connection,
            s.cpu_us_per_message,
            s.rss_bytes_per_connection,
            s.cpu_cores_used,
        );
    }
    let m = &summary.machine;
    let used = m.cpu_busy_share.map(|share| share * m.cpus as f64);
    let ours = |us: Option<f64>| us.filter(|_| !others_used_more(summary));
    let machine = if is_fleet { "their machines" } else { "whole machine" };
    row(machine, ours(m.cpu_us_per_connect), ours(m.cpu_us_per_message), None, used);
    table
}

/// Lists counts by name, the most frequent first: `ECONNREFUSED 12, timeout 3`.
pub(crate) fn by_name(tally: &Tally) -> String {
    let shown = tally.by_count().into_iter().map(|(name, n)| format!("{name} {n}"));
    shown.collect::<Vec<_>>().join(", ")
}

/// Lists the answers to HTTP requests by their status, if any came: `200 ×887, 429 ×231`.
pub(crate) fn statuses(summary: &Summary) -> Option<String> {
    let statuses = &summary.http.as_ref()?.statuses;
    (statuses.total() > 0).then(|| statuses_text(&statuses.by_count()))
}

/// Lists statuses with their counts, the most frequent first as they come: `200 ×887, 429 ×231`.
pub fn statuses_text(statuses: &[(&str, u64)]) -> String {
    let (shown, others) = statuses.split_at(statuses.len().min(STATUSES_SHOWN));
    let mut text: Vec<_> =
        shown.iter().map(|(status, n)| format!("{status} ×{}", count(*n as f64))).collect();
    let other: u64 = others.iter().map(|(_, n)| n).sum();
    if other > 0 {
        text.push(format!("others ×{}", count(other as f64)));
    }
    text.join(", ")
}

/// Statuses that are named in a list.
const STATUSES_SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{ServerCosts, ServerSummary, StepSummary};
    use throng_measure::{ErrorKind, Grade, Histogram, LatencySummary, Validity, unanswered};

    fn summary() -> Summary {
        let mut summary = Summary { duration_s: 61.2, ..Summary::default() };
        summary.users.connected_most = 100_000;
        summary.connect.ok = 100_000;
        summary.connect.rate_most = Some(12_345.0);
        summary.connect.latency_us =
            LatencySummary { p99: 3400, count: 250_000, ..Default::default() };
        summary.connect.judged_us = summary.connect.latency_us;
        summary.generator.cpu_us_per_connect = Some(17.26);
        summary
    }

    /// Returns the report of a run on two CPUs that were busy all the time, with this CPU use of
    /// generator and server.
    fn on_a_busy_machine(generator: f64, server: f64) -> String {
        let mut summary = summary();
        summary.generator.cpu_cores_used = Some(generator);
        summary.server =
            Some(ServerSummary { cpu_cores_used: Some(server), ..ServerSummary::default() });
        summary.machine.cpus = 2;
        summary.machine.cpu_busy_share = Some(1.0);
        summary.machine.cpu_us_per_connect = Some(19_426.6);
        render_details(&summary, &[], None)
    }

    #[test]
    fn what_others_used_is_not_shown_as_the_cost_of_a_connect() {
        let text = on_a_busy_machine(0.02, 0.01);
        assert!(!text.contains("19.4 ms"), "{text}");
        assert!(text.contains("not this run's"), "{text}");
        let text = on_a_busy_machine(0.7, 0.3);
        assert!(text.contains("19.4 ms"), "{text}");
        assert!(text.contains("everything that ran on it, other programs too."), "{text}");
    }

    #[test]
    fn a_server_that_is_not_throngs_has_a_row_of_what_is_known() {
        let costs = ServerCosts { cpu_cores_used: Some(0.75), ..ServerCosts::default() };
        let text = render_details(&Summary { foreign_server: Some(costs), ..summary() }, &[], None);
        let row = text.lines().find(|line| line.starts_with("server ")).expect("a row");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["server", "-", "-", "-", "0.75"]);
        assert!(!render_details(&summary(), &[], None).contains("\nserver "));
    }

    #[test]
    fn what_had_no_answer_is_a_row_of_its_own_where_it_makes_a_number_larger() {
        let with = |waited_us: u64| {
            let (mut answered, mut waits) = (Histogram::new(), Histogram::new());
            answered.record_n(400, 9_000);
            waits.record_n(waited_us, 300);
            let mut summary = summary();
            (summary.message.sent, summary.message.answered) = (9_300, 9_000);
            summary.message.latency_us = (&answered).into();
            summary.message.unanswered_us = (&waits).into();
            summary.message.judged_us = unanswered::judged(&answered, &waits);
            render_details(&summary, &[], None)
        };
        let text = with(2_000_000);
        let row = text.lines().find(|line| line.starts_with("  with unanswered")).unwrap();
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(cells[2..6], ["9.3k", "-", "400", "µs"], "{text}");
        assert!(row.ends_with("2.00 s") && text.contains("Thresholds judge this row."), "{text}");
        let text = with(80);
        assert!(!text.contains("unanswered"), "a few were on their way, as at any end: {text}");
    }

    #[test]
    fn each_step_with_a_name_has_a_row_that_fits_a_terminal() {
        let step = |name: &str, us: u64, waits: u32| {
            let (mut answered, mut unanswered) = (Histogram::new(), Histogram::new());
            answered.record_n(us, 9_000);
            answered.record_n(1_234_000, 30);
            unanswered.record_n(5_000_000, waits);
            StepSummary {
                name: name.to_owned(),
                ok: 9_030,
                errors: waits.into(),
                rate_mean: Some(1_234.0),
                latency_us: (&answered).into(),
                seen_us: (&answered).into(),
                unanswered_us: (&unanswered).into(),
                judged_us: unanswered::judged(&answered, &unanswered),
                ..StepSummary::default()
            }
        };
        let steps = vec![step("login", 1_234, 0), step("a-name-that-is-rather-long", 567, 900)];
        let text = render_details(&Summary { steps, ..summary() }, &[], None);
        let table = text.split("\n\n").find(|part| part.starts_with("step ")).expect("a table");
        let lines: Vec<&str> = table.lines().collect();
        let cells = |line: usize| lines[line].split("  ").filter(|cell| !cell.is_empty());
        let cells = |line: usize| cells(line).map(str::trim).collect::<Vec<_>>();
        assert_eq!(cells(0), ["step", "done", "errors", "p50", "p95", "p99", "max"], "{text}");
        assert_eq!(
            cells(2)[..5],
            ["login", "9.03k", "0", "1.23 ms", "1.23 ms"],
            "in the order of the scenario: {text}"
        );
        assert_eq!(cells(3)[..3], ["a-name-that-is-rather-long", "9.03k", "900"], "{text}");
        assert_eq!(cells(4)[..2], ["with unanswered", "9.93k"], "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("Thresholds judge this row."), "{text}");
    }

    #[test]
    fn an_incomplete_run_says_so_first_and_beside_its_thresholds() {
        let mut summary = summary();
        summary.run.incomplete = Some("SIGTERM ended it after 3.1 s of its 600 s".to_owned());
        let judgement = Judgement {
            threshold: "connect.p99 < 100ms".to_owned(),
            met: true,
            value: Some(3_400.0),
            measured: "3.40 ms".to_owned(),
        };
        let verdict = "Nothing stopped it before it was interrupted.".to_owned();
        let diagnosis = Diagnosis { verdict, ..Diagnosis::default() };
        let text = render_details(&summary, &[judgement], Some(&diagnosis));
        for part in [
            "Incomplete: SIGTERM ended it after 3.1 s of its 600 s. Nothing stopped it before",
            "Measurement: incomplete (SIGTERM ended it after 3.1 s of its 600 s).",
            "Result: the threshold met so far, no errors; at most 100k connections",
            "thresholds, judged on the part that ran",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }

    #[test]
    fn the_slowest_that_are_the_generators_own_are_noted() {
        let mut summary = summary();
        summary.connect.latency_us.max = 20_000;
        summary.generator.lag_us.max = 15_000;
        summary.generator.lag_most_at_s = Some(312.0);
        let text = render_details(&summary, &[], None);
        assert!(
            text.contains(
                "The slowest connect may be the generator's own: it was late by 15.0 ms at 312 s."
            ),
            "{text}"
        );
        summary.connect.latency_us.max = 200_000;
        assert!(!render_details(&summary, &[], None).contains("The slowest"));
    }

    #[test]
    fn statuses_are_listed_and_a_run_of_requests_has_costs_of_requests() {
        let mut summary = summary();
        let mut http = crate::summary::HttpSummary { started: 1_136, ..Default::default() };
        [("200", 887), ("429", 231), ("500", 18)]
            .iter()
            .for_each(|(s, n)| http.statuses.add(s, *n));
        summary.http = Some(http);
        let text = render_details(&summary, &[], None);
        assert!(text.contains("\nHTTP answers: 200 ×887, 429 ×231, 500 ×18\n"), "{text}");
        assert!(text.contains("CPU/request") && !text.contains("CPU/message"), "{text}");
    }

    #[test]
    fn many_statuses_are_not_all_listed() {
        let names: Vec<String> = (400..420).map(|status| status.to_string()).collect();
        let all: Vec<_> = names.iter().map(|name| (name.as_str(), 10)).collect();
        assert!(statuses_text(&all).ends_with("407 ×10, others ×120"), "{}", statuses_text(&all));
    }

    #[test]
    fn messages_done_are_the_answered_ones() {
        let mut summary = summary();
        (summary.message.sent, summary.message.answered) = (900, 850);
        let text = render_details(&summary, &[], None);
        let line = text.lines().find(|line| line.starts_with("messages")).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some("850"));
    }

    #[test]
    fn the_headroom_of_a_calibrated_generator_is_shown() {
        let text_at = |share| {
            let mut summary = summary();
            summary.generator.ceiling_share = share;
            render_details(&summary, &[], None)
        };
        let used = "\nThe run used 34 % of this generator's capacity.\n";
        assert!(text_at(Some(0.34)).contains(used));
        assert!(text_at(Some(0.004)).contains("The run used less than 1 % of this"));
        assert!(!text_at(None).contains("capacity"));
    }

    #[test]
    fn a_stolen_share_does_not_widen_the_table() {
        let mut summary = summary();
        summary.machine.cpu_stolen_share = Some(0.05);
        let text = render_details(&summary, &[], None);
        assert!(text.contains("\n5.00 % of the CPU was stolen by the hypervisor.\n"), "{text}");
    }

    #[test]
    fn the_reasons_of_a_bad_grade_stand_beside_it() {
        let mut summary = summary();
        let reasons = vec!["the generator was late by 200 ms (p99)".to_owned()];
        summary.validity = Validity { grade: Grade::Invalid, reasons };
        let text = render_details(&summary, &[], None);
        assert_eq!(
            text.lines().next().unwrap(),
            "Measurement: invalid, its numbers are not the target's: the generator was late by 200 \
             ms (p99)."
        );
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_errors_are_named() {
        let mut summary = summary();
        summary.connect.failed.add("ECONNREFUSED", 2);
        summary.connect.failed.add(ErrorKind::ConnectTimeout, 5);
        let text = render_details(&summary, &[], None);
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
