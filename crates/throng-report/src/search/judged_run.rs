//! What one run says about the limit that a search looks for.

use throng_measure::{Diagnosis, ErrorKey, ErrorKind, Grade};

use super::{RecordedRun, SearchOutcome, SearchRecord, SearchRun};
use crate::{Judgement, Summary, Threshold, threshold};

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
        RecordedRun {
            run: SearchRun { value, outcome: self.outcome(slo), usage: self.usage(slo) },
            grade: Some(self.summary.validity.grade),
            judgements: self.judgements.to_vec(),
            reached: RecordedRun::reached_by(self.summary),
            verdict: self.verdict(),
            run_file,
        }
    }

    /// Returns whether the run met the conditions. A run that is invalid only because the generator
    /// was late still decides conditions on failures, since a lag makes latencies longer: it makes
    /// no server close a connection. Waits that were given up may be the lag's.
    fn outcome(&self, slo: &[Threshold]) -> SearchOutcome {
        let Summary { validity, generator, .. } = self.summary;
        let met = self.judgements.iter().all(|judgement| judgement.met);
        if validity.grade != Grade::Invalid {
            return if met { SearchOutcome::Met } else { SearchOutcome::Missed };
        }
        if generator.grade_without_lag == Grade::Invalid {
            return SearchOutcome::Invalid;
        }
        let on_time = without_time_outs(self.summary);
        let is_missed = |slo: &Threshold| slo.limits_failures() && !slo.judge(&on_time).met;
        match met && slo.iter().all(Threshold::limits_failures) {
            true => SearchOutcome::Met,
            false if slo.iter().any(is_missed) => SearchOutcome::Missed,
            false => SearchOutcome::Invalid,
        }
    }

    /// Returns the largest usage of the conditions that have one. A limit of 0 has no share.
    fn usage(&self, slo: &[Threshold]) -> Option<f64> {
        slo.iter().filter_map(|slo| slo.usage(self.summary)).reduce(f64::max)
    }

    /// Returns the verdict of the run. Where the diagnosis found no cause of what was missed, as in
    /// a run with a few errors, the first error of the most frequent kind takes its place.
    fn verdict(&self) -> String {
        let Diagnosis { verdict, cause, findings, .. } = self.diagnosis;
        let missed = self.judgements.iter().find(|judgement| !judgement.met);
        let (Some(missed), Some(error), None) = (missed, self.error_line(), cause) else {
            return verdict.clone();
        };
        let (name, condition) = threshold::split(&missed.threshold);
        let noted = findings.first().map(|noted| format!(" Besides: {}.", noted.first_sentence()));
        let noted = noted.unwrap_or_default();
        format!("Missed: {name} {}, required {condition}: {error}.{noted}", missed.measured)
    }

    /// Returns the most frequent kind of error, with its first exchange.
    fn error_line(&self) -> Option<String> {
        let shown = self.summary.exchanges.first()?;
        let kind = &shown.exchange.kind;
        let count = self.summary.errors.get(kind).max(self.summary.connect.failed.get(kind));
        (count > 0).then(|| format!("{count} {kind} {}; {}", shown.when(), shown.exchange))
    }
}

/// Returns the summary without the failures that a late generator may have made. Failures that are
/// not counted by kind are left out if one wait was given up.
fn without_time_outs(summary: &Summary) -> Summary {
    let mut summary = summary.clone();
    let [errors, connects] = [&mut summary.errors, &mut summary.connect.failed].map(|failed| {
        let before = failed.total();
        failed.0.retain(|kind, _| !ErrorKey::parse(kind).is_time_out());
        before - failed.total()
    });
    let connect = summary.errors.get(ErrorKind::Connect).saturating_sub(connects);
    summary.errors.0.insert(ErrorKind::Connect.into(), connect);
    if errors + connects > 0 {
        summary.users.failed = 0;
        let plain = summary.plain.iter_mut().filter_map(|(_, of)| of.as_mut());
        plain.for_each(|of| of.failed = 0);
        summary.http.iter_mut().for_each(|http| (http.failed, http.retried) = (0, 0));
        summary.steps.iter_mut().for_each(|step| step.errors = 0);
    }
    summary
}

/// The failure of a connect to a port on which no server listens.
const REFUSED: &str = "ECONNREFUSED";

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::exchange::{ErrorExchange, ExchangeSummary};
    use throng_measure::{Finding, Severity, Side};

    fn diagnosis(verdict: &str, findings: Vec<Finding>) -> Diagnosis {
        Diagnosis { verdict: verdict.to_owned(), findings, ..Diagnosis::default() }
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
    fn a_run_of_a_late_generator_decides_conditions_on_failures_alone() {
        let outcome = |kinds: &[(&str, u64)], slo: &[&str]| {
            let mut summary = Summary::default();
            summary.validity.grade = Grade::Invalid;
            summary.generator.lag_grade = Grade::Invalid;
            summary.connect.intended = 100;
            for (kind, count) in kinds {
                match kind.strip_prefix("connect.") {
                    Some(errno) => {
                        summary.connect.failed.add(errno, *count);
                        summary.errors.add(ErrorKind::Connect, *count);
                    }
                    None => summary.errors.add(kind, *count),
                }
                summary.users.failed += count;
            }
            recorded(&summary, slo, &diagnosis("", Vec::new())).run.outcome
        };
        let (closed, given_up) =
            ((ErrorKind::ClosedByPeer.name(), 3), (ErrorKind::ExpectTimeout.name(), 3));
        let [met, missed, invalid] =
            [SearchOutcome::Met, SearchOutcome::Missed, SearchOutcome::Invalid];
        let check = |kinds: &[(&str, u64)], slo: &[&str], expected| {
            assert_eq!(outcome(kinds, slo), expected, "{kinds:?} {slo:?}");
        };
        check(&[], &["errors == 0"], met);
        check(&[closed], &["errors == 0"], missed);
        check(&[closed], &["users.failed == 0"], missed);
        check(&[closed, given_up], &["errors == 0"], missed);
        check(&[closed, given_up], &["errors < 5"], invalid);
        check(&[closed, given_up], &["users.failed == 0"], invalid);
        check(&[given_up], &["errors == 0"], invalid);
        check(&[("connect.ECONNREFUSED", 3)], &["errors == 0"], missed);
        check(&[("connect.timeout", 3)], &["errors == 0"], invalid);
        check(&[("connect.timeout", 3)], &["connect.failed == 0"], invalid);
        // The lag is in each latency.
        check(&[], &["errors == 0", "connect.p99 < 1s"], invalid);
        check(&[closed], &["errors == 0", "connect.p99 < 1s"], missed);
        let mut summary = Summary::default();
        summary.validity.grade = Grade::Invalid;
        summary.generator.grade_without_lag = Grade::Invalid;
        let run = recorded(&summary, &["errors == 0"], &diagnosis("", Vec::new())).run;
        assert_eq!(run.outcome, invalid, "the load was not the one of the scenario");
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
        silent.connect.failed.add(ErrorKind::ConnectTimeout, 3);
        assert!(void(&summary, &record) && void(&silent, &record));
        // An overloaded server is silent, but it listens.
        record.runs.push(recorded(&late, &["errors == 0"], &found));
        assert!(void(&summary, &record) && !void(&silent, &record));
    }

    #[test]
    fn a_miss_without_a_cause_shows_its_first_error() {
        let mut summary = Summary::default();
        summary.errors.add(ErrorKind::ClosedByPeer, 3);
        let exchange = ErrorExchange {
            kind: ErrorKind::ClosedByPeer.into(),
            step: "3".to_owned(),
            step_kind: "expect".to_owned(),
            expected: "ok".to_owned(),
            got: "the end of the connection".to_owned(),
            ..Default::default()
        };
        summary.exchanges = vec![ExchangeSummary { exchange, times: Default::default() }];
        let verdict = "Missed: errors 3, required == 0; no cause was found";
        let run = recorded(&summary, &["errors == 0"], &diagnosis(verdict, Vec::new()));
        assert_eq!(
            run.verdict,
            "Missed: errors 3, required == 0: 3 closed_by_peer at 0.0 s; first closed_by_peer: \
             expected ok, received the end of the connection; step 3 `expect`."
        );
        let cause = Finding::new("server_closes_early", Side::Server, "The server closed 3.");
        let found =
            Diagnosis { cause: Some(cause.id.clone()), ..diagnosis("Missed: so", vec![cause]) };
        let run = recorded(&summary, &["errors == 0"], &found);
        assert_eq!(run.verdict, "Missed: so");
        // What was found explains latencies.
        let lag = Finding::new("generator_saturated", Side::Client, "The generator was late.")
            .with_severity(Severity::Slowed);
        let run = recorded(&summary, &["errors == 0"], &diagnosis(verdict, vec![lag]));
        assert!(run.verdict.contains(": 3 closed_by_peer at 0.0 s; first"), "{}", run.verdict);
        assert!(run.verdict.ends_with(" Besides: The generator was late."), "{}", run.verdict);
    }
}
