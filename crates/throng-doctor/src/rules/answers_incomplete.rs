//! The server begins its answers to HTTP requests, and does not end them.

use throng_measure::{ErrorKind, Finding, Side};
use throng_report::render::{count, percent};

use super::{Rule, RuleTrait};
use crate::first_error::{FirstError, cut};
use crate::impact::FAILURES_ONE_IN;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule = Rule::new("answers_incomplete", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn])
    .explains(&["server_slow", "server_stalled", "server_closes_early"]);

/// The generator counts the requests that fail with a part of their answer. A server that is slow
/// before its answers fails most of them without one.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let growth = run.load_growth("http_incomplete", |counters| counters.http_incomplete)?;
    let ended: Vec<_> = KINDS.iter().filter_map(|kind| run.errors(kind)).collect();
    let failed = Growth::total(&ended);
    let requests = run.summary.http_requests().max(growth.by());
    let is_rare = growth.by().saturating_mul(FAILURES_ONE_IN) < requests;
    if growth.by() * 2 < failed || is_rare && !run.thresholds.no_errors() {
        return None;
    }
    let begun = |kind: &ErrorKind| {
        let first = FirstError::of(run, kind)?;
        first.answer_part.map(|_| format!("; the first: {}", cut(first.got)))
    };
    let first = KINDS.iter().find_map(begun).unwrap_or_default();
    let times_out = run.errors(TIMEOUT).is_some_and(|late| late.by() * 2 >= failed);
    let (end, remedy) = if !times_out {
        (
            "then the connection ended",
            "compare the content-length of this answer with its body; if it is right, find why \
             the server, or a proxy before it, closes the connection inside a body",
        )
    } else if declares_length(run) {
        (
            "and not its end before the time-out",
            "compare the content-length of this answer with its body; if it is right, find where \
             the server, or a proxy before it, stops inside a body",
        )
    } else {
        (
            "and not its end before the time-out",
            "find where the server, or a proxy before it, waits or stops inside an answer; if the \
             answer may take that long, raise the `timeout` of the request",
        )
    };
    let text = format!(
        "The server began its answers to {} of {} HTTP requests and did not end them ({}){first}. \
         A part of each answer arrived, {end}.",
        count(growth.by() as f64),
        count(requests as f64),
        percent(growth.by() as f64 / requests.max(1) as f64),
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([growth]);
    Some(finding.with_evidence(ended).remedied_by(remedy))
}

/// Reports whether requests time out inside answers whose length is known: such an answer has not
/// the bytes that it declares. Any other may just be slow.
pub(super) fn stops_before_declared_end(run: &RunView<'_>) -> bool {
    declares_length(run) && find(run).is_some()
}

/// Reports whether the first answer that a time-out cut off declares the length of its body.
fn declares_length(run: &RunView<'_>) -> bool {
    let part = FirstError::of(run, TIMEOUT).and_then(|first| first.answer_part);
    part.is_some_and(|part| part.declared_bytes.is_some())
}

/// The kind of errors of requests that time out.
const TIMEOUT: ErrorKind = ErrorKind::HttpTimeout;
/// The kinds of errors that end a request before its answer is complete.
const KINDS: [ErrorKind; 3] = [TIMEOUT, ErrorKind::HttpClosed, ErrorKind::ResetByPeer];

#[cfg(test)]
mod tests {
    use throng_measure::{AnswerPart, ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::super::server_slow;
    use super::*;

    fn failing(kind: ErrorKind, incomplete: u64) -> Run {
        let part = AnswerPart { status: Some(200), body_bytes: 10, declared_bytes: Some(100) };
        failing_with(kind, incomplete, Some(part))
    }

    /// A run in which `incomplete` of 40 requests a second fail inside their answer; `part` came of
    /// the first.
    fn failing_with(kind: ErrorKind, incomplete: u64, part: Option<AnswerPart>) -> Run {
        Run::quiet()
            .loaded(move |load, second| {
                load.counters.http_started = 100 * second;
                load.counters.http_ok = 60 * second;
                load.counters.http_incomplete = incomplete * second.saturating_sub(1);
                load.errors.add(kind, 40 * second.saturating_sub(1));
            })
            .changed(move |interval, second| {
                if second == 2 {
                    let event = RunEventKind::FirstError(ErrorExchange {
                        kind: kind.into(),
                        got: "what came of it".to_owned(),
                        answer_part: part.map(Box::new),
                        ..ErrorExchange::default()
                    });
                    interval.events.push(RunEvent::new(2_000, event));
                }
            })
    }

    #[test]
    fn answers_that_do_not_end_are_no_slow_server() {
        let run = failing(ErrorKind::HttpTimeout, 40);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server began its answers to 360 of 1k HTTP requests and did not end them \
             (36.0 %); the first: what came of it"
        );
        assert!(found.text.ends_with("and not its end before the time-out."), "{found}");
        assert!(found.remedy.contains("content-length"), "{found}");
        run.is_silent(&server_slow::RULE);
        let cut = failing(ErrorKind::HttpClosed, 40).speaks(&RULE);
        assert!(cut.text.ends_with("then the connection ended."), "{cut}");
    }

    #[test]
    fn an_answer_of_unknown_length_may_be_slow() {
        let part = AnswerPart { status: Some(200), body_bytes: 3, declared_bytes: None };
        let run = failing_with(ErrorKind::HttpTimeout, 40, Some(part));
        let found = run.speaks(&RULE);
        assert!(found.remedy.contains("waits or stops"), "{found}");
        run.speaks(&server_slow::RULE);
    }

    #[test]
    fn a_file_of_an_older_version_does_not_say_what_came() {
        let found = failing_with(ErrorKind::HttpTimeout, 40, None).speaks(&RULE);
        assert!(!found.text.contains("the first"), "{found}");
    }

    #[test]
    fn a_server_that_is_slow_before_its_answers_is_none() {
        failing(ErrorKind::HttpTimeout, 0).is_silent(&RULE);
        failing(ErrorKind::HttpTimeout, 19).is_silent(&RULE);
        failing(ErrorKind::HttpTimeout, 19).speaks(&server_slow::RULE);
    }
}
