//! The server's program accepts connections, and never answers anything.

use throng_measure::{Endpoint, Finding, Metric, Side};
use throng_report::render::count;

use super::never_accepts::{gave_up, only_grows};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("never_answers", find)
    .with(&[RuleTrait::ServerFault])
    .explains(&["server_slow", "server_stalled"]);

/// A server that was never heard of is not slow: it waits for something else, or it speaks another
/// protocol.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let gave_up = gave_up(run)?;
    // Where the accept queue is not known, the other rule has said so.
    run.peak(Endpoint::Server, Metric::LISTENER_ACCEPT_QUEUE)?;
    if only_grows(run) {
        return None;
    }
    let (what, remedy) = if gave_up.counter == "errors.http_timeout" {
        (
            "an HTTP request",
            "check that an HTTP server listens there, and not a server of another protocol; look \
             in its log, and at what it waits for (a backend, a lock)",
        )
    } else if gave_up.counter.starts_with("connect_failed") {
        (
            "an upgrade",
            "check that a WebSocket server listens there, and not a server of another protocol \
             that waits for its client's first word; look in its log",
        )
    } else {
        (
            "a message",
            "check what the server waits for (the end of a line, a login, a length before the \
             message), and whether an answer is due at all",
        )
    };
    let text = format!(
        "The server accepts connections and never answers: all {} waits for an answer to {what} \
         were given up, and no answer arrived.",
        count(gave_up.by() as f64)
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_confidence(CONFIDENCE);
    Some(finding.with_evidence([gave_up]).remedied_by(remedy))
}

/// The confidence: a server whose threads all wait looks the same from outside.
const CONFIDENCE: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::{ErrorKind, Operation};

    /// A run in which no message is answered.
    fn silent() -> Run {
        let mut run = Run::quiet().loaded(|load, second| {
            load.counters.messages_answered = 0;
            load.times[Operation::Message].clear();
            load.errors.add(ErrorKind::ExpectTimeout, 10 * second);
        });
        run.header.target_is_here = true;
        run
    }

    #[test]
    fn a_server_that_was_never_heard_of_is_not_slow() {
        let run = silent().with(Metric::LISTENER_ACCEPT_QUEUE, 0);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server accepts connections and never answers: all 100 waits for an answer to a \
             message were given up, and no answer arrived"
        );
        let (history, summary) = run.whole();
        let first = crate::diagnose(&history, &summary, &[]).findings.remove(0);
        assert_eq!(first.id, "never_answers");
    }

    #[test]
    fn a_server_of_any_protocol_has_the_same_name() {
        let run = silent().with(Metric::LISTENER_ACCEPT_QUEUE, 0).loaded(|load, second| {
            load.errors = Default::default();
            load.errors.add(ErrorKind::HttpTimeout, 3 * second);
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("all 30 waits for an answer to an HTTP request"), "{found}");
    }

    #[test]
    fn one_answer_or_a_queue_that_only_grows_is_another_case() {
        silent().growing(Metric::LISTENER_ACCEPT_QUEUE, 0, 10, 0).is_silent(&RULE);
        silent().is_silent(&RULE);
        let one = silent().loaded(|load, second| load.counters.messages_answered = second.min(1));
        one.with(Metric::LISTENER_ACCEPT_QUEUE, 0).is_silent(&RULE);
    }
}
