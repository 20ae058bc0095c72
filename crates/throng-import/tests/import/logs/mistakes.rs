//! Logs that are broken, and files that are no logs.

use throng_import::{ImportOptions, import, import_log};

use super::text_of;

fn mistakes(name: &str, text: &str, tool: Option<&str>) -> String {
    match import_log(text, name, tool) {
        Ok(_) => panic!("this log has no mistake:\n{text}"),
        Err(mistakes) => mistakes.to_string(),
    }
}

fn all(name: &str, texts: &[&str]) -> String {
    let shown: Vec<_> = texts.iter().map(|text| mistakes(name, text, None)).collect();
    shown.join("\n\n")
}

#[test]
fn broken_logs_of_tsung() {
    let dump = "# stats: dump at 1795470806\n";
    let two = |first: &str, second: &str| {
        format!("{dump}stats: {first}\n# stats: dump at 1795470816\nstats: {second}\n")
    };
    insta::assert_snapshot!(all(
        "tsung.log",
        &[
            "# stats: dump at noon\n",
            "stats: users 1 1\n# stats: dump at 1795470806\n",
            &format!("{dump}stats: request 460 0.44\nstats: connect 1 2 3\n"),
            &format!("{dump}stats: request many 0.4 0.5 4.3 0.03 0 0\n"),
            &format!("{dump}stats: request -1 0.4 0.5 4.3 0.03 0 0\n"),
            &format!("{dump}stats: users_count 1 1.5\n"),
            &format!("{dump}stats: \n"),
            &format!("{dump}Segmentation fault\n"),
            "# stats: dump at 1795470816\n# stats: dump at 1795470806\n",
            "# stats: dump at 1795470816\n# stats: dump at 1895470816\n",
            &two("users_count 9 9", "users_count 1 1"),
            &two("request 9 1 1 1 1 0 0", "request 1 1 1 1 1 0 0"),
        ]
    ));
}

#[test]
fn broken_logs_of_k6() {
    let point = |data: &str| {
        format!("{{\"type\":\"Point\",\"metric\":\"http_reqs\",\"data\":{{{data}}}}}\n")
    };
    let time = "\"time\":\"2017-05-09T14:34:45Z\"";
    let good = point(&format!("{time},\"value\":1,\"tags\":null"));
    let years_later = good.replace("2017", "2071");
    insta::assert_snapshot!(all(
        "k6.json",
        &[
            &point("\"value\":1"),
            &point("\"time\":\"noon\",\"value\":1"),
            &point(time),
            &point(&format!("{time},\"value\":-1,\"tags\":{{\"status\":\"200\"}}")),
            &point(&format!("{time},\"value\":1,\"tags\":{{\"status\":200}}")),
            &format!("{good}{{\"type\":\"Point\",\"metric\n{good}"),
            &format!("{years_later}{good}"),
            "{\"type\":\"Metric\",\"metric\":\"vus\",\"data\":{\"type\":\"gauge\"}}\n",
            "{\"metrics\":{\"iterations\":{\"count\":5}}}",
            "{\"metrics\":{\"iterations\":[5]}}",
            "{\"metrics\":{\"iterations\":{\"count\":5,\"rate\":",
        ]
    ));
}

#[test]
fn files_that_are_no_logs() {
    let scenario = "<?xml version=\"1.0\"?>\n<tsung loglevel=\"notice\"></tsung>\n";
    let run = "{\"schema\":\"throng.run/1\",\"started\":\"\"}\n";
    insta::assert_snapshot!(all("file", &["", "\n\n", "hello\n", scenario, run]));
}

#[test]
fn a_log_of_another_tool_than_the_one_that_is_named() {
    let text = text_of("k6/export.json");
    insta::assert_snapshot!(mistakes("k6.json", &text, Some("tsung")));
}

#[test]
fn a_log_that_is_given_for_a_scenario() {
    for path in ["tsung/tcp.log", "k6/socket.json", "k6/export.json"] {
        let mistakes = import(&text_of(path), path, &ImportOptions::default()).unwrap_err();
        let shown = mistakes.to_string();
        assert!(shown.contains(&format!("throng import-log {path}")), "{shown}");
    }
}
