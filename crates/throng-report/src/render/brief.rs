//! The report of a run on one screen: what stopped it, how far its numbers can be believed, what to
//! do, one table, the thresholds, and a line for each finding. `--details` has the rest.

use std::fmt::Write as _;

use throng_measure::{Diagnosis, Finding, Severity, Tally};

use super::head::head;
use super::latency_table;
use super::notes::{imported_note, unanswered_note};
use super::report::{by_name, statuses};
use super::wrap;
use crate::summary::Summary;
use crate::threshold::Judgement;

/// Returns the report of a run on one screen: with the lines that say where it comes from, at most
/// 20 lines of 100 columns for a run without a fault, and 30 for another one. `judgements` are
/// those of the scenario's thresholds.
pub fn render_text(
    summary: &Summary,
    judgements: &[Judgement],
    diagnosis: Option<&Diagnosis>,
) -> String {
    let is_healthy = is_healthy(summary, judgements, diagnosis);
    let mut screen = Screen::new(if is_healthy { LINES_HEALTHY } else { LINES_SICK });
    screen.add(&head(summary, judgements, diagnosis, REASONS_MAX));
    let judged = thresholds(summary, judgements, if is_healthy { 3 } else { 4 });
    let below = [unanswered_note(summary), imported_note(summary), answers_and_errors(summary)];
    let below: String = below.into_iter().flatten().map(|note| note + "\n").collect();
    // A blank line, the head, and at least a line of what follows.
    let taken = 4 + lines_of(&judged) + lines_of(&below);
    let rows_max = screen.left().saturating_sub(taken).clamp(ROWS_LEAST, ROWS_MAX);
    let table = latency_table::brief(summary, rows_max).fitted(WIDTH, &LEFT_OUT_FIRST);
    screen.add(&format!("\n{table}{below}{judged}"));
    if let Some(diagnosis) = diagnosis {
        let all = other_findings(diagnosis);
        if all.is_empty() && !is_healthy {
            screen.add_if_it_fits(&first_error(summary));
        }
        screen.add_those_that_fit("findings", &all);
    }
    screen.text
}

/// Reports whether the run has nothing that a reader must look into.
fn is_healthy(summary: &Summary, judgements: &[Judgement], diagnosis: Option<&Diagnosis>) -> bool {
    let is_felt = |diagnosis: &Diagnosis| {
        diagnosis.findings.iter().any(|finding| finding.severity > Severity::Noted)
    };
    judgements.iter().all(|judgement| judgement.met)
        && summary.errors.total() == 0
        && summary.run.incomplete.is_none()
        && !diagnosis.is_some_and(is_felt)
}

/// Returns the thresholds: the missed ones first, and at most `shown_max` lines of each kind.
fn thresholds(summary: &Summary, judgements: &[Judgement], shown_max: usize) -> String {
    let (met, missed): (Vec<_>, Vec<_>) = judgements.iter().partition(|judgement| judgement.met);
    let mut text = match &summary.run.incomplete {
        _ if judgements.is_empty() => return String::new(),
        Some(_) => "thresholds, judged on the part that ran\n".to_owned(),
        None => "thresholds\n".to_owned(),
    };
    let met_max = shown_max.saturating_sub(missed.len());
    for (all, shown_max, word) in [(missed, shown_max, "missed"), (met, met_max, "met")] {
        // A line that counts one threshold is no shorter than the threshold.
        let shown = if all.len() <= shown_max { all.len() } else { shown_max.saturating_sub(1) };
        all[..shown].iter().for_each(|judgement| _ = writeln!(text, "  {judgement}"));
        if let more @ 1.. = all.len() - shown {
            let which = if shown > 0 { format!("{more} more") } else { format!("{more}") };
            _ = writeln!(text, "  {word:<6}  {which}");
        }
    }
    text
}

/// Returns what failed by kind, the most frequent kinds first, and the statuses of HTTP answers.
fn answers_and_errors(summary: &Summary) -> Option<String> {
    let kinds = |title: &str, tally: &Tally| {
        (tally.total() > 0).then(|| format!("{title}: {}", most_frequent(tally)))
    };
    let lines = [
        kinds("failed connects", &summary.connect.failed),
        kinds("errors", &summary.errors),
        statuses(summary).map(|statuses| format!("HTTP answers: {statuses}")),
    ];
    let lines: Vec<_> = lines.into_iter().flatten().collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Lists the most frequent kinds with their counts.
fn most_frequent(tally: &Tally) -> String {
    let all = tally.by_count();
    let mut shown = Tally::default();
    all.iter().take(KINDS_SHOWN).for_each(|(kind, n)| shown.add(kind, *n));
    match all.len().saturating_sub(KINDS_SHOWN) {
        0 => by_name(&shown),
        1 => format!("{}, and another kind", by_name(&shown)),
        more => format!("{}, and {more} other kinds", by_name(&shown)),
    }
}

/// Returns the first error of the most frequent kind: where, what was expected and what came.
fn first_error(summary: &Summary) -> String {
    let Some(shown) = summary.exchanges.first() else { return String::new() };
    format!("{}\n", shown.exchange.to_string().replace('\n', " "))
}

/// Returns a line for each finding that the headline does not name.
fn other_findings(diagnosis: &Diagnosis) -> Vec<String> {
    let others = diagnosis
        .findings
        .iter()
        .filter(|finding| !diagnosis.headline.starts_with(finding.first_sentence()));
    let line = |finding: &Finding| {
        format!("  [{}] {}\n", finding.side, finding.first_sentence().replace('\n', " "))
    };
    let unseen = match diagnosis.unseen.len() {
        0 => None,
        1 => Some("  not judged: a source could not be read\n".to_owned()),
        some => Some(format!("  not judged: {some} sources could not be read\n")),
    };
    others.map(line).chain(unseen).collect()
}

/// Text of a limited number of lines.
struct Screen {
    text: String,
    lines_max: usize,
}

impl Screen {
    fn new(lines_max: usize) -> Self {
        Self { text: String::new(), lines_max }
    }

    /// Returns the number of lines that are left.
    fn left(&self) -> usize {
        self.lines_max.saturating_sub(lines_of(&self.text))
    }

    fn add(&mut self, block: &str) {
        self.text += block;
    }

    fn add_if_it_fits(&mut self, block: &str) -> bool {
        let fits = lines_of(block) <= self.left();
        if fits {
            self.add(block);
        }
        fits
    }

    /// Adds the first of `blocks` below a title, as many as fit, and the number of the others.
    fn add_those_that_fit(&mut self, title: &str, blocks: &[String]) {
        if blocks.is_empty() || self.left() == 0 {
            return;
        }
        self.add(&format!("{title}\n"));
        for (at, block) in blocks.iter().enumerate() {
            let is_last = at + 1 == blocks.len();
            let lines = lines_of(block) + usize::from(!is_last);
            if lines > self.left() {
                let more = if at > 0 { " more" } else { ", in --details" };
                self.add(&format!("  {}{more}\n", blocks.len() - at));
                return;
            }
            self.add(block);
        }
    }
}

/// Returns the number of lines that a terminal of [`WIDTH`] columns needs.
fn lines_of(text: &str) -> usize {
    wrap(text, WIDTH).lines().count()
}

/// The columns of a usual terminal.
const WIDTH: usize = 100;
/// The most lines of a report of a healthy run: 20 without the two that say where it comes from.
const LINES_HEALTHY: usize = 18;
/// The most lines of a report of another run: 30 without these two.
const LINES_SICK: usize = 28;
/// The rows of the table: at least as many as there are kinds of operations in most runs, …
const ROWS_LEAST: usize = 4;
/// … and at most what a reader takes in at a glance.
const ROWS_MAX: usize = 9;
/// The reasons of a grade that are shown.
const REASONS_MAX: usize = 2;
/// The kinds of errors that are shown.
const KINDS_SHOWN: usize = 4;
/// The columns that are left out where a terminal is too narrow, one after another.
const LEFT_OUT_FIRST: [&str; 2] = ["mean rate", "p95"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{HttpSummary, StepSummary};
    use throng_measure::{
        ErrorExchange, ErrorKind, ErrorTimes, ExchangeSummary, Finding, Grade, Side, Validity,
    };
    use throng_measure::{Histogram, LatencySummary, unanswered};

    /// Returns the latency of `count` answers, and the one with as many waits of 5 s.
    fn latency(us: u64, count: u32, waits: u32) -> [LatencySummary; 3] {
        let (mut answered, mut unanswered) = (Histogram::new(), Histogram::new());
        answered.record_n(us, count);
        unanswered.record_n(5_000_000, waits);
        let judged = unanswered::judged(&answered, &unanswered);
        [(&answered).into(), (&unanswered).into(), judged]
    }

    /// Returns a run of sockets and requests, with `steps` named steps, `waits` of each without an
    /// answer.
    fn summary(steps: usize, waits: u32) -> Summary {
        let mut summary = Summary { duration_s: 61.2, ..Summary::default() };
        summary.users.connected_most = 100_000;
        (summary.connect.ok, summary.connect.intended) = (100_000, 100_000);
        summary.connect.rate_most = Some(12_345.0);
        [summary.connect.latency_us, summary.connect.unanswered_us, summary.connect.judged_us] =
            latency(3_400, 100_000, 0);
        (summary.message.sent, summary.message.answered) = (900_000, 900_000);
        summary.message.rate_most = Some(45_000.0);
        [summary.message.latency_us, summary.message.unanswered_us, summary.message.judged_us] =
            latency(713, 900_000, waits);
        let mut http = HttpSummary { ok: 5_000, ..HttpSummary::default() };
        [http.latency_us, http.unanswered_us, http.judged_us] = latency(5_120, 5_000, waits);
        http.statuses.add("200", 5_000);
        summary.http = Some(http);
        summary.generator.lag_us = LatencySummary { count: 9, p99: 553, ..Default::default() };
        summary.steps = (0..steps)
            .map(|step| {
                let [latency_us, unanswered_us, judged_us] = latency(100 + step as u64, 500, waits);
                let (name, ok) = (format!("step-{step}"), 500);
                StepSummary { name, ok, latency_us, unanswered_us, judged_us, ..Default::default() }
            })
            .collect();
        summary
    }

    fn judgement(number: usize, met: bool) -> Judgement {
        Judgement {
            threshold: format!("step.step-{number}.p99 < {number}ms"),
            met,
            value: Some(3_400.0),
            measured: "at least 5.01 s".to_owned(),
        }
    }

    fn diagnosis(findings: usize) -> Diagnosis {
        let text = "The server's event loop was blocked 25 times, for up to 252 ms: it computed \
                    all the time and answered no user. More of it.";
        let cause = Finding::new("server_stalled", Side::Server, text);
        let others = (0..findings).map(|n| {
            let text =
                format!("Number {n} of them, which is described in so many words that it is");
            Finding::new("other", Side::Kernel, format!("{text} a line of its own. And more."))
                .shown_by("machine.cpu_busy_us", 1.0, 7_867_130_000.0, 3_000)
        });
        Diagnosis {
            verdict: "All of it.".to_owned(),
            headline: format!("{}.", cause.first_sentence()),
            effect: "Missed: message.p99 at least 5.01 s, required < 100ms (missed too: a, b, c \
                     and 3 others) at 100k connections, 12.3k/s connects and 45k/s messages."
                .to_owned(),
            remedy: "profile the server: perf top -p 22753, and split what computes for long into \
                     pieces, with a turn of the event loop between them"
                .to_owned(),
            findings: std::iter::once(cause).chain(others).collect(),
            unseen: vec!["slabs: refused".to_owned()],
            ..Diagnosis::default()
        }
    }

    fn lines(text: &str) -> Vec<String> {
        wrap(text, WIDTH).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_healthy_run_has_at_most_18_lines_however_much_it_measured() {
        let verdict = "Nothing stopped it: the plan was met with 83 % headroom (the CPUs of this \
                       machine were busy for 17 % at most, 15 % by other programs)."
            .to_owned();
        let healthy = Diagnosis { headline: verdict.clone(), verdict, ..Diagnosis::default() };
        for (steps, thresholds) in [(0, 0), (0, 2), (3, 3), (40, 40)] {
            let judgements: Vec<_> = (0..thresholds).map(|n| judgement(n, true)).collect();
            let text = render_text(&summary(steps, 0), &judgements, Some(&healthy));
            assert!(lines(&text).len() <= LINES_HEALTHY, "{text}");
            assert!(text.starts_with("Nothing stopped it"), "{text}");
        }
    }

    #[test]
    fn a_sick_run_has_at_most_28_lines_and_counts_what_it_leaves_out() {
        let mut summary = summary(40, 700);
        let names = [
            ErrorKind::ExpectTimeout.name(),
            ErrorKind::ClosedByPeer.name(),
            "protocol",
            ErrorKind::HttpStatus.name(),
            ErrorKind::NotJoined.name(),
        ];
        names.iter().for_each(|name| summary.errors.add(name, 700));
        summary.connect.failed.add("ECONNREFUSED", 3);
        let reasons = vec!["the generator was late by 200 ms (p99)".to_owned(); 7];
        summary.validity = Validity { grade: Grade::Degraded, reasons };
        let judgements: Vec<_> = (0..30).map(|n| judgement(n, n > 20)).collect();
        let text = render_text(&summary, &judgements, Some(&diagnosis(9)));
        let lines = lines(&text);
        assert!(lines.len() <= LINES_SICK, "{} lines: {text}", lines.len());
        for says in [
            "The server's event loop was blocked 25 times",
            "\nMissed: message.p99 at least 5.01 s, required < 100ms",
            "\nMeasurement: degraded: the generator was late",
            "; and 5 other reasons.",
            "\nResult: 21 of 30 thresholds missed, 3.5k errors; at most 100k connections",
            "\nDo: profile the server",
            "\n  with unanswered",
            "\n  missed  18 more\n  met     9\n",
            ", and another kind\n",
            "\nHTTP answers: 200 ×5k\n",
        ] {
            assert!(text.contains(says), "{says:?} is not in {text}");
        }
        for leaves_out in ["as seen", "CPU/", "machine.cpu_busy_us"] {
            assert!(!text.contains(leaves_out), "{leaves_out:?} is in {text}");
        }
        assert_eq!(text.matches("blocked 25 times").count(), 1, "{text}");
        assert!(!text.contains("findings\n  10 more"), "{text}");
    }

    #[test]
    fn findings_that_do_not_fit_are_in_the_details() {
        let mut screen = Screen::new(3);
        screen.add("one\n");
        screen.add_those_that_fit("findings", &["  a\n".to_owned(), "  b\n".to_owned()]);
        assert_eq!(screen.text, "one\nfindings\n  2, in --details\n");
        let mut screen = Screen::new(4);
        screen.add("one\n");
        screen.add_those_that_fit("findings", &["  a", "  b", "  c"].map(|a| format!("{a}\n")));
        assert_eq!(screen.text, "one\nfindings\n  a\n  2 more\n");
    }

    #[test]
    fn findings_have_a_line_each_below_the_cause() {
        let mut summary = summary(0, 0);
        summary.errors.add(ErrorKind::ExpectTimeout, 700);
        let text = render_text(&summary, &[judgement(1, false)], Some(&diagnosis(2)));
        let end = "findings\n  \
                   [kernel] Number 0 of them, which is described in so many words that it is a \
                   line of its own\n  \
                   [kernel] Number 1 of them, which is described in so many words that it is a \
                   line of its own\n  \
                   not judged: a source could not be read\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn an_error_that_no_finding_explains_is_quoted() {
        let mut summary = summary(0, 0);
        summary.errors.add(ErrorKind::ExpectTimeout, 700);
        let exchange = ErrorExchange {
            kind: ErrorKind::ExpectTimeout.into(),
            expected: "a text that contains `pong`".to_owned(),
            got: "nothing".to_owned(),
            ..ErrorExchange::default()
        };
        summary.exchanges = vec![ExchangeSummary { exchange, times: ErrorTimes::default() }];
        let verdict = "No cause was found for its 700 errors.".to_owned();
        let diagnosis = Diagnosis { verdict, ..Diagnosis::default() };
        let text = render_text(&summary, &[], Some(&diagnosis));
        let says = "first expect_timeout: expected a text that contains `pong`, received nothing";
        assert!(text.contains(says), "{text}");
    }

    #[test]
    fn the_slowest_steps_are_shown_in_the_order_of_the_scenario() {
        let mut summary = summary(6, 0);
        let [latency_us, _, judged_us] = latency(90_000, 500, 0);
        (summary.steps[1].latency_us, summary.steps[1].judged_us) = (latency_us, judged_us);
        let table = latency_table::brief(&summary, 6).to_string();
        let names: Vec<_> =
            table.lines().skip(2).filter_map(|row| row.split("  ").next()).collect();
        assert_eq!(
            names,
            ["connects", "messages", "HTTP requests", "step-1", "step-5", "and 4 faster steps"]
        );
    }
}
