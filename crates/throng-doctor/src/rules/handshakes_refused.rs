//! The server answered WebSocket upgrades with a status other than 101.

use throng_report::render::{count, percent};
use throng_report::{Finding, Side};

use super::{Rule, RuleTrait};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("handshakes_refused", find)
    .with(&[RuleTrait::ServerFault])
    .explains(&["server_closes_early"]);

/// The generator counts each such answer by its status.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let last = &run.samples().last()?.load()?.connect_failed;
    let statuses = last.0.keys().filter(|kind| kind.starts_with(PREFIX));
    let mut refused: Vec<_> =
        statuses.filter_map(|kind| Some((kind, run.connect_failures(kind)?))).collect();
    refused.sort_by_key(|(_, growth)| std::cmp::Reverse(growth.by()));
    let all: u64 = refused.iter().map(|(_, growth)| growth.by()).sum();
    let attempts = all + run.summary.connect.ok;
    if (all as f64) < attempts as f64 * SHARE_MIN {
        return None;
    }
    let (kind, most) = refused.first()?;
    let status = &kind[PREFIX.len()..];
    let (name, usually, remedy) = meaning(status);
    let text = format!(
        "The server refused {} of {} handshakes, most with {status}{name}. {usually} They were {} \
         of all.",
        count(all as f64),
        count(attempts as f64),
        percent(all as f64 / attempts as f64)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_evidence([most])
        .with_evidence(refused.iter().skip(1).map(|(_, growth)| growth.evidence()))
        .remedied_by(remedy);
    Some(finding)
}

/// Returns the name of a status with a space before it, its usual meaning, and what to do.
fn meaning(status: &str) -> (&'static str, &'static str, &'static str) {
    match status {
        "200" | "201" | "204" => (
            " (an ordinary page)",
            "A web server answers at this path, not a WebSocket server.",
            "correct the path of the target; many servers have /ws, Phoenix has /socket/websocket",
        ),
        "301" | "302" | "303" | "307" | "308" => (
            " (a redirection)",
            "The server redirects to another address.",
            "put the address that it redirects to into the target",
        ),
        "400" => (
            " Bad Request",
            "The server considers the upgrade malformed: a header or parameter is missing, or a \
             proxy does not forward upgrades.",
            "compare the headers and the query with those of a client that succeeds",
        ),
        "401" | "407" => (
            " Unauthorized",
            "The server requires authentication.",
            "add the token or cookie to the scenario: connect: {headers, query}",
        ),
        "403" => (
            " Forbidden",
            "Usually the server rejects the origin or a token.",
            "set the origin with connect: {headers: {origin: ...}}, or allow it in the server \
             (check_origin)",
        ),
        "404" => (
            " Not Found",
            "There is no WebSocket at this path.",
            "correct the path of the target; Phoenix has /socket/websocket",
        ),
        "408" | "504" => (
            " (a time-out)",
            "A service behind the server did not answer in time.",
            "find the slow service behind the server",
        ),
        "426" => (
            " Upgrade Required",
            "The server requires another version or protocol.",
            "check the version and the subprotocols that it requires",
        ),
        "429" => (
            " Too Many Requests",
            "A rate limit applies to each client or address.",
            "raise the limit for this address, connect more slowly, or from more addresses \
             (--source)",
        ),
        "500" => (
            " Internal Server Error",
            "The server failed during the handshake.",
            "look for the error in the server's log",
        ),
        "502" => (
            " Bad Gateway",
            "A proxy in front of the server could not reach it.",
            "check that the server behind the proxy runs and accepts",
        ),
        "503" => (
            " Service Unavailable",
            "The server is overloaded or at a limit of its own, or a load balancer has no server \
             left.",
            "raise the server's own limit of connections or requests, or add instances",
        ),
        _ => (
            "",
            "The server's documentation says what it means.",
            "look for this status in the server's log",
        ),
    }
}

/// Prefix of the kinds of errors that are statuses.
const PREFIX: &str = "http_";

/// The smallest share that matters: one refusal in a hundred handshakes may be a server that
/// restarts.
const SHARE_MIN: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn refusing(status: &'static str, each_second: u64) -> Run {
        Run::quiet().loaded(move |load, second| {
            load.connect_failed.add(status, each_second * second.saturating_sub(1));
        })
    }

    #[test]
    fn the_status_is_reported_with_its_usual_meaning() {
        let found = refusing("http_503", 50).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server refused 450 of 1.45k handshakes, most with 503 Service Unavailable"
        );
        assert_eq!(
            (found.evidence[0].counter.as_str(), found.began_ms()),
            ("connect_failed.http_503", Some(2_000))
        );
        for status in ["http_403", "http_404", "http_429", "http_302", "http_418"] {
            refusing(status, 50).speaks(&RULE);
        }
    }

    #[test]
    fn the_most_frequent_of_several_is_named() {
        let both = refusing("http_403", 50)
            .loaded(|load, second| load.connect_failed.add("http_429", 70 * second));
        let found = both.speaks(&RULE);
        assert!(found.first_sentence().ends_with("429 Too Many Requests"), "{found}");
        assert_eq!(found.evidence.len(), 2);
    }

    #[test]
    fn a_refusal_in_hundreds_and_other_failures_are_none() {
        refusing("http_503", 1).is_silent(&RULE);
        refusing("ECONNREFUSED", 500).is_silent(&RULE);
        refusing("timeout", 500).is_silent(&RULE);
    }
}
