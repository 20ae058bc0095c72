//! What one run says about the limit that a search looks for.

use super::{RecordedRun, SearchOutcome, SearchRecord, SearchRun};
use crate::{Diagnosis, Grade, Judgement, Severity, Summary, Threshold, threshold};

/// A run that is over, and what follows from it.
#[derive(Clone, Copy, Debug)]
pub struct JudgedRun<'a> {
    /// The summary of the run.
    pub summary: &'a Summary,
    /// The results of the conditions, in their order.
    pub judgements: &'a [Judgement],
    /// The diagnosis, which knows the judgements.
    pub diagnosis: &'a Diagnosis,
}

impl JudgedRun<'_> {
    /// Reports whether the run says nothing about the limit: no user reached the server. One that
    /// was reached by an earlier run may be overloaded, so a run of which no connect succeeded
    /// counts then, unless all were refused: no server listens.
    pub fn is_void(&self, record: &SearchRecord) -> bool {
        let failed = &self.summary.connect.failed;
        let was_refused = failed.total() > 0 && failed.get(REFUSED) == failed.total();
        let was_reached = record.runs.iter().any(|run| run.grade.is_some());
        self.summary.is_unreached() && (was_refused || !was_reached)
    }

    /// Returns why the run never reached the server, as a sentence without a final full stop.
    pub fn why_void(&self) -> String {
        let (target, failed) = (&self.summary.run.target, &self.summary.connect.failed);
        let connects = self.summary.connect.intended;
        match failed.0.iter().max_by_key(|(_, count)| **count) {
            Some((kind, count)) if kind == REFUSED && *count == failed.total() => {
                format!("no server listens at {target}: all {count} connects were refused")
            }
            Some((kind, count)) => {
                let failed = format!("{count} connects failed with {kind}");
                format!("no connection to {target} was established: {failed}")
            }
            None => format!("no connection to {target} was established: {connects} connects wait"),
        }
    }

    /// Returns the line of the run in the file of a search.
    pub fn recorded(&self, value: f64, slo: &[Threshold], run_file: String) -> RecordedRun {
        let grade = self.summary.validity.grade;
        let met = self.judgements.iter().all(|judgement| judgement.met);
        let outcome = match (grade, met) {
            (Grade::Invalid, _) => SearchOutcome::Invalid,
            (_, true) => SearchOutcome::Met,
            (_, false) => SearchOutcome::Missed,
        };
        RecordedRun {
            run: SearchRun { value, outcome, usage: self.usage(slo) },
            grade: Some(grade),
            judgements: self.judgements.to_vec(),
            reached: RecordedRun::reached_by(self.summary),
            verdict: self.verdict(),
            run_file,
        }
    }

    /// Returns the largest usage of the conditions that have one. A limit of 0 has no share.
    fn usage(&self, slo: &[Threshold]) -> Option<f64> {
        slo.iter().filter_map(|slo| slo.usage(self.summary)).reduce(f64::max)
    }

    /// Returns the verdict of the run. Where the diagnosis found no cause, as in a run with a few
    /// errors, the first error of the most frequent kind takes its place.
    fn verdict(&self) -> String {
        let Diagnosis { verdict, findings, .. } = self.diagnosis;
        let missed = self.judgements.iter().find(|judgement| !judgement.met);
        let has_cause = findings.iter().any(|finding| finding.severity > Severity::Noted);
        let (Some(missed), Some(error), false) = (missed, self.error_line(), has_cause) else {
            return verdict.clone();
        };
        let (name, condition) = threshold::split(&missed.threshold);
        let noted = findings.first().map(|noted| format!(" Besides: {}.", noted.first_sentence()));
        let noted = noted.unwrap_or_default();
        format!("Missed: {name} {}, asked {condition}: {error}.{noted}", missed.measured)
    }

    /// Returns the most frequent kind of error, with its first exchange.
    fn error_line(&self) -> Option<String> {
        let shown = self.summary.exchanges.first()?;
        let kind = &shown.exchange.kind;
        let count = self.summary.errors.get(kind).max(self.summary.connect.failed.get(kind));
        (count > 0).then(|| format!("{count} {kind} {}; {}", shown.when(), shown.exchange))
    }
}

/// The failure of a connect to a port on which no server listens.
const REFUSED: &str = "ECONNREFUSED";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{ErrorExchange, ExchangeSummary};
    use crate::{Finding, Side};

    fn diagnosis(verdict: &str, findings: Vec<Finding>) -> Diagnosis {
        Diagnosis { verdict: verdict.to_owned(), findings, unseen: Vec::new() }
    }

    #[track_caller]
    fn recorded(summary: &Summary, slo: &[&str], found: &Diagnosis) -> RecordedRun {
        let slo: Vec<Threshold> = slo.iter().map(|slo| slo.parse().unwrap()).collect();
        let judgements: Vec<_> = slo.iter().map(|slo| slo.judge(summary)).collect();
        JudgedRun { summary, judgements: &judgements, diagnosis: found }.recorded(
            10.0,
            &slo,
            String::new(),
        )
    }

    #[test]
    fn the_usage_is_the_largest_of_the_conditions_that_have_one() {
        let mut summary = Summary::default();
        summary.users.failed = 96;
        summary.users.cut = 20;
        let usage = |slo| recorded(&summary, slo, &diagnosis("", Vec::new())).run.usage;
        assert_eq!(usage(&["users.failed < 100"]), Some(0.96));
        assert_eq!(usage(&["errors == 0", "users.failed < 100", "users.cut < 100"]), Some(0.96));
        assert_eq!(usage(&["errors == 0", "errors < 0.1%"]), None, "nothing was attempted");
    }

    #[test]
    fn a_run_that_never_reached_the_server_is_void() {
        let mut summary = Summary::default();
        summary.run.target = "tcp://127.0.0.1:5555".to_owned();
        summary.connect.intended = 3;
        summary.connect.failed.add("ECONNREFUSED", 3);
        let found = diagnosis("", Vec::new());
        let mut record = crate::search::tests::record();
        let void = |summary: &Summary, record: &SearchRecord| {
            JudgedRun { summary, judgements: &[], diagnosis: &found }.is_void(record)
        };
        let why = JudgedRun { summary: &summary, judgements: &[], diagnosis: &found }.why_void();
        assert_eq!(why, "no server listens at tcp://127.0.0.1:5555: all 3 connects were refused");
        let mut late = summary.clone();
        late.connect.ok = 1;
        assert!(!void(&late, &record));
        let mut silent = summary.clone();
        silent.connect.failed = Default::default();
        silent.connect.failed.add("timeout", 3);
        assert!(void(&summary, &record) && void(&silent, &record));
        // An overloaded server is silent, but it listens.
        record.runs.push(recorded(&late, &["errors == 0"], &found));
        assert!(void(&summary, &record) && !void(&silent, &record));
    }

    #[test]
    fn a_miss_without_a_cause_shows_its_first_error() {
        let mut summary = Summary::default();
        summary.errors.add("closed_by_peer", 3);
        let exchange = ErrorExchange {
            kind: "closed_by_peer".to_owned(),
            step: "3".to_owned(),
            step_kind: "expect".to_owned(),
            expected: "ok".to_owned(),
            got: "the end of the connection".to_owned(),
            ..Default::default()
        };
        summary.exchanges = vec![ExchangeSummary { exchange, times: Default::default() }];
        let verdict = "Missed: errors 3, asked == 0; no cause was found";
        let run = recorded(&summary, &["errors == 0"], &diagnosis(verdict, Vec::new()));
        assert_eq!(
            run.verdict,
            "Missed: errors 3, asked == 0: 3 closed_by_peer at 0.0 s; first closed_by_peer: \
             expected ok, received the end of the connection; step 3 `expect`."
        );
        let cause = Finding::new("server_closes_early", Side::Server, "The server closed 3.");
        let run = recorded(&summary, &["errors == 0"], &diagnosis("Missed: so", vec![cause]));
        assert_eq!(run.verdict, "Missed: so");
    }
}
