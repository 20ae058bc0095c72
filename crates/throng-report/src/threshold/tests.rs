use throng_measure::{ErrorKind, Histogram, LatencySummary};

use super::*;

fn measured() -> Summary {
    let mut summary = Summary::default();
    summary.connect.ok = 9_990;
    summary.connect.failed.add("ECONNREFUSED", 10);
    summary.errors.add(ErrorKind::Connect, 10);
    summary.connect.rate_most = Some(12_000.0);
    summary.connect.latency_us =
        LatencySummary { p99: 99_999, p999: 300_000, count: 9_990, ..Default::default() };
    summary.connect.judged_us = summary.connect.latency_us;
    summary.users.connected_most = 100_000;
    summary.generator.cpu_us_per_connect = Some(17.25);
    summary
}

#[track_caller]
fn check(text: &str, met: bool, shown: &str) {
    let judgement = text.parse::<Threshold>().unwrap().judge(&measured());
    assert_eq!((judgement.met, judgement.measured.as_str()), (met, shown), "{judgement:?}");
}

/// A run with 2,290 messages that were answered at once, and 50 that had waited for two seconds
/// when the run ended.
fn stalled() -> Summary {
    let (mut answered, mut unanswered) = (Histogram::new(), Histogram::new());
    answered.record_n(200, 2_290);
    unanswered.record_n(1_960_000, 50);
    let mut summary = measured();
    summary.message.latency_us = (&answered).into();
    summary.message.unanswered_us = (&unanswered).into();
    summary.message.judged_us = throng_measure::unanswered::judged(&answered, &unanswered);
    summary.message.waiting = 50;
    summary
}

#[test]
fn what_still_waits_at_the_end_counts_towards_the_percentiles_of_its_kind() {
    let summary = stalled();
    let judge = |text: &str| text.parse::<Threshold>().unwrap().judge(&summary);
    assert!(judge("message.p50 < 1ms").met && judge("message.unanswered == 50").met);
    assert!(!judge("message.p99 < 100ms").met, "two of a hundred wait for two seconds");
    assert_eq!(judge("message.max < 1s").measured, "at least 1.96 s");
    assert_eq!(judge("message.p50 < 1ms").measured, "200 µs");
    assert!(judge("connect.p99 < 1s").met, "no connect is waiting");
}

#[test]
fn a_run_without_an_answer_meets_no_latency_however_short_the_waits_are() {
    let mut summary = stalled();
    summary.message.judged_us = summary.message.unanswered_us;
    summary.message.latency_us = LatencySummary::default();
    let judged = "message.p99 < 1h".parse::<Threshold>().unwrap().judge(&summary);
    assert_eq!((judged.met, judged.value), (false, None));
    assert_eq!(judged.measured, "none of 50 was answered, the longest wait was 1.96 s");
}

#[test]
fn thresholds_are_compared_in_the_unit_of_their_name() {
    check("connect.p99 < 100ms", true, "100 ms");
    check("connect.p99<99.999ms", false, "100 ms");
    check("connect.p99.9 <= 300ms", true, "300 ms");
    check("connect.rate_most > 10000/s", true, "12k/s");
    check("connected_most >= 100k", true, "100000");
    check("users.connected_most > 100k", false, "100000");
    check("  generator.cpu_us_per_connect < 20us ", true, "17.2 µs");
}

#[test]
fn errors_are_a_count_or_a_share_of_what_was_attempted() {
    check("errors <= 10", true, "10");
    check("errors < 10", false, "10");
    check("errors <= 0.1%", true, "0.1%");
    check("errors < 0.1%", false, "0.1%");
    check("errors.connect == 10", true, "10");
    check("connect.failed == 0", false, "10");
    check("connect.failed.ECONNREFUSED == 10", true, "10");
    check("connect.failed.EMFILE == 0", true, "0");
}

/// A run of 20 logins and 100 requests, of which 80 were answered with 200, 12 with 429 and 6 with
/// 500; the scenario expects 500.
fn answered_by_status() -> Summary {
    let mut summary = Summary::default();
    summary.connect.ok = 30;
    let mut http = crate::summary::HttpSummary {
        started: 100,
        connects: 20,
        retried: 3,
        status_2xx: 80,
        status_4xx: 12,
        status_5xx: 6,
        ..Default::default()
    };
    [("200", 80), ("429", 12), ("500", 6)].iter().for_each(|(s, n)| http.statuses.add(s, *n));
    summary.http = Some(http);
    summary.errors.add(ErrorKind::HttpStatus.with(429), 12);
    summary.errors.add(ErrorKind::HttpTimeout, 2);
    summary
}

#[test]
fn answers_are_a_count_or_a_share_of_all_answers_and_their_errors_one_of_the_requests() {
    let summary = answered_by_status();
    let check = |text: &str, met: bool, shown: &str| {
        let judgement = text.parse::<Threshold>().unwrap().judge(&summary);
        assert_eq!((judgement.met, judgement.measured.as_str()), (met, shown), "{judgement:?}");
    };
    check("http.429 == 12", true, "12");
    check("http.429 < 1%", false, "12.2449%");
    check("http.4xx <= 10", false, "12");
    check("http.5xx < 7%", true, "6.1224%");
    check("http.200 >= 81%", true, "81.6327%");
    check("http.404 == 0", true, "0");
    check("http.retried <= 3", true, "3");
    check("errors.http_status.429 == 0", false, "12");
    check("errors.http_status.429 <= 12%", true, "12%");
    check("errors.http_status.500 == 0", true, "0");
    check("errors.http_status.4xx < 12", false, "12");
    check("errors.http_status == 12", true, "12");
    check("errors.http_timeout <= 2%", true, "2%");
    // Ten connects of `connect` steps, and the requests with theirs.
    check("errors < 12.73%", true, "12.7273%");
}

#[test]
fn a_status_of_a_run_file_that_has_only_classes_was_not_measured() {
    let mut summary = answered_by_status();
    summary.http.as_mut().unwrap().statuses = Default::default();
    let judge = |text: &str| text.parse::<Threshold>().unwrap().judge(&summary);
    assert_eq!((judge("http.404 == 0").met, judge("http.404 == 0").value), (false, None));
    assert!(judge("http.4xx == 12").met);
    assert!(judge("errors.http_status.404 == 0").met);
    // An older file has no status in the kind of an error, either.
    summary.errors = Default::default();
    summary.errors.add(ErrorKind::HttpStatus, 12);
    let judge = |text: &str| text.parse::<Threshold>().unwrap().judge(&summary);
    for text in ["errors.http_status.429 == 0", "errors.http_status.4xx < 1%"] {
        assert_eq!((judge(text).met, judge(text).value), (false, None), "{text}");
    }
    assert!(judge("errors.http_status == 12").met);
    summary.http = None;
    assert!(!"http.4xx == 0".parse::<Threshold>().unwrap().judge(&summary).met);
}

#[test]
fn what_was_not_measured_meets_no_threshold() {
    check("message.p99 < 1h", false, "nothing");
    check("message.rate_most >= 0/s", false, "nothing");
    check("server.rss_bytes_per_connection < 256B", false, "nothing");
}

#[track_caller]
fn check_error(text: &str, span: Range<usize>, suggestion: Option<&str>) {
    let error = text.parse::<Threshold>().unwrap_err();
    assert_eq!((error.span, error.suggestion.as_deref()), (span, suggestion), "{text}");
}

#[test]
fn errors_point_at_the_bytes_and_suggest_the_nearest_name() {
    check_error("conect.p99 < 1s", 0..10, Some("connect.p99"));
    check_error(" connect.p9999 < 1s", 1..14, Some("connect.p99.99"));
    check_error("message.p100 < 1s", 0..12, Some("message.max"));
    check_error("message.99 < 1s", 0..10, Some("message.p99"));
    check_error("message.p9x < 1s", 0..11, Some("message.p90"));
    check_error("generator.lag.p05 < 1s", 0..17, Some("generator.lag.p5"));
    check_error("message.p0 < 1s", 0..10, Some("message.p50"));
    check_error("closed_by_peer == 0", 0..14, Some("errors.closed_by_peer"));
    check_error("expect_timout == 0", 0..13, Some("errors.expect_timeout"));
    check_error("errors.expect_timout < 1", 0..20, Some("errors.expect_timeout"));
    check_error("bananas < 3", 0..7, None);
    check_error("", 0..0, None);
    check_error("connect.p99 = 1s", 12..13, Some("=="));
    check_error("connect.p99 1s", 12..12, None);
    check_error("connect.p99 < 10", 14..16, None);
    check_error("connect.p99 < 10 parsecs", 17..24, None);
    check_error("connect.rate_most > 10", 22..22, None);
    check_error("errors <", 8..8, None);
    check_error("errors. < 3", 0..7, Some("errors"));
    check_error("step < 3", 0..4, None);
    check_error("step.login < 3", 0..10, Some("step.login.p95"));
    check_error("step.login. < 3", 0..11, None);
    check_error("step.login.p9999 < 3s", 0..16, Some("step.login.p99.99"));
    check_error("step.login.eror < 3", 0..15, Some("step.login.errors"));
    check_error("step.login.failed < 3", 0..17, Some("step.login.errors"));
    check_error("transaction.shop.p95 < 3s", 0..20, Some("step.shop.p95"));
    check_error("step.login.ok < 3s", 17..18, None);
    check_error("class. < 3", 0..6, None);
    check_error("class.api < 3", 0..9, None);
    check_error("class.api.errors < 3", 0..16, None);
    check_error("class.api.broadcast.p99 < 3s", 0..23, None);
    check_error("class.api.htp.p99 < 3s", 0..17, Some("class.api.http.p99"));
    check_error("class.api.http.p9999 < 3s", 0..20, Some("class.api.http.p99.99"));
    check_error("class.api.http.p99 < 3", 21..22, None);
    check_error("http.42 < 3", 0..7, Some("http.p42"));
    check_error("http.4x < 3", 0..7, Some("http.4xx"));
    check_error("http.700 < 3", 0..8, None);
    check_error("http.101 < 3", 0..8, None);
    check_error("errors.http_status.4290 < 3", 0..23, Some("errors.http_status.4xx"));
    check_error("errors.http_status.x < 3", 0..20, None);
    check_error("http.429 < 3s", 12..13, None);
}

#[test]
fn a_threshold_tells_its_name_what_it_asks_and_its_latency() {
    let check = |text: &str, name: &str, condition: &str, latency: Option<(&str, u64)>| {
        let threshold: Threshold = text.parse().unwrap();
        assert_eq!((threshold.name(), threshold.condition()), (name, condition), "{text}");
        assert_eq!(threshold.latency_most(), latency, "{text}");
    };
    check("message.p99 < 10ms", "message.p99", "< 10ms", Some(("message", 10_000)));
    check("message.p99.9<=1s", "message.p99.9", "<=1s", Some(("message", 1_000_000)));
    check("generator.lag.max < 5ms", "generator.lag.max", "< 5ms", Some(("generator.lag", 5_000)));
    check("message.p99 > 10ms", "message.p99", "> 10ms", None);
    check("errors < 0.1%", "errors", "< 0.1%", None);
}

#[test]
fn every_listed_name_is_a_threshold() {
    for name in names() {
        let units = ["1s", "1", "1/s", "1%", "1B"];
        let parsed =
            units.iter().filter(|unit| format!("{name} < {unit}").parse::<Threshold>().is_ok());
        assert!(parsed.count() >= 1, "{name}");
    }
}

#[test]
fn the_costs_of_a_server_of_others_are_compared_too() {
    let mut summary = measured();
    summary.foreign_server = Some(crate::summary::ServerCosts {
        cpu_us_per_connection: Some(21.0),
        cpu_us_per_message: Some(4.0),
        rss_bytes_per_connection: Some(2_048.0),
        cpu_cores_used: None,
    });
    for (text, met) in [
        ("server.cpu_us_per_connection < 22us", true),
        ("server.cpu_us_per_message < 3us", false),
        ("server.rss_bytes_per_connection <= 2KiB", true),
    ] {
        let judgement = text.parse::<Threshold>().unwrap().judge(&summary);
        assert_eq!(judgement.met, met, "{judgement:?}");
        assert!(judgement.value.is_some(), "{judgement:?}");
    }
}

#[test]
fn a_missed_threshold_asks_for_more_or_for_less() {
    let check = |text: &str, value: f64, asks_for_more: bool| {
        let threshold: Threshold = text.parse().unwrap();
        assert_eq!(threshold.asks_for_more_than(value), asks_for_more, "{text}, {value}");
    };
    check("http.2xx >= 5k", 4_000.0, true);
    check("http.2xx ≥ 99%", 0.98, true);
    check("http.2xx == 100%", 0.98, true);
    check("http.5xx == 0", 3.0, false);
    check("http.5xx <= 10", 18.0, false);
}
