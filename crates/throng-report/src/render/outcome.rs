//! The second line of a report: the grade of the run, and its best numbers.

use throng_base::units::plural;

use super::{count, micros, rate};
use crate::summary::{BroadcastSummary, Summary};
use crate::threshold::Judgement;
use crate::validity::Grade;

/// Returns the outcome in numbers, with the result of the thresholds.
pub(crate) fn outcome(summary: &Summary, judgements: &[Judgement]) -> String {
    let grade = match (&summary.run.incomplete, summary.validity.grade) {
        (None, Grade::Valid | Grade::Degraded) if summary.run.imported.is_some() => "Imported run",
        (None, Grade::Valid) => "Valid run",
        (None, Grade::Degraded) => "Degraded run",
        (None, Grade::Invalid) => "Invalid run",
        (Some(_), Grade::Valid) => "Incomplete run",
        (Some(_), Grade::Degraded) => "Incomplete, degraded run",
        (Some(_), Grade::Invalid) => "Incomplete, invalid run",
    };
    let is_measured = summary.connect.ok > 0 || summary.is_of_requests_alone();
    if !is_measured && summary.run.incomplete.is_none() {
        return nothing_measured(summary, judgements);
    }
    let trust = match (&summary.run.incomplete, summary.validity.grade) {
        (_, Grade::Invalid) => {
            format!("{grade}: its numbers are not the target's")
        }
        (Some(why), _) => format!("{grade} ({why})"),
        (None, _) => grade.to_owned(),
    };
    let mut parts = Vec::from_iter(connections_at_most(summary));
    let join = summary.join.clone().unwrap_or_default();
    let push = summary.push.clone().unwrap_or_default();
    let http = summary.http.clone().unwrap_or_default();
    for (what, best, latency) in [
        ("connects", summary.connect.rate_most, &summary.connect.judged_us),
        ("messages", summary.message.rate_most, &summary.message.judged_us),
        ("joins", join.rate_most, &join.judged_us),
        ("pushes", push.rate_most, &push.judged_us),
        ("HTTP requests", http.rate_most, &http.judged_us),
    ] {
        let message = &summary.message;
        if what == "messages" && summary.run.imported.is_some() && message.answered == 0 {
            // The log of another tool does not say which messages are answers.
            if message.sent + message.received > 0 {
                let [sent, received] = [message.sent, message.received].map(|n| count(n as f64));
                parts.push(format!("{sent} messages sent, {received} received"));
            }
            continue;
        }
        if what == "messages" && message.sent > 0 && message.answered == 0 {
            parts.push(format!("{} messages sent, 0 answered", count(summary.message.sent as f64)));
            continue;
        }
        let Some(best) = best else { continue };
        // The latency is the whole run's and not that of its best second.
        let p99 = match latency.count {
            0 => known_of(summary, what),
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
    let failures = server_failures(summary);
    parts.push(if errors == 0 && failures > 0 {
        // A scenario, or another tool, need not count them as errors.
        let answers = plural(failures, "answer", "answers");
        format!("{} {answers} with a status 5xx", count(failures as f64))
    } else if errors == 0 {
        "no errors".to_owned()
    } else {
        format!("{} {}", count(errors as f64), plural(errors, "error", "errors"))
    });
    let missed = judgements.iter().filter(|judgement| !judgement.met).count();
    let so_far = if summary.run.incomplete.is_some() { " so far" } else { "" };
    parts.extend(match (judgements.len(), missed) {
        (0, _) => None,
        (1, 0) => Some(format!("the threshold met{so_far}")),
        (all, 0) => Some(format!("all {all} thresholds met{so_far}")),
        (all, missed) => Some(format!("{missed} of {all} thresholds missed{so_far}")),
    });
    let paused = if summary.paused_s > 0.0 {
        format!(", {:.0} s of them paused", summary.paused_s)
    } else {
        String::new()
    };
    format!("{trust}: {}; {:.0} s{paused}.", parts.join(", "), summary.duration_s)
}

/// Returns the best known statistic of a latency without values, after the name of its row.
fn known_of(summary: &Summary, what: &str) -> String {
    let name = match what {
        "connects" => "connect",
        "messages" => "message",
        "HTTP requests" => "http",
        _ => return String::new(),
    };
    let Some(stats) = summary.latency_stats.get(name) else { return String::new() };
    let p99 = stats.named("p99").map(|us| ("p99", us));
    let p95 = stats.named("p95").map(|us| ("p95", us));
    let Some((statistic, us)) = p99.or(p95).or(stats.named("mean").map(|us| ("mean", us))) else {
        return String::new();
    };
    format!(" ({statistic} {} over the run)", micros(us.round() as u64))
}

/// Returns the outcome of a run in which no connection was ever established.
fn nothing_measured(summary: &Summary, judgements: &[Judgement]) -> String {
    let missed = judgements.iter().filter(|judgement| !judgement.met).count();
    let missed = match (judgements.len(), missed) {
        (_, 0) => String::new(),
        (all, missed) => format!(", {missed} of {all} thresholds missed"),
    };
    let connects = match summary.connect.intended {
        0 => "no user connected".to_owned(),
        intended => format!("none of {} connects succeeded", count(intended as f64)),
    };
    format!("Nothing was measured: {connects}{missed}; {:.0} s.", summary.duration_s)
}

/// Returns the number of connections open at once, as far as a gauge that is read once a second
/// knows it.
fn connections_at_most(summary: &Summary) -> Option<String> {
    let (most, established) = (summary.users.connected_most, summary.connect.ok);
    let in_a_second = summary.connect.rate_most.unwrap_or(0.0);
    match most {
        _ if established == 0 && summary.is_of_requests_alone() => None,
        _ if established == 0 => Some("no connection established".to_owned()),
        1 if established == 1 => Some("1 connection at most".to_owned()),
        // The log of another tool does not count connections that are open.
        0 if summary.run.imported.is_some() => None,
        // Every connection that was ever established was open at once.
        _ if most >= established => Some(format!("{} connections at most", count(most as f64))),
        // Connections live shorter than the time between two readings.
        _ if (most as f64) < in_a_second / 2.0 => None,
        0 => None,
        _ => {
            let connections = plural(most, "connection", "connections");
            let most = count(most as f64);
            let interval = if summary.run.imported.is_some() { "an interval" } else { "a second" };
            Some(format!("{most} {connections} open at the end of {interval} at most"))
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
    use crate::LatencySummary;

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
    fn the_first_line_is_the_verdict() {
        let text = render_text(&summary(), &[], None);
        assert_eq!(
            text.lines().next().unwrap(),
            "Valid run: 100k connections at most, 12.3k/s connects at best (p99 3.40 ms over the \
             run), no errors; 61 s."
        );
    }

    #[test]
    fn statuses_of_failures_are_no_errors_of_the_run_and_no_success() {
        let statuses = [("200", 900), ("500", 79), ("503", 46)];
        let mut http = crate::summary::HttpSummary::default();
        statuses.into_iter().for_each(|(status, n)| http.statuses.add(status, n));
        let text = render_text(&Summary { http: Some(http), ..summary() }, &[], None);
        let verdict = text.lines().next().unwrap();
        assert!(verdict.contains(", 125 answers with a status 5xx; 61 s"), "{verdict}");
        assert!(!verdict.contains("no errors"), "{verdict}");
    }

    #[test]
    fn a_run_that_was_paused_says_for_how_long() {
        let text = render_text(&Summary { paused_s: 46.0, ..summary() }, &[], None);
        let says = "; 61 s, 46 s of them paused.";
        assert!(text.lines().next().unwrap().ends_with(says), "{text}");
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
        check_connections(60_000, 60_000, 10_000.0, Some("60k connections at most"));
        check_connections(1, 1, 1.0, Some("1 connection at most"));
        check_connections(0, 0, 0.0, Some("no connection established"));
        let ends = "30.7k connections open at the end of a second at most";
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
            "Nothing was measured: none of 40 connects succeeded; 8 s."
        );
    }

    #[test]
    fn messages_without_an_answer_are_not_a_rate() {
        let mut summary = summary();
        summary.message.sent = 900;
        summary.message.rate_most = Some(300.0);
        let text = render_text(&summary, &[], None);
        let verdict = text.lines().next().unwrap();
        assert!(verdict.contains(", 900 messages sent, 0 answered, no errors"), "{verdict}");
        assert!(!verdict.contains("messages at best"), "{verdict}");
    }
}
