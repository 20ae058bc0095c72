//! tsung.log.

use std::collections::BTreeMap;

use throng_report::Summary;

use super::{assert_whole, import, import_text, last, show, text_of};

/// Returns the sum of a column of each statistic: the first number is 1.
fn sums(text: &str, column: usize) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("stats: ")) {
        let words: Vec<&str> = line.split(' ').collect();
        if let Ok(number) = words[column].parse::<u64>() {
            *sums.entry(words[0].to_owned()).or_default() += number;
        }
    }
    sums
}

#[test]
fn a_log_of_tcp() {
    insta::assert_snapshot!(show("tsung/tcp.log"));
}

#[test]
fn a_log_of_http() {
    insta::assert_snapshot!(show("tsung/http.log"));
}

#[test]
fn the_sums_of_a_log_are_those_of_the_run() {
    for path in ["tsung/tcp.log", "tsung/http.log"] {
        let (sums, load) = (sums(&text_of(path), 1), last(path));
        let counters = &load.counters;
        let sum = |name: &str| sums.get(name).copied().unwrap_or(0);
        assert_eq!(counters.users_started, sum("users_count"));
        assert_eq!(counters.users_finished + counters.users_failed, sum("finish_users_count"));
        assert_eq!(counters.users_failed, sum("error_abort_max_conn_retries"));
        assert_eq!(counters.connects_ok, sum("connect"));
        assert_eq!(counters.connects_failed, sum("error_connect_econnrefused"));
        assert_eq!(load.connect_failed.get("ECONNREFUSED"), counters.connects_failed);
        assert_eq!(counters.messages_answered + counters.http_ok, sum("request"));
        assert_eq!((counters.http_2xx, counters.http_4xx), (sum("200"), sum("404")));
        assert_eq!(load.http_statuses.get("404"), sum("404"));
        assert_eq!(
            (load.core.bytes_received, load.core.bytes_sent),
            (sum("size_rcv"), sum("size_sent"))
        );
        for step in &load.steps {
            let of = sum(&step.name).max(sum(&format!("tr_{}", step.name)));
            assert_eq!(step.ok, of, "{}", step.name);
        }
    }
}

#[test]
fn statistics_of_the_whole_run_are_those_of_all_dumps() {
    let (run, _) = import("tsung/tcp.log");
    let summary = Summary::of(&run);
    let stats = &summary.latency_stats["message"];
    // The columns of the last line: the mean of this dump, and mean and number of those before.
    let (here, before) = ((248.0, 0.247133064516129), (1_111.0, 0.3861746174617459));
    let mean_ms = (here.0 * here.1 + before.0 * before.1) / (here.0 + before.0);
    assert!((stats.mean_us - 1_000.0 * mean_ms).abs() < 1e-6, "{stats:?}");
    assert_eq!((stats.count, stats.min_us, stats.max_us), (1_359, Some(35.0), Some(12_169.0)));
    assert_eq!(summary.message.latency_us.count, 0, "no value is invented");
    assert_eq!(summary.latencies["message"].answered.count(), 0);
    assert_eq!(summary.arrivals.ratio, None);
    let spans: Vec<_> = run.intervals.iter().map(|interval| interval.span_ms).collect();
    assert_eq!(spans, [0, 10_000, 10_000, 6_000]);
    assert_eq!(run.header.started, "2026-11-23T21:53:16Z");
}

#[test]
fn an_extreme_belongs_to_the_dump_in_which_it_moved() {
    let (run, _) = import("tsung/tcp.log");
    let stats = run.intervals.iter().filter_map(|interval| {
        interval.load.as_ref().unwrap().latency_stats.get("connect").cloned()
    });
    let extremes: Vec<_> = stats.map(|stats| (stats.min_us, stats.max_us)).collect();
    let moved = [(Some(304.0), Some(4_131.0)), (Some(267.0), Some(11_946.0)), (Some(265.0), None)];
    assert_eq!(extremes, moved);
}

#[test]
fn an_imported_run_is_not_called_valid() {
    let (run, _) = import("tsung/tcp.log");
    let summary = Summary::of(&run);
    let reasons = ["imported from tsung.log: how late the generator was is not known"];
    assert_eq!(summary.validity.reasons, reasons);
    assert_eq!(run.end.unwrap().validity, summary.validity);
}

#[test]
fn a_log_that_was_cut_is_that_of_a_run_that_was_killed() {
    let text = text_of("tsung/tcp.log");
    let cut = text.find("stats: size_sent 9615 16715").unwrap() + 12;
    let (run, fidelity) = import_text(&text[..cut], "cut.log");
    assert_eq!(run.end, None);
    assert_eq!(run.intervals.len(), 3);
    let report = fidelity.to_string();
    for part in ["suspicious", "line 34, cut line", "tsung was killed or is still running"] {
        assert!(report.contains(part), "{report}");
    }
}

#[test]
fn dumps_of_one_second_are_one_interval() {
    let text = text_of("tsung/tcp.log").replace("at 1795470822", "at 1795470816");
    let (run, _) = import_text(&text, "fast.log");
    assert_whole(&run);
    let last = run.intervals.last().unwrap();
    assert_eq!((run.intervals.len(), last.at_ms), (3, 20_000));
    let load = last.load.as_ref().unwrap();
    assert_eq!((load.counters.connects_ok, load.latency_stats["connect"].count), (333, 196));
}

#[test]
fn requests_of_two_protocols_are_told_apart_as_far_as_the_log_can() {
    let text = text_of("tsung/http.log").replace("stats: 404", "stats: no_such_counter");
    let (run, fidelity) = import_text(&text, "both.log");
    let load = run.intervals.last().unwrap().load.as_ref().unwrap();
    assert_eq!((load.counters.http_ok, load.counters.messages_answered), (353, 353));
    assert!(load.latency_stats.contains_key("step.request"), "{:?}", load.latency_stats);
    let report = fidelity.to_string();
    assert!(report.contains("HTTP and other requests share one duration"), "{report}");
}
