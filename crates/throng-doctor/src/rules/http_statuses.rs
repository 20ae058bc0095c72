//! The server answered HTTP requests with statuses that the scenario does not expect, or that a
//! threshold limits.

mod status_meaning;

use throng_measure::{ErrorKey, ErrorKind, Finding, Side};
use throng_report::render::{percent, statuses_text};

use super::{Rule, RuleTrait};
use crate::counted::all_or_part_of;
use crate::first_error::{FirstError, cut};
use crate::impact::FAILURES_ONE_IN;
use crate::missed_thresholds::MissedThreshold;
use crate::run_view::{Growth, RunView};
use status_meaning::StatusMeaning;

pub(super) const RULE: Rule = Rule::new("http_statuses", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn, RuleTrait::DelaysNothing])
    .explains(&["server_slow"]);

/// Answers with some statuses, the most frequent status first.
struct StatusAnswers<'a> {
    statuses: Vec<(&'a str, Growth)>,
    /// What several of these statuses are called together.
    together: String,
    /// Number that the share is of.
    of: u64,
}

/// The cause is the server's own answer. The generator counts each status, and keeps the first
/// unexpected answer with each of them. A missed threshold on statuses is explained by the statuses
/// that it is about.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let missed = run.thresholds.missed();
    let is_about_statuses = missed.first().is_some_and(|missed| missed.statuses().is_some());
    let limited = || missed.iter().find_map(|missed| limited(run, missed));
    let answers = if is_about_statuses {
        limited().or_else(|| unexpected(run))
    } else {
        unexpected(run).or_else(limited)
    };
    let StatusAnswers { statuses, together, of } = answers?;
    let (status, most) = statuses.first()?;
    let first = FirstError::of(run, ErrorKind::HttpStatus.with(status));
    let first = first.or_else(|| FirstError::of(run, ErrorKind::HttpStatus));
    let StatusMeaning { name, remedy } = StatusMeaning::of(status, first);
    let all = Growth::total(statuses.iter().map(|(_, growth)| growth));
    let share = percent(all as f64 / of.max(all) as f64);
    let requests = all_or_part_of(all, of.max(all), "HTTP request", "HTTP requests");
    let mut text = if statuses.len() == 1 {
        format!("The server answered {requests} with {status}{name} ({share}).")
    } else {
        let counts: Vec<_> = statuses.iter().map(|(one, growth)| (*one, growth.by())).collect();
        format!(
            "The server answered {requests} with {together} ({share}), most with {status}{name}: \
             {}.",
            statuses_text(&counts)
        )
    };
    if let Some(FirstError { expected, got, .. }) = first {
        text += &format!(" The first with {status}: expected {}, got {}.", cut(expected), cut(got));
    }
    let others = statuses.iter().skip(1).take(STATUSES_SHOWN - 1);
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_evidence([most])
        .with_evidence(others.map(|(_, growth)| growth.evidence()));
    Some(finding.remedied_by(remedy))
}

/// Returns the answers whose step expected another status, if they are many or no errors are
/// allowed.
fn unexpected<'a>(run: &RunView<'a>) -> Option<StatusAnswers<'a>> {
    let kinds = run.errors_of_family(ErrorKind::HttpStatus).into_iter();
    let status = |kind| ErrorKey::parse(kind).value_of(ErrorKind::HttpStatus).unwrap_or(UNKNOWN);
    let statuses: Vec<_> = kinds.map(|(kind, growth)| (status(kind), growth)).collect();
    let all = Growth::total(statuses.iter().map(|(_, growth)| growth));
    let of = run.summary.http_requests();
    let is_few = all.saturating_mul(FAILURES_ONE_IN) < of && !run.thresholds.no_errors();
    let together = "unexpected statuses".to_owned();
    (all > 0 && !is_few).then_some(StatusAnswers { statuses, together, of })
}

/// Returns the answers that a missed threshold limits, or those that came in place of the ones that
/// it asks for; `None` if it is not about statuses.
fn limited<'a>(run: &RunView<'a>, missed: &MissedThreshold) -> Option<StatusAnswers<'a>> {
    let range = missed.statuses()?;
    let of = run.summary.http.as_ref()?.responses();
    let asks_for_more = missed.asks_for_more;
    // A share that is too small is one of other answers; a number may be one of too few requests.
    if asks_for_more && !missed.condition.ends_with('%') {
        return None;
    }
    let mut statuses = run.http_statuses();
    statuses.retain(|(status, _)| range.contains(status) != asks_for_more);
    let together =
        if asks_for_more { format!("other statuses than {range}") } else { range.to_string() };
    (!statuses.is_empty()).then_some(StatusAnswers { statuses, together, of })
}

/// Stands for the status where a run file does not say it.
const UNKNOWN: &str = "another status";

/// Statuses whose counts are evidence.
const STATUSES_SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorExchange, Operation, RunEvent, RunEventKind};
    use throng_report::Threshold;

    use super::super::fixture::Run;
    use super::*;
    use crate::diagnose;

    /// A run of 1,000 HTTP requests, of which 20 in each second but the first are answered with
    /// 429 and 2 with 500. The answers of the kinds in `unexpected` are errors.
    fn answered(unexpected: &'static [&'static str]) -> Run {
        Run::quiet()
            .loaded(move |load, second| {
                let counters = &mut load.counters;
                (counters.messages_sent, counters.messages_answered) = (0, 0);
                load.times[Operation::Message].clear();
                let [limited, failed] = [20, 2].map(|each| each * second.saturating_sub(1));
                counters.http_started = 100 * second;
                counters.http_2xx = 100 * second - limited - failed;
                (counters.http_4xx, counters.http_5xx) = (limited, failed);
                load.http_statuses.add("200", counters.http_2xx);
                for (status, n) in [("429", limited), ("500", failed)] {
                    load.http_statuses.add(status, n);
                    if unexpected.contains(&status) {
                        load.errors.add(ErrorKind::HttpStatus.with(status), n);
                    }
                }
            })
            .changed(|interval, second| {
                // The rare status came first.
                let first = |status: &str, got: &str| {
                    RunEventKind::FirstError(ErrorExchange {
                        kind: ErrorKind::HttpStatus.with(status),
                        expected: "status 2xx".to_owned(),
                        got: got.to_owned(),
                        ..ErrorExchange::default()
                    })
                };
                if second == 2 {
                    interval.events.push(RunEvent::new(2_000, first("500", "`HTTP/1.1 500`")));
                    let got = "`HTTP/1.1 429\\r\\nretry-after: 1`";
                    interval.events.push(RunEvent::new(2_001, first("429", got)));
                }
            })
    }

    #[test]
    fn the_most_frequent_unexpected_status_is_named_and_not_the_first() {
        let found = answered(&["429", "500"]).speaks(&RULE);
        assert_eq!(
            found.text,
            "The server answered 198 of 1k HTTP requests with unexpected statuses (19.8 %), most \
             with 429 Too Many Requests (Retry-After: 1): 429 ×180, 500 ×18. The first with 429: \
             expected status 2xx, got `HTTP/1.1 429\\r\\nretry-after: 1`."
        );
        assert!(found.remedy.contains("rate limit"), "{found}");
        assert_eq!(found.evidence.len(), 2);
        assert_eq!(found.evidence[0].counter, "errors.http_status.429");
        answered(&["429", "500"]).check_all(&["http_statuses"]);
    }

    #[test]
    fn a_single_status_is_named_with_its_remedy() {
        let found = answered(&["500"]).speaks(&RULE);
        assert!(
            found.text.starts_with(
                "The server answered 18 of 1k HTTP requests with 500 Internal Server Error (1.80 %)"
            ),
            "{found}"
        );
        assert!(found.remedy.contains("server's log"), "{found}");
        answered(&[]).is_silent(&RULE);
    }

    /// Returns the verdict of a run in which the scenario expects all statuses.
    fn judged(threshold: &str) -> String {
        let (history, summary) = answered(&[]).whole();
        let judged = threshold.parse::<Threshold>().unwrap().judge(&summary);
        diagnose(&history, &summary, &[judged]).verdict
    }

    #[test]
    fn a_missed_threshold_on_statuses_is_explained_by_them() {
        let verdict = judged("http.5xx <= 10");
        assert!(
            verdict.contains(
                "the server answered 18 of 1k HTTP requests with 500 Internal Server Error \
                 (1.80 %); do: look for"
            ),
            "{verdict}"
        );
        let verdict = judged("http.429 < 1%");
        assert!(verdict.contains("with 429 Too Many Requests"), "{verdict}");
        let verdict = judged("http.2xx >= 99%");
        assert!(
            verdict.contains(
                "198 of 1k HTTP requests with other statuses than 2xx (19.8 %), most with 429"
            ),
            "{verdict}"
        );
        for threshold in ["http.2xx == 100%", "http.200 == 100%"] {
            let verdict = judged(threshold);
            assert!(verdict.contains("most with 429"), "{threshold}: {verdict}");
            assert!(!verdict.contains("a success"), "{threshold}: {verdict}");
        }
        let verdict = judged("http.429 == 0");
        assert!(verdict.contains("with 429 Too Many Requests"), "{verdict}");
        let verdict = judged("http.200 == 1000");
        let missed = "Missed: http.200 802, required == 1000; no cause was found";
        assert!(verdict.starts_with(missed), "there were too few requests: {verdict}");
        let verdict = judged("http.2xx >= 5k");
        assert!(verdict.contains("no cause was found"), "there were too few requests: {verdict}");
    }

    #[test]
    fn a_run_file_of_an_older_version_has_no_statuses() {
        let run = Run::quiet().loaded(|load, second| {
            load.counters.http_started = 100 * second;
            load.errors.add(ErrorKind::HttpStatus, 10 * second.saturating_sub(1));
        });
        let found = run.speaks(&RULE);
        assert!(
            found
                .text
                .starts_with("The server answered 90 of 1k HTTP requests with another status"),
            "{found}"
        );
    }

    #[test]
    fn answers_count_to_the_end_of_the_run() {
        let run = answered(&["429"]).loaded(|load, second| {
            if second > 5 {
                load.phase = throng_measure::LEAVING.to_owned();
            }
        });
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("The server answered 180 of 1k HTTP requests"), "{found}");
    }

    #[test]
    fn a_few_in_very_many_are_not_worth_a_finding() {
        let few = Run::quiet().loaded(|load, second| {
            load.counters.http_started = 10_000 * second;
            load.errors.add(ErrorKind::HttpStatus.with(500), second.saturating_sub(1));
        });
        few.is_silent(&RULE);
    }
}
