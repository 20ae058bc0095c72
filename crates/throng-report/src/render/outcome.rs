//! The grade of a run with its reason, and its result in numbers: a line each.

use throng_base::units::plural;
use throng_measure::Operation;
use throng_measure::validity::Grade;

use super::{count, micros, percent, rate};
use crate::summary::{BroadcastSummary, Summary};
use crate::threshold::Judgement;

/// Returns how far the numbers can be believed and why, with at most `reasons_max` reasons, but
/// those that the headline has `said`. `None` if nothing was measured and nothing is wrong with
/// that.
pub(crate) fn measurement(summary: &Summary, reasons_max: usize, said: &str) -> Option<String> {
    if !is_measured(summary) && summary.validity.reasons.is_empty() {
        return None;
    }
    let is_imported = summary.run.imported.is_some();
    let grade = match (&summary.run.incomplete, summary.validity.grade) {
        (None, Grade::Valid | Grade::Degraded) if is_imported => "imported".to_owned(),
        (None, Grade::Valid) => "valid".to_owned(),
        (None, Grade::Degraded) => "degraded".to_owned(),
        (None, Grade::Invalid) => INVALID.to_owned(),
        (Some(why), Grade::Valid) => format!("incomplete ({why})"),
        (Some(why), Grade::Degraded) => format!("incomplete ({why}) and degraded"),
        (Some(why), Grade::Invalid) => format!("incomplete ({why}) and {INVALID}"),
    };
    let reasons = &summary.validity.reasons;
    let all: Vec<_> = reasons.iter().filter(|reason| !said.contains(*reason)).cloned().collect();
    let shown = &all[..all.len().min(reasons_max)];
    let why = match (shown, all.len() - shown.len()) {
        ([], _) if !reasons.is_empty() => String::new(),
        ([], _) => own_lateness(summary).unwrap_or_default(),
        (shown, 0) => shown.join("; "),
        (shown, 1) => format!("{}; and another reason", shown.join("; ")),
        (shown, more) => format!("{}; and {more} other reasons", shown.join("; ")),
    };
    let colon = if why.is_empty() { "" } else { ": " };
    Some(format!("Measurement: {grade}{colon}{why}."))
}

const INVALID: &str = "invalid, its numbers are not the target's";

/// Says why a measurement is valid: how late the generator was, and how busy.
fn own_lateness(summary: &Summary) -> Option<String> {
    let generator = &summary.generator;
    let used = generator.ceiling_share.map(|share| match share * 100.0 {
        of_it if of_it < 1.0 => "used less than 1 % of its capacity".to_owned(),
        of_it => format!("used {of_it:.0} % of its capacity"),
    });
    let late = (generator.lag_us.count > 0)
        .then(|| format!("was late by {} (p99)", micros(generator.lag_us.p99)));
    let parts: Vec<_> = late.into_iter().chain(used).collect();
    (!parts.is_empty()).then(|| format!("the generator {}", parts.join(" and ")))
}

/// Reports whether the run measured its target at all. The part of an interrupted run counts.
fn is_measured(summary: &Summary) -> bool {
    summary.connect.ok > 0 || summary.is_of_requests_alone() || summary.run.incomplete.is_some()
}

/// Returns the result in numbers, that of the thresholds first.
pub(crate) fn outcome(summary: &Summary, judgements: &[Judgement]) -> String {
    if !is_measured(summary) {
        return nothing_measured(summary, judgements);
    }
    let mut parts = Vec::from_iter(thresholds(summary, judgements));
    let errors = summary.errors.total();
    let failures = server_failures(summary);
    parts.push(match errors {
        // A scenario, or another tool, need not count them as errors.
        0 if failures > 0 => {
            let answers = plural(failures, "answer", "answers");
            format!("{} {answers} with a status 5xx", count(failures as f64))
        }
        0 => "no errors".to_owned(),
        _ => format!("{} {}", count(errors as f64), plural(errors, "error", "errors")),
    });
    if let Some(broadcast) = &summary.broadcast {
        parts.extend(broadcasts(broadcast));
    }
    let mut amounts = Vec::from_iter(connections_at_most(summary));
    amounts.extend(silent_messages(summary));
    let rates = best_rates(summary);
    if !rates.is_empty() {
        amounts.push(format!("{} at best", rates.join(", ")));
    }
    let paused = if summary.paused_s > 0.0 {
        format!(", {:.0} s of them paused", summary.paused_s)
    } else {
        String::new()
    };
    let mut text = format!("Result: {}; ", parts.join(", "));
    if !amounts.is_empty() {
        text += &format!("{}; ", amounts.join(", "));
    }
    text + &format!("{:.0} s{paused}.", summary.duration_s)
}

/// Says how many thresholds were missed, if there are any.
fn thresholds(summary: &Summary, judgements: &[Judgement]) -> Option<String> {
    let missed = judgements.iter().filter(|judgement| !judgement.met).count();
    let so_far = if summary.run.incomplete.is_some() { " so far" } else { "" };
    match (judgements.len(), missed) {
        (0, _) => None,
        (1, 0) => Some(format!("the threshold met{so_far}")),
        (1, _) => Some(format!("the threshold missed{so_far}")),
        (all, 0) => Some(format!("all {all} thresholds met{so_far}")),
        (all, missed) if all == missed => Some(format!("all {all} thresholds missed{so_far}")),
        (all, missed) => Some(format!("{missed} of {all} thresholds missed{so_far}")),
    }
}

/// Says how fast all users received a probe, or how many deliveries are missing.
fn broadcasts(broadcast: &BroadcastSummary) -> Option<String> {
    let last = broadcast.last_us?;
    let BroadcastSummary { counters, .. } = broadcast;
    Some(match counters.missing {
        0 => format!("broadcasts received by all within {}", micros(last)),
        missing => format!(
            "{} of {} deliveries of broadcasts missing ({})",
            count(missing as f64),
            count(counters.expected as f64),
            percent(missing as f64 / counters.expected.max(missing) as f64)
        ),
    })
}

/// Counts messages of which none was an answer, or of which a log does not say whether one was.
fn silent_messages(summary: &Summary) -> Option<String> {
    let message = &summary.message;
    if message.answered > 0 {
        return None;
    }
    let [sent, received] = [message.sent, message.received].map(|n| count(n as f64));
    match summary.run.imported {
        Some(_) => (message.sent + message.received > 0)
            .then(|| format!("{sent} messages sent, {received} received")),
        None => (message.sent > 0).then(|| format!("{sent} messages sent, 0 answered")),
    }
}

/// Returns the rate of each operation in its best second.
fn best_rates(summary: &Summary) -> Vec<String> {
    let is_silent = summary.message.answered == 0;
    let done = summary.operations().filter(|(of, _)| !(is_silent && *of == Operation::Message));
    let shown = done.filter_map(|(operation, of)| {
        let (what, known) = (operation.plural(), known_of(summary, operation));
        Some(format!("{} {what}{known}", rate(of.rate_most?)))
    });
    shown.collect()
}

/// Returns the best known statistic of a latency without values, to stand behind the operation.
fn known_of(summary: &Summary, operation: Operation) -> String {
    let Some(stats) = summary.latency_stats.get(operation.name()) else { return String::new() };
    let p99 = stats.named("p99").map(|us| ("p99", us));
    let p95 = stats.named("p95").map(|us| ("p95", us));
    let Some((statistic, us)) = p99.or(p95).or(stats.named("mean").map(|us| ("mean", us))) else {
        return String::new();
    };
    format!(" ({statistic} {} over the run)", micros(us.round() as u64))
}

/// Returns the outcome of a run in which no connection was ever established.
fn nothing_measured(summary: &Summary, judgements: &[Judgement]) -> String {
    let missed = judgements.iter().any(|judgement| !judgement.met);
    let missed = thresholds(summary, judgements).filter(|_| missed);
    let missed = missed.map_or_else(String::new, |missed| format!(", {missed}"));
    let connects = match summary.connect.intended {
        0 => "no user connected".to_owned(),
        intended => format!("none of {} connects succeeded", count(intended as f64)),
    };
    format!("Result: nothing was measured: {connects}{missed}; {:.0} s.", summary.duration_s)
}

/// Returns the number of connections open at once, as far as a gauge that is read once a second
/// knows it.
fn connections_at_most(summary: &Summary) -> Option<String> {
    let (most, established) = (summary.users.connected_most, summary.connect.ok);
    let in_a_second = summary.connect.rate_most.unwrap_or(0.0);
    match most {
        _ if established == 0 && summary.is_of_requests_alone() => None,
        _ if established == 0 => Some("no connection established".to_owned()),
        1 if established == 1 => Some("at most 1 connection".to_owned()),
        // The log of another tool does not count connections that are open.
        0 if summary.run.imported.is_some() => None,
        // Every connection that was ever established was open at once.
        _ if most >= established => Some(format!("at most {} connections", count(most as f64))),
        // Connections live shorter than the time between two readings.
        _ if (most as f64) < in_a_second / 2.0 => None,
        0 => None,
        _ => {
            let connections = plural(most, "connection", "connections");
            let most = count(most as f64);
            Some(format!("at most {most} {connections} open at a time"))
        }
    }
}

/// Returns the answers in which a server reports its own failure.
fn server_failures(summary: &Summary) -> u64 {
    let statuses = summary.http.as_ref().map(|http| &http.statuses.0);
    let failed = statuses.into_iter().flatten().filter(|(status, _)| status.starts_with('5'));
    failed.map(|(_, n)| n).sum()
}

#[cfg(test)]
mod tests {
    use super::super::render_text;
    use super::*;
    use throng_measure::LatencySummary;

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

    #[test]
    fn the_grade_has_a_reason_and_stands_apart_from_the_result() {
        let mut summary = summary();
        summary.generator.lag_us = LatencySummary { count: 9, p99: 553, ..Default::default() };
        summary.generator.ceiling_share = Some(0.34);
        let text = render_text(&summary, &[], None);
        let lines: Vec<_> = text.lines().take(2).collect();
        assert_eq!(
            lines,
            [
                "Measurement: valid: the generator was late by 553 µs (p99) and used 34 % of its \
                 capacity.",
                "Result: no errors; at most 100k connections, 12.3k/s connects at best; 61 s."
            ]
        );
    }

    #[test]
    fn statuses_of_failures_are_no_errors_of_the_run_and_no_success() {
        let statuses = [("200", 900), ("500", 79), ("503", 46)];
        let mut http = crate::summary::HttpSummary::default();
        statuses.into_iter().for_each(|(status, n)| http.statuses.add(status, n));
        let text = render_text(&Summary { http: Some(http), ..summary() }, &[], None);
        assert!(text.contains("125 answers with a status 5xx"), "{text}");
        assert!(!text.contains("no errors"), "{text}");
    }

    #[test]
    fn thresholds_are_counted() {
        let judged = |met: &[bool]| {
            let [threshold, measured] = ["errors == 0", "2"].map(str::to_owned);
            let judgement = Judgement { threshold, met: true, value: None, measured };
            let one = |met: &bool| Judgement { met: *met, ..judgement.clone() };
            thresholds(&summary(), &met.iter().map(one).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(judged(&[true, true]), "all 2 thresholds met");
        assert_eq!(judged(&[true, false]), "1 of 2 thresholds missed");
        assert_eq!(judged(&[false, false]), "all 2 thresholds missed");
    }

    #[test]
    fn of_many_reasons_the_first_are_shown_and_the_others_counted() {
        let mut summary = summary();
        let reasons = ["one", "two", "three"].map(str::to_owned).to_vec();
        summary.validity = throng_measure::Validity { grade: Grade::Degraded, reasons };
        let shown = |reasons_max| measurement(&summary, reasons_max, "").unwrap();
        assert_eq!(shown(9), "Measurement: degraded: one; two; three.");
        assert_eq!(shown(2), "Measurement: degraded: one; two; and another reason.");
        assert_eq!(shown(1), "Measurement: degraded: one; and 2 other reasons.");
        let after = |said| measurement(&summary, 9, said).unwrap();
        assert_eq!(after("No cause, but one."), "Measurement: degraded: two; three.");
        assert_eq!(after("One: one, two and three."), "Measurement: degraded.");
    }

    #[test]
    fn a_run_that_was_paused_says_for_how_long() {
        let text = render_text(&Summary { paused_s: 46.0, ..summary() }, &[], None);
        let says = "; 61 s, 46 s of them paused.";
        assert!(text.lines().any(|line| line.ends_with(says)), "{text}");
    }

    #[track_caller]
    fn check_connections(most: u64, established: u64, rate_most: f64, shown: Option<&str>) {
        let mut summary = summary();
        summary.users.connected_most = most;
        summary.connect.ok = established;
        summary.connect.rate_most = (rate_most > 0.0).then_some(rate_most);
        assert_eq!(connections_at_most(&summary).as_deref(), shown);
    }

    #[test]
    fn connections_at_most_are_shown_only_as_far_as_they_are_known() {
        check_connections(60_000, 60_000, 10_000.0, Some("at most 60k connections"));
        check_connections(1, 1, 1.0, Some("at most 1 connection"));
        check_connections(0, 0, 0.0, Some("no connection established"));
        let ends = "at most 30.7k connections open at a time";
        check_connections(30_700, 400_000, 26_900.0, Some(ends));
        check_connections(0, 1033, 122.0, None);
        check_connections(1, 1033, 122.0, None);
        check_connections(0, 3, 0.0, None);
    }

    #[test]
    fn a_run_without_a_connection_measured_nothing() {
        let mut summary = Summary { duration_s: 8.0, ..Summary::default() };
        summary.connect.intended = 40;
        let text = render_text(&summary, &[], None);
        assert_eq!(
            text.lines().next().unwrap(),
            "Result: nothing was measured: none of 40 connects succeeded; 8 s."
        );
    }

    #[test]
    fn messages_without_an_answer_are_not_a_rate() {
        let mut summary = summary();
        summary.message.sent = 900;
        summary.message.rate_most = Some(300.0);
        let text = render_text(&summary, &[], None);
        let says = "no errors; at most 100k connections, 900 messages sent, 0 answered, 12.3k/s";
        assert!(text.contains(says), "{text}");
        assert!(!text.contains("s messages"), "{text}");
    }
}
