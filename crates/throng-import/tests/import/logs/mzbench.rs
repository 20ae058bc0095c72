//! What `mzbench data` prints, as a run.

use throng_import::{Fidelity, import_log};

use super::{assert_whole, import_text};

/// Data of the tcp_worker: two moments, each with all that MZBench reports of it.
const DATA: &str = "\
1444300010\tworkers.pool1.started\t20
1444300010\tworkers.pool2.started\t5
1444300010\tworkers.pool1.ended\t0
1444300010\trequest.ok\t100
1444300010\trequest.ok.rps\t10.0
1444300010\trequest.error\t0
1444300010\tlatency.mean\t1.5
1444300010\tlatency.min\t0.5
1444300010\tlatency.max\t20
1444300010\tlatency.50\t1.25
1444300010\tlatency.999\t19
1444300010\tmetric_merging_time\t0.3
1444300020\tworkers.pool1.started\t20
1444300020\tworkers.pool2.started\t5
1444300020\tworkers.pool1.ended\t20
1444300020\tworkers.pool2.ended\t5
1444300020\tworkers.pool1.failed\t3
1444300020\trequest.ok\t400
1444300020\trequest.error\t3
1444300020\tlatency.mean\t2.5
1444300020\tlatency.min\t0.25
1444300020\tlatency.max\t30
1444300020\tlatency.50\t2
";

#[test]
fn data_of_the_tcp_worker_is_a_run() {
    let (run, fidelity) = import_text(DATA, "data.tsv");
    assert_whole(&run);
    insta::assert_snapshot!(fidelity.to_string());
    let loads: Vec<_> = run.intervals.iter().map(|line| line.load.as_ref().unwrap()).collect();
    let [_, first, last] = &loads[..] else { panic!("two moments") };
    let counters = &last.counters;
    let users = (counters.users_started, counters.users_finished, counters.users_failed);
    assert_eq!(users, (25, 22, 3), "those that failed have ended, too");
    assert_eq!((counters.messages_answered, counters.messages_failed), (400, 3));
    let (one, two) = (&first.latency_stats["message"], &last.latency_stats["message"]);
    assert_eq!((one.count, two.count), (100, 300), "as many as requests were answered");
    assert_eq!((one.mean_us, one.max_us), (1_500.0, Some(20_000.0)));
    assert_eq!(one.percentiles_us["p999"], 19_000.0);
    assert!(!two.percentiles_us.contains_key("p999"), "what the data lack stays unknown");
    assert_eq!((counters.connects_ok, last.core.bytes_sent), (0, 0));
}

/// The worker chooses the unit of its latency: only that of the tcp_worker is known.
#[test]
fn a_latency_of_another_worker_is_not_imported() {
    let data = DATA.replace("request.ok", "http_ok");
    let (run, fidelity) = import_text(&data, "data.tsv");
    let last = run.intervals.last().unwrap().load.as_ref().unwrap();
    assert!(last.latency_stats.is_empty());
    let lacking: Vec<_> = fidelity.of(Fidelity::NotSupported).collect();
    assert!(lacking.iter().any(|entry| entry.construct == "latency.mean"), "{fidelity}");
}

#[test]
fn data_without_an_end_are_those_of_a_run_that_was_cut() {
    let cut: Vec<_> = DATA.lines().take(12).collect();
    let (run, fidelity) = import_text(&(cut.join("\n") + "\n14443"), "data.tsv");
    assert!(run.end.is_none());
    let suspicious = fidelity.of(Fidelity::Suspicious).map(|entry| entry.construct.as_str());
    assert_eq!(suspicious.collect::<Vec<_>>(), ["end", "cut line"]);
}

/// Data that are sorted by metric say the same.
#[test]
fn the_order_of_the_lines_does_not_count() {
    let mut lines: Vec<_> = DATA.lines().collect();
    lines.sort_by_key(|line| line.split('\t').nth(1).map(str::to_owned));
    let (run, _) = import_text(&(lines.join("\n") + "\n"), "data.tsv");
    let (whole, _) = import_text(DATA, "data.tsv");
    let loads = |run: &throng_report::runfile::RunFile| {
        run.intervals.iter().map(|line| format!("{:?}", line.load)).collect::<Vec<_>>()
    };
    assert_eq!(loads(&run), loads(&whole));
}

#[test]
fn the_name_of_a_tool_has_letters_of_either_case() {
    for tool in ["MZBench", "mzbench", "MZBENCH"] {
        let import = import_log(DATA, "data.tsv", Some(tool));
        let import = import.unwrap_or_else(|mistakes| panic!("{tool}: {mistakes}"));
        assert_eq!(import.fidelity.tool, "MZBench");
    }
}
