//! What listens at the target does not speak HTTP.

use throng_measure::{ErrorKind, Finding, Side, SpokenProtocol};
use throng_report::render::count;

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
    let fault = first.answer_fault?;
    // A server that has ever consented to an upgrade speaks HTTP. TLS has a rule of its own.
    let is_tls = fault.protocol == Some(SpokenProtocol::Tls);
    if fault.is_http || is_tls || run.summary.connect.ok > 0 {
        return None;
    }
    let got = first.got.strip_suffix(&format!(": {}", fault.reason)).unwrap_or(first.got);
    let spoken = SPOKEN.iter().find(|spoken| fault.protocol == Some(spoken.protocol));
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

/// What to say about a protocol.
struct Spoken {
    protocol: SpokenProtocol,
    who: &'static str,
    remedy: &'static str,
}

/// Protocols that listen where people look for a WebSocket.
const SPOKEN: &[Spoken] = &[
    Spoken {
        protocol: SpokenProtocol::Ssh,
        who: "an SSH server",
        remedy: "correct the target's port: this one is an SSH server's",
    },
    Spoken {
        protocol: SpokenProtocol::StatusLines,
        who: "as Redis or a mail server does",
        remedy: "correct the target's port, or use tcp:// with steps in that server's protocol",
    },
];

/// The kind of error that the generator counts.
pub(super) const KIND: ErrorKind = ErrorKind::UpgradeViolation;

#[cfg(test)]
mod tests {
    use throng_measure::{AnswerFault, ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    const REASON: &str = "the response cannot be read (RFC 6455 section 4.2.2)";

    fn answering(shown: &str, first_bytes: &[u8], connects_ok: u64) -> Run {
        let fault = AnswerFault {
            is_http: first_bytes.starts_with(b"HTTP/1"),
            field: None,
            reason: REASON.to_owned(),
            protocol: SpokenProtocol::of(first_bytes),
        };
        let exchange = ErrorExchange {
            kind: KIND.into(),
            expected: "101 Switching Protocols".to_owned(),
            got: format!("{shown}: {REASON}"),
            answer_fault: Some(Box::new(fault)),
            ..ErrorExchange::default()
        };
        let mut run = Run::quiet()
            .loaded(move |load, second| {
                load.counters.connects_ok = connects_ok * second;
                load.counters.connected = 0;
                load.connect_failed.add(KIND, 20 * second);
            })
            .changed(move |interval, second| {
                if second == 1 {
                    let event = RunEventKind::FirstError(exchange.clone());
                    interval.events.push(RunEvent::new(1_000, event));
                }
            });
        run.header.target = "ws://127.0.0.1:6379".into();
        run
    }

    #[test]
    fn its_answer_is_quoted() {
        let redis = answering("`+OK hello redis\\r\\n`", b"+OK hello redis\r\n", 0);
        assert_eq!(
            redis.speaks(&RULE).first_sentence(),
            "What listens at ws://127.0.0.1:6379 is not HTTP: it answered `+OK hello redis\\r\\n` \
             (as Redis or a mail server does)"
        );
        redis.check_all(&["not_http"]);
        let other = answering("`hello: you\\n`", b"hello: you\n", 0).speaks(&RULE);
        assert!(other.text.contains("it answered `hello: you\\n`."), "{other}");
    }

    #[test]
    fn a_server_that_speaks_http_is_none() {
        answering("`HTTP/1.1 101`", b"HTTP/1.1 101", 0).is_silent(&RULE);
        answering("`garbage`", b"garbage", 5).is_silent(&RULE);
        // Another rule names a port that speaks TLS.
        answering("15 03 01 00 02 02 46", &[0x15, 3, 1, 0, 2, 2, 0x46], 0).is_silent(&RULE);
    }
}
