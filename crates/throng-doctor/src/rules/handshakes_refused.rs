//! The server answered WebSocket upgrades with a status other than 101.

mod status_meaning;

use throng_measure::{ErrorKey, ErrorKind, Finding, Side};
use throng_report::render::percent;

use super::{Rule, RuleTrait, rate_limited};
use crate::counted::part_of;
use crate::first_error::FirstError;
use crate::run_view::{Growth, RunView};
use status_meaning::StatusMeaning;

pub(super) const RULE: Rule = Rule::new("handshakes_refused", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

/// The generator counts each such answer by its status, and keeps the first of each.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let refused = refusals(run);
    let all = Growth::total(refused.iter().map(|(_, growth)| growth));
    let attempts = all + run.summary.connect_steps_ok();
    if (all as f64) < attempts as f64 * SHARE_MIN {
        return None;
    }
    let (kind, most) = refused.first()?;
    let status = ErrorKey::parse(kind).value_of(ErrorKind::UpgradeStatus)?;
    let answer = FirstError::of(run, kind);
    let meaning = StatusMeaning::of(status, answer, run);
    let StatusMeaning { name, usually, remedy } = match passed_before(run, most) {
        Some(passed) if AUTH.contains(&status) => meaning.expired(passed, most.began_ms),
        _ => meaning,
    };
    let text = format!(
        "The server refused {}, most with {status}{name}. {usually} They were {} of all.",
        part_of(all, attempts, "handshake", "handshakes"),
        percent(all as f64 / attempts as f64)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_evidence([most])
        .with_evidence(refused.iter().skip(1).map(|(_, growth)| growth.evidence()))
        .remedied_by(remedy);
    Some(finding)
}

/// Returns the number of handshakes that passed before the first refusal, if they are many, and
/// most were refused from then on: the scenario has what the server requires.
fn passed_before(run: &RunView<'_>, refused: &Growth) -> Option<u64> {
    let before = run.samples().iter().rev().find(|now| now.interval.at_ms < refused.began_ms)?;
    let counters = &before.load()?.counters;
    let passed = counters.connects_ok.saturating_sub(counters.http_connects);
    let passed_after = run.summary.connect_steps_ok().saturating_sub(passed);
    (passed >= PASSED_MIN && passed_after < refused.by()).then_some(passed)
}

/// The statuses that refuse a user who is not known, or may not enter.
const AUTH: [&str; 2] = ["401", "403"];

/// The fewest handshakes that show that the scenario has what the server requires.
const PASSED_MIN: u64 = 10;

/// Returns the kinds of refusals and their growth, the most frequent first.
fn refusals<'a>(run: &RunView<'a>) -> Vec<(&'a String, Growth)> {
    let Some(load) = run.counted() else { return Vec::new() };
    let statuses = load.connect_failed.0.keys().filter(|kind| {
        let status = ErrorKey::parse(kind).value_of(ErrorKind::UpgradeStatus);
        // A rate limit is a cause of its own.
        status.is_some_and(|status| status != rate_limited::STATUS)
    });
    let mut found: Vec<_> =
        statuses.filter_map(|kind| Some((kind, run.connect_failures(kind)?))).collect();
    found.sort_by_key(|(_, growth)| std::cmp::Reverse(growth.by()));
    found
}

/// The smallest share that matters: one refusal in a hundred handshakes may be a server that
/// restarts.
const SHARE_MIN: f64 = 0.01;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn refusing(status: u16, each_second: u64) -> Run {
        failing(ErrorKind::UpgradeStatus.with(status), each_second)
    }

    fn failing(kind: impl Into<String>, each_second: u64) -> Run {
        let kind = kind.into();
        Run::quiet().loaded(move |load, second| {
            load.connect_failed.add(&kind, each_second * second.saturating_sub(1));
        })
    }

    #[test]
    fn the_status_is_reported_with_its_usual_meaning() {
        let found = refusing(503, 50).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server refused 450 of 1.45k handshakes, most with 503 Service Unavailable"
        );
        assert_eq!(
            (found.evidence[0].counter.as_str(), found.began_ms()),
            ("connect_failed.http_503", Some(2_000))
        );
        for status in [403, 404, 302, 418] {
            refusing(status, 50).speaks(&RULE);
        }
    }

    #[test]
    fn an_offer_of_compression_that_no_answer_accepts_may_be_the_reason() {
        let offering = |agreed| {
            refusing(400, 50).loaded(move |load, second| {
                load.counters.deflate_offered = 145 * second;
                load.counters.deflate_agreed = agreed;
            })
        };
        let found = offering(0).speaks(&RULE);
        assert!(found.text.contains("requests offer permessage-deflate"), "{found}");
        assert!(found.remedy.contains("without `deflate`"), "{found}");
        for run in [offering(1), refusing(400, 50)] {
            assert!(!run.speaks(&RULE).text.contains("deflate"));
        }
    }

    #[test]
    fn the_most_frequent_of_several_is_named() {
        let both = refusing(403, 50).loaded(|load, second| {
            load.connect_failed.add(ErrorKind::UpgradeStatus.with(502), 70 * second)
        });
        let found = both.speaks(&RULE);
        assert!(found.first_sentence().ends_with("502 Bad Gateway"), "{found}");
        assert_eq!(found.evidence.len(), 2);
    }

    #[test]
    fn the_first_answer_says_more_than_its_status() {
        let check = |status: u16, lines: &[&str], target: &str, first: &str, remedy: &str| {
            let got = format!("`HTTP/1.1 {status}{}`", lines.join(""));
            let mut run = refusing(status, 50).changed(move |interval, second| {
                if second == 2 {
                    let event = RunEventKind::FirstError(ErrorExchange {
                        kind: ErrorKind::UpgradeStatus.with(status),
                        expected: "101 Switching Protocols".to_owned(),
                        got: got.clone(),
                        ..ErrorExchange::default()
                    });
                    interval.events.push(RunEvent::new(2_000, event));
                }
            });
            run.header.target = target.to_owned();
            let found = run.speaks(&RULE);
            let begin = "The server refused 450 of 1.45k handshakes, most with ";
            assert_eq!(found.first_sentence().strip_prefix(begin), Some(first), "{found}");
            assert!(found.remedy.contains(remedy), "{found}");
        };
        let target = "ws://a.test:4000/ws";
        let moved = "\\r\\nlocation: http://b.test/live/ws";
        let first = "301 (a redirect to http://b.test/live/ws)";
        check(301, &[moved], target, first, "--target ws://b.test/live/ws");
        let there = "\\r\\nlocation: /v2/ws?x=1";
        let first = "307 (a redirect to /v2/ws?x=1)";
        check(307, &[there], target, first, "--target ws://a.test:4000/v2/ws?x=1");
        let tls = "\\r\\nlocation: https://a.test/ws";
        let first = "301 (a redirect to https://a.test/ws)";
        check(301, &[tls], target, first, "--target wss://a.test/ws");
        let login = "\\r\\nlocation: /users/sign_in?return=%2Fws";
        let first = "302 (a redirect to a login page, /users/sign_in?return=%2Fws)";
        check(302, &[login], target, first, "connect: {headers, query}");
        let nginx = "\\r\\nserver: nginx/1.24.0";
        let first = "404 Not Found (nginx answered)";
        check(404, &[nginx], target, first, "proxy_set_header Upgrade $http_upgrade");
        let page = ["\\r\\ncontent-type: text/html", "\\r\\ntitle: Welcome to nginx!"];
        let first =
            "200 (an ordinary page, \u{201c}Welcome to nginx!\u{201d}: no WebSocket at /ws)";
        check(200, &page, target, first, "correct the path");
        let page = ["\\r\\ntitle: Sign in", "\\r\\nform: password"];
        let first = "200 (a login page, \u{201c}Sign in\u{201d})";
        check(200, &page, target, first, "connect: {headers, query}");
        let bearer = "\\r\\nwww-authenticate: Bearer realm=chat";
        let first = "401 Unauthorized (it asks for Bearer realm=chat)";
        check(401, &[bearer], target, first, "add the token");
        let retry = "\\r\\nretry-after: 120";
        let first = "503 Service Unavailable (Retry-After: 120)";
        check(503, &[retry], target, first, "limit");
    }

    #[test]
    fn a_token_that_was_accepted_before_has_expired() {
        let expired = |status: u16, first: u64| {
            Run::quiet().loaded(move |load, second| {
                load.connect_failed
                    .add(ErrorKind::UpgradeStatus.with(status), 50 * second.saturating_sub(first));
            })
        };
        let found = expired(401, 5).speaks(&RULE);
        assert!(
            found.text.starts_with(
                "The server refused 250 of 1.25k handshakes, most with 401 Unauthorized: all after \
                 6 s. 1k handshakes before had passed, so a token or a session has expired."
            ),
            "{found}"
        );
        assert!(found.remedy.starts_with("log in again"), "{found}");
        assert!(expired(401, 0).speaks(&RULE).remedy.starts_with("add the token"));
        assert!(!expired(404, 5).speaks(&RULE).text.contains("expired"));
    }

    #[test]
    fn connections_for_logins_are_no_handshakes() {
        let run = refusing(401, 50).loaded(|load, second| {
            load.counters.http_started = load.counters.connects_ok;
            load.counters.http_connects = load.counters.connects_ok;
            load.counters.connected = 50 * second;
        });
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("The server refused 450 of 450 handshakes"), "{found}");
    }

    #[test]
    fn a_refusal_in_hundreds_and_other_failures_are_none() {
        refusing(503, 1).is_silent(&RULE);
        failing("ECONNREFUSED", 500).is_silent(&RULE);
        failing(ErrorKind::ConnectTimeout, 500).is_silent(&RULE);
    }
}
