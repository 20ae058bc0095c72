//! The server sends bytes, or whole answers, that no HTTP request asked for.

use throng_measure::{ErrorKind, Finding, Side};
use throng_report::render::percent;

use super::{Rule, RuleTrait};
use crate::counted::{counted, times};
use crate::first_error::{FirstError, cut};
use crate::impact::FAILURES_ONE_IN;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("answers_unasked", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn, RuleTrait::DelaysNothing])
    .explains(&["wrong_answers", "server_slow"]);

/// The generator counts each time that such bytes arrive. It closes the connection then, but an
/// answer before may have been that to another request.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let growth = run.errors(KIND)?;
    let requests = run.summary.http_requests().max(growth.by());
    if growth.by().saturating_mul(FAILURES_ONE_IN) < requests && !run.thresholds.no_errors() {
        return None;
    }
    let first = FirstError::of(run, KIND)
        .map_or_else(String::new, |first| format!("; the first: {}", cut(first.got)));
    let text = format!(
        "The server sent bytes that no HTTP request asked for, {} in {} \
         ({}){first}. It answered a request twice, or its content-length is too small. Answers \
         before may have been those to other requests.",
        times(growth.by()),
        counted(requests, "request", "requests"),
        percent(growth.by() as f64 / requests.max(1) as f64),
    );
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([growth]);
    Some(finding.remedied_by(
        "look in the server for a request that is answered twice, and compare the content-length \
         of its answers with their bodies",
    ))
}

/// The kind of error that the generator counts.
const KIND: ErrorKind = ErrorKind::HttpUnasked;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorExchange, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    fn unasked(each_second: u64) -> Run {
        Run::quiet()
            .loaded(move |load, second| {
                load.counters.http_started = 100 * second;
                load.counters.http_ok = 100 * second;
                load.errors.add(KIND, each_second * second.saturating_sub(1));
            })
            .changed(|interval, second| {
                if second == 2 {
                    let event = RunEventKind::FirstError(ErrorExchange {
                        kind: KIND.into(),
                        got: "5 bytes: `56789`".to_owned(),
                        ..ErrorExchange::default()
                    });
                    interval.events.push(RunEvent::new(2_000, event));
                }
            })
    }

    #[test]
    fn bytes_that_no_request_asked_for_are_reported() {
        let run = unasked(10);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "The server sent bytes that no HTTP request asked for, 90 times in 1k requests \
             (9.00 %); the first: 5 bytes: `56789`"
        );
        run.check_all(&[RULE.id]);
    }

    #[test]
    fn a_run_without_them_is_none() {
        unasked(0).is_silent(&RULE);
    }
}
