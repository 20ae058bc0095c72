//! What listens at the target does not speak HTTP.

use throng_report::render::count;
use throng_report::{Finding, Side};

use super::{Rule, RuleTrait};
use crate::first_error::{FirstError, cut};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("not_http", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

/// The generator keeps the first bytes of the first answer that is no HTTP.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let refused = run.connect_failures(KIND)?;
    let first = FirstError::of(run, KIND)?;
    let (got, reason) = first.got.rsplit_once(": ")?;
    // A server that has ever consented to an upgrade speaks HTTP.
    let is_http = got.starts_with("`HTTP/") || !reason.starts_with(NOT_HTTP);
    if is_http || run.summary.connect.ok > 0 {
        return None;
    }
    let spoken = SPOKEN.iter().find(|spoken| {
        spoken.begins.iter().any(|begin| got.trim_start_matches('`').starts_with(begin))
    });
    let who = spoken.map_or_else(String::new, |spoken| format!(" ({})", spoken.who));
    let text = format!(
        "What listens at {} is not HTTP: it answered {}{who}. None of {} upgrades succeeded.",
        run.header.target,
        cut(got),
        count(refused.by() as f64)
    );
    let remedy = spoken.map_or(
        "correct the target's address and port, or use tcp:// for a server that does not speak \
         WebSocket",
        |spoken| spoken.remedy,
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([refused]);
    Some(finding.remedied_by(remedy))
}

/// A protocol that is known by the first bytes of its answers.
struct SpokenProtocol {
    /// First bytes, as they are shown.
    begins: &'static [&'static str],
    who: &'static str,
    remedy: &'static str,
}

/// Protocols that listen where people look for a WebSocket.
const SPOKEN: &[SpokenProtocol] = &[
    SpokenProtocol {
        begins: &["15 03 ", "16 03 "],
        who: "TLS",
        remedy: "throng does not speak TLS: load the plain port behind it, or let a proxy here \
                 speak TLS to it (stunnel, nginx)",
    },
    SpokenProtocol {
        begins: &["SSH-"],
        who: "an SSH server",
        remedy: "correct the target's port: this one is an SSH server's",
    },
    SpokenProtocol {
        begins: &["-ERR ", "+OK", "+PONG"],
        who: "as Redis or a mail server does",
        remedy: "correct the target's port, or use tcp:// with steps in that server's protocol",
    },
];

/// The kind of error that the generator counts.
pub(super) const KIND: &str = "upgrade_violation";

/// The generator's words for an answer that is no HTTP.
const NOT_HTTP: &str = "the response is not HTTP";

#[cfg(test)]
mod tests {
    use throng_report::{ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn answering(got: &str, connects_ok: u64) -> Run {
        let got = got.to_owned();
        let mut run = Run::quiet()
            .loaded(move |load, second| {
                load.counters.connects_ok = connects_ok * second;
                load.counters.connected = 0;
                load.connect_failed.add(KIND, 20 * second);
            })
            .changed(move |interval, second| {
                if second == 1 {
                    let event = RunEventKind::FirstError(ErrorExchange {
                        kind: KIND.to_owned(),
                        expected: "101 Switching Protocols".to_owned(),
                        got: got.clone(),
                        ..ErrorExchange::default()
                    });
                    interval.events.push(RunEvent::new(1_000, event));
                }
            });
        run.header.target = "ws://127.0.0.1:6379".into();
        run
    }

    #[test]
    fn its_answer_is_quoted() {
        let reason = "the response is not HTTP or too long (RFC 6455 section 4.1)";
        let redis = answering(&format!("`+OK hello redis\\r\\n`: {reason}"), 0);
        assert_eq!(
            redis.speaks(&RULE).first_sentence(),
            "What listens at ws://127.0.0.1:6379 is not HTTP: it answered `+OK hello redis\\r\\n` \
             (as Redis or a mail server does)"
        );
        redis.check_all(&["not_http"]);
        let tls = answering(&format!("15 03 01 00 02 02 46: {reason}"), 0).speaks(&RULE);
        assert!(tls.text.contains("15 03 01 00 02 02 46 (TLS)"), "{tls}");
        let other = answering(&format!("`hello: you\\n`: {reason}"), 0).speaks(&RULE);
        assert!(other.text.contains("it answered `hello: you\\n`."), "{other}");
    }

    #[test]
    fn a_server_that_speaks_http_is_none() {
        answering("`HTTP/1.1 101`: the accept value does not match", 0).is_silent(&RULE);
        let long = "`HTTP/1.1 200 OK`: the response is not HTTP or too long (RFC 6455)";
        answering(long, 0).is_silent(&RULE);
        let reason = "`garbage`: the response is not HTTP or too long (RFC 6455 section 4.1)";
        answering(reason, 5).is_silent(&RULE);
    }
}
