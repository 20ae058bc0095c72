//! Hand-made runs for the tests of rules.

use throng_measure::runfile::{RunEnd, RunFile, RunHeader};
use throng_measure::{
    AnswerGap, CertificateFacts, ErrorKind, Finding, Interval, LoadInterval, Metric, Operation,
    ProcessMetric, RunEvent, RunEventKind, TargetTls, TlsFailure, TlsOffer,
};
use throng_report::Summary;

use crate::history::History;
use crate::run_view::RunView;

/// A run of ten quiet seconds that a test changes: a thousand connections, opened in the first five
/// seconds, that send a thousand messages a second.
pub(crate) struct Run {
    pub(crate) header: RunHeader,
    pub(crate) intervals: Vec<Interval>,
}

impl Run {
    pub(crate) fn quiet() -> Self {
        let header =
            RunHeader { users_planned: 1_000, capacity: Some(100_000), ..RunHeader::default() };
        let mut run = Self { header, intervals: Vec::new() };
        for second in 0..=10 {
            let mut load =
                LoadInterval { phase: "hold".into(), cores: 2, ..LoadInterval::default() };
            let connects = 200 * second.min(5);
            load.counters.users_intended = connects;
            load.counters.users_started = connects;
            load.counters.users_active = connects;
            load.counters.connects_started = connects;
            load.counters.connects_ok = connects;
            load.counters.connected = connects;
            load.counters.messages_sent = 1_000 * second;
            load.counters.messages_answered = 1_000 * second;
            load.process.pid = 1;
            load.process.cpu_user_us = 50_000 * second;
            load.process.rss_bytes = 10_000_000 + 300 * connects;
            load.process.rss_bytes_at_start = 10_000_000;
            if second > 0 {
                load.lag.record_n(100, 100);
                load.times[Operation::Message].record_n(200, 1_000);
                load.times[Operation::Connect].record_n(300, 200);
            }
            let machine = throng_measure::MachineUse {
                cpus: 2,
                cpu_busy_us: 300_000 * second,
                cpu_idle_us: 1_700_000 * second,
                cpu_stolen_us: 0,
            };
            run.intervals.push(Interval {
                at_ms: 1_000 * second,
                span_ms: if second == 0 { 0 } else { 1_000 },
                load: Some(load),
                machine: Some(machine),
                ..Interval::default()
            });
        }
        run
    }

    /// Returns a quiet run over TLS, whose handshakes show a certificate that `change` changes.
    pub(crate) fn over_tls(change: impl Fn(&mut CertificateFacts)) -> Self {
        let mut certificate = CertificateFacts {
            subject: "CN=chat.example".into(),
            issuer: "CN=R11".into(),
            last_issuer: "CN=R11".into(),
            names: vec!["chat.example".into()],
            key: "ECDSA P-256".into(),
            valid_until_s: 90 * 86_400,
            chain: 2,
            ..CertificateFacts::default()
        };
        change(&mut certificate);
        let offer = TlsOffer {
            name: "chat.example".into(),
            versions: "1.2 to 1.3".into(),
            alpn: vec!["http/1.1".into()],
            has_certificate: false,
            may_resume: true,
        };
        let seen = TargetTls { offer, certificate: Some(certificate), ..TargetTls::default() };
        let mut run = Self::quiet();
        run.header.target = "wss://chat.example:443".into();
        run.intervals[1].events.push(RunEvent::new(1_000, RunEventKind::TargetTls(seen)));
        run
    }

    /// Returns such a run of which twenty handshakes fail each second in this way.
    pub(crate) fn failing_tls(kind: ErrorKind, change: impl Fn(&mut CertificateFacts)) -> Self {
        let run = Self::over_tls(change);
        let run = run.loaded(move |load, second| load.connect_failed.add(kind, 20 * second));
        run.seen_over_tls(|seen| seen.failure = Some(TlsFailure::default()))
    }

    /// Changes what the handshakes show.
    pub(crate) fn seen_over_tls(mut self, change: impl Fn(&mut TargetTls)) -> Self {
        let events = self.intervals.iter_mut().flat_map(|interval| &mut interval.events);
        for event in events {
            if let RunEventKind::TargetTls(seen) = &mut event.kind {
                change(seen);
            }
        }
        self
    }

    /// Returns a run with an idle server that answers no user from 4 s on, for `ms` milliseconds.
    /// Then all answers arrive; the others take 0.2 ms.
    pub(crate) fn silent(ms: u64) -> Self {
        let ends = (4_000 + ms).div_ceil(1_000);
        let idle = Self::quiet().growing(ProcessMetric::CPU_US.server, 0, 20_000, 0);
        idle.loaded(move |load, second| {
            if (5..ends).contains(&second) {
                load.counters.messages_answered = 4_000;
            }
            if second == ends {
                load.answer_gap = Some(AnswerGap { from_ms: 4_000, to_ms: 4_000 + ms });
                load.times[Operation::Message].record_n(ms * 1000, 500);
            }
        })
    }

    /// Sets a kernel counter that generator and server share: it grows by `step` in every second
    /// after the `after`th.
    pub(crate) fn growing(mut self, counter: Metric, from: i64, step: i64, after: u64) -> Self {
        for (second, interval) in self.intervals.iter_mut().enumerate() {
            let grown = (second as u64).saturating_sub(after) as i64;
            interval.kernel.set(counter, from + step * grown);
        }
        self
    }

    /// Sets a gauge of the same kernel to one value for the whole run.
    pub(crate) fn with(self, gauge: Metric, value: i64) -> Self {
        self.growing(gauge, value, 0, 0)
    }

    /// Changes the generator's part of every second: `change(load, second)`.
    pub(crate) fn loaded(mut self, change: impl Fn(&mut LoadInterval, u64)) -> Self {
        for (second, interval) in self.intervals.iter_mut().enumerate() {
            change(interval.load.as_mut().expect("there is a load"), second as u64);
        }
        self
    }

    /// Changes every interval: `change(interval, second)`.
    pub(crate) fn changed(mut self, change: impl Fn(&mut Interval, u64)) -> Self {
        for (second, interval) in self.intervals.iter_mut().enumerate() {
            change(interval, second as u64);
        }
        self
    }

    /// Returns the finding of one rule.
    pub(crate) fn find(&self, rule: &super::Rule) -> Option<Finding> {
        let (history, summary) = self.whole();
        rule.find(&RunView::new(&history, &summary))
    }

    /// Returns the finding of a rule that must have one, with evidence, a remedy and the rule's id.
    #[track_caller]
    pub(crate) fn speaks(&self, rule: &super::Rule) -> Finding {
        let found = self.find(rule).expect("the rule should find something");
        assert_eq!(found.id, rule.id);
        assert!(!found.evidence.is_empty(), "no evidence: {found}");
        assert!(!found.remedy.is_empty(), "no remedy: {found}");
        assert!(
            found.first_sentence().chars().count() <= 200,
            "too long for a verdict: {}",
            found.first_sentence()
        );
        found
    }

    /// Asserts that a rule finds nothing.
    #[track_caller]
    pub(crate) fn is_silent(&self, rule: &super::Rule) {
        let found = self.find(rule);
        assert!(found.is_none(), "the rule should find nothing: {}", found.unwrap());
    }

    /// Asserts the ids of all findings, in order.
    #[track_caller]
    pub(crate) fn check_all(&self, expected: &[&str]) {
        let (history, summary) = self.whole();
        let diagnosis = crate::diagnose(&history, &summary, &[]);
        let ids: Vec<_> = diagnosis.findings.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!(ids, expected, "{diagnosis:#?}");
    }

    /// Returns the verdict of the run's diagnosis.
    pub(crate) fn verdict(&self) -> String {
        let (history, summary) = self.whole();
        crate::diagnose(&history, &summary, &[]).verdict
    }

    /// Returns the run's history and summary.
    pub(crate) fn whole(&self) -> (History, Summary) {
        let file = RunFile {
            header: self.header.clone(),
            intervals: self.intervals.clone(),
            end: Some(RunEnd::default()),
            lines_torn: 0,
            warnings: Vec::new(),
        };
        (History::of(&file), Summary::of(&file))
    }
}
