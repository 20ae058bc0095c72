//! What every exporter makes of the same runs.

use throng_measure::runfile::RunHeader;
use throng_measure::runfile::{RunEndReason, ScenarioSource};
use throng_measure::{
    Diagnosis, Finding, Grade, Histogram, LatencySummary, Metric, Severity, Side, Validity,
};

use super::*;
use crate::summary::HttpSummary;
use crate::{Judgement, RunExit, Summary};

/// A run and what follows from it.
#[derive(Default)]
struct Run {
    header: RunHeader,
    summary: Summary,
    judgements: Vec<Judgement>,
    diagnosis: Diagnosis,
    warnings: Vec<String>,
}

impl Run {
    fn export(&self) -> RunExport<'_> {
        RunExport {
            header: &self.header,
            summary: &self.summary,
            judgements: &self.judgements,
            diagnosis: &self.diagnosis,
            warnings: &self.warnings,
        }
    }
}

/// Returns a run that met one threshold and missed another; `name` is part of each of its texts.
fn run(name: &str) -> Run {
    let mut latency = Histogram::new();
    latency.record_n(400, 990);
    latency.record_n(120_000, 10);
    let mut summary = Summary { duration_s: 61.2, ..Summary::default() };
    summary.run.scenario = format!("{name}.yaml");
    summary.run.target = format!("ws://127.0.0.1:4000/{name}");
    summary.run.started = "2030-01-02T03:04:05Z".to_owned();
    summary.run.throng_version = "0.1.0".to_owned();
    summary.run.end = Some(RunEndReason::Finished);
    summary.users.finished = 100;
    summary.users.connected_most = 1_000;
    (summary.connect.ok, summary.connect.intended) = (1_000, 1_003);
    summary.connect.latency_us = LatencySummary::from(&latency);
    summary.connect.judged_us = summary.connect.latency_us;
    summary.connect.failed.add("ECONNREFUSED", 3);
    summary.errors.add(name, 2);
    summary.validity = Validity { grade: Grade::Degraded, reasons: vec![format!("of {name}")] };
    let judged = |threshold: &str, met| Judgement {
        threshold: threshold.to_owned(),
        met,
        value: Some(400.0),
        measured: "400 µs".to_owned(),
    };
    let finding = Finding::new("accept_queue_overflow", Side::Kernel, format!("Full: {name}."))
        .shown_by(Metric::TCPEXT_LISTEN_OVERFLOWS.name(), 0.0, 311.0, 4_200)
        .remedied_by("throng serve ok --backlog 4096");
    Run {
        header: RunHeader {
            scenario: ScenarioSource { path: name.to_owned(), source: String::new() },
            ..RunHeader::default()
        },
        summary,
        judgements: vec![
            judged("connect.p50 < 1ms", true),
            judged(&format!("errors.{name} < 1"), false),
        ],
        diagnosis: Diagnosis {
            verdict: format!("The accept queue was full at {name}: `raise --backlog`."),
            findings: vec![finding],
            ..Diagnosis::default()
        },
        warnings: vec![format!("line 3 is torn: {name}")],
    }
}

/// A name that means something to XML, to HTML, to Markdown and to a terminal.
const HOSTILE: &str = "]]>\"'&amp;<script>alert(1)</script>|`*x*`\n\u{0}\u{1b}[31m\u{fffe}@all";

#[test]
fn markdown_of_a_run() {
    insta::assert_snapshot!(run("orders").export().markdown());
}

#[test]
fn requests_that_were_sent_again_are_told_in_markdown_as_in_text() {
    for (retried, says) in [
        (0, None),
        (1, Some("1 of 9 HTTP requests was sent a second time, because the server had closed its")),
        (3, Some("3 of 9 HTTP requests were sent a second time, because the server had closed")),
    ] {
        let mut run = run("orders");
        run.summary.http = Some(HttpSummary { started: 9, retried, ..HttpSummary::default() });
        let texts =
            [run.export().markdown(), crate::render::render_details(&run.summary, &[], None)];
        for text in texts {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words.contains("sent a second time"), says.is_some(), "{text}");
            assert!(says.is_none_or(|says| words.contains(says)), "{text}");
        }
    }
}

#[test]
fn step_summary_of_a_run() {
    insta::assert_snapshot!(run("orders").export().github());
}

#[test]
fn junit_of_a_run() {
    insta::assert_snapshot!(run("orders").export().junit());
}

#[test]
fn hostile_names_are_text_in_markdown() {
    let run = run(HOSTILE);
    let text = run.export().markdown();
    let outside_code: String = text.split('`').step_by(2).collect();
    assert!(!outside_code.replace("\\<", "").contains("<script"), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    assert_eq!(text.lines().count(), self::run("orders").export().markdown().lines().count());
}

#[test]
fn hostile_names_are_text_in_xml() {
    let xml = run(HOSTILE).export().junit();
    assert!(!xml.contains("<script") && !xml.contains(['\u{0}', '\u{1b}', '\u{fffe}']), "{xml}");
    let tags = |xml: &str| xml.matches('<').count();
    assert_eq!(tags(&xml), tags(&run("orders").export().junit()));
}

#[test]
fn a_long_report_fits_into_a_step_summary() {
    let mut run = run("orders");
    run.warnings = vec!["x".repeat(1_000); 2_000];
    let text = run.export().github();
    assert!(text.len() <= STEP_SUMMARY_BYTES_MAX && text.ends_with("throng 0.1.0\n"));
}

#[test]
fn a_suite_passes_exactly_if_the_exit_code_is_zero() {
    let met = || {
        let mut run = run("orders");
        run.judgements.truncate(1);
        run
    };
    let change = |change: fn(&mut Run)| {
        let mut run = met();
        change(&mut run);
        run
    };
    for (run, exit) in [
        (met(), RunExit::Met),
        (run("orders"), RunExit::Missed),
        (change(|run| run.summary.users.finished = 0), RunExit::Met),
        (change(|run| run.summary.run.end = Some(RunEndReason::TargetLost)), RunExit::Missed),
        (change(|run| run.summary.connect.ok = 0), RunExit::Missed),
        (change(|run| run.summary.validity.grade = Grade::Invalid), RunExit::Invalid),
        (change(|run| run.summary.run.end = Some(RunEndReason::Failed)), RunExit::Invalid),
        (change(|run| run.summary.run.incomplete = Some("x".into())), RunExit::Incomplete),
        (change(|run| run.summary.run.lines_lost = 2), RunExit::Unwritten),
    ] {
        assert_eq!(RunExit::of(&run.summary, &run.judgements), exit);
        let xml = run.export().junit();
        let is_green = xml.contains("failures=\"0\" errors=\"0\"");
        assert_eq!(is_green, exit == RunExit::Met, "{exit:?}\n{xml}");
        let annotations = run.export().annotations();
        assert_eq!(annotations.contains("::error "), !is_green, "{exit:?}\n{annotations}");
        let check = crate::render::check_text(&run.summary, &run.judgements);
        assert_eq!(check.starts_with("met: "), is_green, "{exit:?}\n{check}");
    }
}

#[test]
fn the_headline_of_a_run_that_ended_early_says_so() {
    let mut run = run("orders");
    let says = "Incomplete: a key ended it after 7.8 s of its 12.0 s. ";
    assert!(!run.export().markdown().contains("Incomplete: "));
    run.summary.run.incomplete = Some("a key ended it after 7.8 s of its 12.0 s".to_owned());
    let (markdown, github) = (run.export().markdown(), run.export().github());
    assert!(markdown.contains(&format!("\n**{says}")), "{markdown}");
    assert!(github.contains(&format!("\n> {says}")), "{github}");
}

#[test]
fn json_has_what_follows_from_the_summary() {
    let run = run("orders");
    let json = run.export().json();
    assert_eq!(json["connect"]["latency_us"]["p50"], 400);
    assert_eq!(json["thresholds"][1]["met"], false);
    assert_eq!(json["diagnosis"]["findings"][0]["id"], "accept_queue_overflow");
}

#[test]
fn annotations_are_commands_beside_the_lines_of_the_scenario() {
    let mut run = run("orders");
    run.header.scenario.source = "target: tcp://127.0.0.1:1\nload: []\nthresholds:\n  \
        - connect.p50 < 1ms\n  - errors.orders < 1\n"
        .to_owned();
    let text = run.export().annotations();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "::error file=orders.yaml,line=5,title=throng threshold::missed the threshold \
         errors.orders < 1: measured 400 µs"
    );
    let finding = "::warning file=orders.yaml,line=1,title=throng accept_queue_overflow::Full: ";
    assert!(lines[1].starts_with(finding), "{text}");
    assert!(lines[2].starts_with("::notice file=orders.yaml,line=1,title=throng::The accept"));
    assert_eq!(lines.len(), 3);
    let hostile = self::run("a\n::error::x,b:%").export().annotations();
    assert_eq!(hostile.lines().count(), 3, "{hostile}");
    assert!(hostile.contains("file=a%0A%3A%3Aerror%3A%3Ax%2Cb%3A%25.yaml,line=1,"), "{hostile}");
}

#[test]
fn a_fingerprint_stays_when_the_measured_value_changes() {
    let of = |run: &Run| run.export().code_quality();
    let mut run = run("orders");
    let before = of(&run);
    run.judgements[1].measured = "7".to_owned();
    let after = of(&run);
    assert_ne!(before[0]["description"], after[0]["description"]);
    assert_eq!(before[0]["fingerprint"], after[0]["fingerprint"]);
    assert_ne!(before[0]["fingerprint"], before[1]["fingerprint"]);
    assert_eq!(
        (&before[0]["severity"], &before[1]["severity"]),
        (&"critical".into(), &"minor".into())
    );
    assert_eq!(before[0]["location"]["path"], "orders.yaml");
    run.judgements[0].met = false;
    let two = of(&run);
    assert_ne!(two[0]["fingerprint"], two[1]["fingerprint"], "two thresholds are two problems");
}

#[test]
fn the_schema_knows_each_member_of_a_diagnosis() {
    let schema = include_str!("../../../../docs/schema/diagnosis.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let mut diagnosis = run("orders").diagnosis;
    diagnosis.cause = Some("x".to_owned());
    diagnosis.findings[0].follows_from = Some("x".to_owned());
    diagnosis.findings[0].machines = vec!["x".to_owned()];
    let real = serde_json::to_value(&diagnosis).unwrap();
    let finding = &schema["$defs"]["finding"];
    let evidence = &schema["$defs"]["evidence"];
    for (known, real) in [
        (&schema, &real),
        (finding, &real["findings"][0]),
        (evidence, &real["findings"][0]["evidence"][0]),
    ] {
        let names = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let (mut known, mut real) = (names(&known["properties"]), names(real));
        known.sort();
        real.sort();
        assert_eq!(known, real);
    }
    let words = |name: &str| finding["properties"][name]["enum"].clone();
    let sides = [Side::Server, Side::Client, Side::Kernel, Side::Network];
    assert_eq!(words("side"), serde_json::to_value(sides).unwrap());
    let severities = [Severity::Noted, Severity::Slowed, Severity::Stopped];
    assert_eq!(words("severity"), serde_json::to_value(severities).unwrap());
}
