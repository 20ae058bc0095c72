//! Reports of Artillery.

use serde_json::Value;
use throng_import::import_log;
use throng_measure::Operation;
use throng_report::Summary;

use super::{assert_whole, import, import_text, last, show, text_of};

const HTTP: &str = "artillery/http.json";

fn report() -> Value {
    serde_json::from_str(&text_of(HTTP)).unwrap()
}

#[test]
fn a_report_of_http() {
    insta::assert_snapshot!(show(HTTP));
}

#[test]
fn the_counters_of_the_whole_run_are_those_of_the_report() {
    let (report, load) = (report(), last(HTTP));
    let counter = |name: &str| report["aggregate"]["counters"][name].as_u64().unwrap();
    let counters = &load.counters;
    assert_eq!(counters.users_started, counter("vusers.created"));
    assert_eq!(counters.users_finished, counter("vusers.completed"));
    assert_eq!(counters.users_failed, counter("vusers.failed"));
    assert_eq!(load.errors.get("vusers.skipped"), counter("vusers.skipped"));
    assert_eq!(counters.http_started, counter("http.requests"));
    assert_eq!(counters.http_ok, counter("http.responses"));
    assert_eq!(counters.http_failed, counter("http.requests") - counter("http.responses"));
    assert_eq!(load.http_statuses.get("404"), counter("http.codes.404"));
    assert_eq!(load.errors.get("ETIMEDOUT"), counter("errors.ETIMEDOUT"));
    assert_eq!(load.core.bytes_received, counter("http.downloaded_bytes"));
}

#[test]
fn a_period_has_its_percentiles_and_the_whole_run_those_of_the_report() {
    let (report, (mut run, _)) = (report(), import(HTTP));
    let periods = report["intermediate"].as_array().unwrap();
    for (interval, period) in run.intervals[1..].iter().zip(periods) {
        let load = interval.load.as_ref().unwrap();
        let known = &load.latency_stats["http"];
        let given = &period["summaries"]["http.response_time"];
        for name in ["p50", "p90", "p95", "p99", "p999", "mean", "max"] {
            let ms = known.named(name).unwrap() / 1_000.0;
            assert!((ms - given[name].as_f64().unwrap()).abs() < 1e-6, "{name}");
        }
        assert!(load.times[Operation::Http].is_empty(), "no histogram is made up");
    }
    let spans: Vec<_> = run.intervals.iter().map(|interval| interval.span_ms).collect();
    assert_eq!(spans, [0, 7_900, 10_000, 1_400]);
    let summary = Summary::of(&run);
    let (known, given) = (&summary.latency_stats["http"], &report["aggregate"]["summaries"]);
    let given = &given["http.response_time"];
    let mean = given["mean"].as_f64().unwrap();
    assert!((known.mean_us / 1_000.0 - mean).abs() < 0.1, "{known:?}");
    for name in ["p50", "p90", "p95", "p99", "p999"] {
        let ms = known.named(name).unwrap() / 1_000.0;
        let given = given[name].as_f64().unwrap();
        assert!((ms - given).abs() < 1e-6, "{name}");
    }
    // Those of the periods cannot be joined to them.
    run.header.imported.as_mut().unwrap().latency_stats.clear();
    assert!(!Summary::of(&run).latency_stats["http"].has_percentiles());
}

#[test]
fn periods_are_sorted_and_a_report_without_them_has_one_interval() {
    let mut report = report();
    report["intermediate"].as_array_mut().unwrap().reverse();
    let (sorted, _) = import_text(&report.to_string(), HTTP);
    assert_eq!(sorted.intervals, import(HTTP).0.intervals);
    report["intermediate"] = Value::Array(Vec::new());
    let (whole, _) = import_text(&report.to_string(), HTTP);
    assert_whole(&whole);
    assert_eq!(whole.intervals.len(), 2);
    let summary = Summary::of(&whole);
    assert_eq!(summary.latency_stats["http"].named("p95"), Some(83_900.0));
}

#[test]
fn reports_that_cannot_be_true_are_refused_or_suspicious() {
    let text = text_of(HTTP);
    let mistake = |text: &str| import_log(text, "r.json", None).unwrap_err().to_string();
    let requests = |value: &str| {
        mistake(&text.replace("\"http.requests\": 81", &format!("\"http.requests\": {value}")))
    };
    assert!(requests("-81").contains("`http.requests` is -81"));
    assert!(requests("\"81\"").contains("this report of Artillery cannot be read"));
    let no_moment = mistake(&text.replace("\"period\": \"1795470810000\"", "\"period\": null"));
    assert!(no_moment.contains("a period does not say when it began"), "{no_moment}");
    let year_2096 = text.replace("\"period\": \"1795470810000\"", "\"period\": \"3995470810000\"");
    let years = mistake(&year_2096);
    assert!(years.contains("moments that are more than a year apart"), "{years}");
    let no_length = mistake(&text.replace("MetricAt", "Metric"));
    assert!(no_length.contains("does not say how long the run took"), "{no_length}");
    let old = mistake("{\"aggregate\": {\"scenariosCreated\": 1}, \"intermediate\": []}");
    assert!(old.contains("this report is of Artillery 1"), "{old}");

    let other = text.replace("\"http.requests\": 81", "\"http.requests\": 80");
    let (_, fidelity) = import_text(&other, HTTP);
    let said = fidelity.to_string();
    assert!(said.contains("the periods have 173, the whole run 174"), "{said}");
    let (run, fidelity) = import_text(&text.replace("\"mean\"", "\"average\""), HTTP);
    assert!(Summary::of(&run).latency_stats.is_empty());
    assert!(fidelity.to_string().contains("it has no mean"), "{fidelity}");
}
