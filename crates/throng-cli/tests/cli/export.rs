//! Reports for other programs: what they read is what `--json` says.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::TestDir;

/// Returns a run of a second whose names mean something to CSV, XML, Markdown and HTML.
fn run_file() -> String {
    let source = "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 7, over: 2s}}]\n\
        user: [connect, close]\nthresholds: [connected_most >= 7, errors < 1]\n";
    let counters = json!({
        "users_intended": 7, "users_started": 7, "users_finished": 7,
        "connects_started": 7, "connects_ok": 7, "connected": 7,
    });
    let errors = json!({ "a\",\n<b>\u{1}": 2 });
    let lines = [
        json!({
            "target": "tcp://127.0.0.1:1/<b>&\"",
            "started": "2030-01-02T03:04:05Z",
            "scenario": {"path": "a|b.yaml", "source": source},
        }),
        json!({"at_ms": 0, "span_ms": 0, "load": {"phase": "ramp"}}),
        json!({
            "at_ms": 1000,
            "span_ms": 1000,
            "load": {"phase": "ramp", "counters": counters, "errors": errors},
        }),
        json!({"end": {"reason": "finished"}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // A run file begins with its schema.
    format!("{{\"schema\":\"throng.run/1\",{}", &text[1..])
}

/// Runs Python, or returns `None` where there is none.
fn python(place: &TestDir, program: &str) -> Option<Value> {
    let mut python = Command::new("python3");
    let Ok(output) = python.args(["-c", program]).current_dir(place.path(".")).output() else {
        println!("skipped: there is no python3");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn no_format_has_a_command_for_the_terminal() {
    let place = TestDir::new();
    let hostile = "a\u{1b}]0;b\u{7}\u{9b}2J\u{202e}\u{2028}\u{200b}c";
    // JSON has the characters as they are, but for those below the space.
    let in_json = Value::from(hostile).to_string();
    let in_json = in_json.trim_matches('"');
    let text = run_file().replace("tcp://127.0.0.1:1/", in_json);
    place.write("run.jsonl", &text.replace("<b>\\u0001", in_json));
    for format in
        ["text", "json", "csv", "markdown", "junit", "github", "annotations", "codequality", "html"]
    {
        let said = place.throng(&["report", "--format", format]).exits_with(1);
        let is_command = |c: char| {
            c.is_control() && !matches!(c, '\n' | '\t')
                || matches!(c, '\u{202e}' | '\u{2028}' | '\u{200b}')
        };
        assert!(!said.stdout.contains(is_command), "{format}: {:?}", said.stdout);
        assert!(!said.stderr.contains(is_command), "{format}: {:?}", said.stderr);
    }
    let json = place.throng(&["report", "--json"]).exits_with(1).json();
    let target = json["run"]["target"].as_str().unwrap();
    assert!(target.starts_with(hostile), "{target:?}");
}

#[test]
fn other_programs_read_what_json_says() {
    let place = TestDir::new();
    place.write("run.jsonl", &run_file());
    let summary = place.throng(&["report", "--json"]).exits_with(1).json();
    let all =
        ["report", "-o", "a.csv", "-o", "a.xml", "-o", "a.md", "-o", "a.json", "-o", "a.html"];
    let said = place.throng(&all).exits_with(1);
    assert_eq!(said.stdout, "a.csv\na.xml\na.md\na.json\na.html\n");
    assert_eq!(place.json("a.json"), summary);
    let left: Vec<_> = std::fs::read_dir(place.path(".")).unwrap().map(Result::unwrap).collect();
    let hidden = left.iter().find(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert!(hidden.is_none(), "{hidden:?} was left behind");
    let markdown = std::fs::read_to_string(place.path("a.md")).unwrap();
    assert!(markdown.contains("a\\|b.yaml against tcp://127.0.0.1:1/\\<b\\>\\&"), "{markdown}");

    let csv = "import csv, json; rows = list(csv.DictReader(open('a.csv', newline='')))\n\
        print(json.dumps({r['metric']: float(r['value']) for r in rows}))";
    let Some(last) = python(&place, csv) else { return };
    assert_eq!(last["load.connects_ok"], summary["connect"]["ok"].as_f64().unwrap());
    assert_eq!(last["load.connected"], summary["users"]["connected_most"].as_f64().unwrap());
    assert_eq!(last["load.errors.a\",\\n<b>\\u{1}"], 2.0);

    let junit = "import json, xml.etree.ElementTree as e; s = e.parse('a.xml').getroot()[0]\n\
        print(json.dumps([s.attrib, s[0][0].attrib['value'],\n\
        [[c.attrib['name'], len(c)] for c in s.iter('testcase')]]))";
    let Some(suite) = python(&place, junit) else { return };
    assert_eq!((&suite[0]["tests"], &suite[0]["failures"]), (&"4".into(), &"1".into()));
    assert_eq!(suite[0]["name"], "a|b.yaml");
    assert_eq!(suite[1], summary["run"]["target"], "text comes back as it was");
    for (case, judgement) in [(2, 0), (3, 1)] {
        let judgement = &summary["thresholds"][judgement];
        assert_eq!(suite[2][case][0], judgement["threshold"]);
        assert_eq!(suite[2][case][1] == 0, judgement["met"] == true);
    }
}

#[test]
fn a_format_is_printed_and_a_step_summary_is_appended() {
    let place = TestDir::new();
    place.write("run.jsonl", &run_file());
    for (format, beginning) in [
        ("text", ""),
        ("json", "{"),
        ("csv", "at_s,metric,kind,unit,value\n"),
        ("markdown", "### throng"),
        ("junit", "<?xml"),
        ("github", "## "),
        ("annotations", "::error file=a|b.yaml,line=4,title=throng threshold::missed"),
        ("codequality", "[\n"),
    ] {
        let said = place.throng(&["report", "--format", format]).exits_with(1);
        assert!(said.stdout.starts_with(beginning), "{format}: {}", said.stdout);
    }
    place.write("steps.md", "of another step\n");
    let said = place.shell("GITHUB_STEP_SUMMARY=steps.md throng report --step-summary");
    assert_eq!((said.exits_with(1).stdout.as_str()), "");
    let steps = std::fs::read_to_string(place.path("steps.md")).unwrap();
    assert!(steps.starts_with("of another step\n## "), "{steps}");
    let refused = place.shell("GITHUB_STEP_SUMMARY= throng report --step-summary").exits_with(2);
    refused.stderr_contains(&["GITHUB_STEP_SUMMARY is not set"]);
}

#[test]
fn a_format_that_says_nothing_is_refused() {
    let place = TestDir::new();
    place.write("run.jsonl", &run_file());
    let check = ["report", "--check", "--format", "markdown"];
    place.throng(&check).exits_with(2).stderr_contains(&["--format says nothing", "-o"]);
    let said = place.throng(&[&check[..], &["-o", "a"]].concat()).exits_with(1);
    assert!(said.stdout.starts_with("a\nmissed\n"), "{said:#?}");
    let line = "GITHUB_STEP_SUMMARY=steps.md throng report --step-summary --format annotations";
    let said = place.shell(line).exits_with(1);
    assert!(said.stdout.starts_with("::error file="), "{said:#?}");
}

#[test]
fn the_help_names_each_extension_of_a_report() {
    let place = TestDir::new();
    let refused = place.throng(&["report", "-o", "a.pdf"]).exits_with(2).stderr;
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
        let extensions = words.filter(|word| word.starts_with('.') && word.len() > 1);
        extensions.map(|word| word.trim_end_matches('.').to_owned()).collect()
    };
    let known = words(refused.split_once("use one of").unwrap().1);
    assert!(known.contains(".htm"), "{refused}");
    for command in ["report", "run"] {
        let help = place.throng(&[command, "--help"]).exits_with(0).stdout;
        assert!(words(&help).is_superset(&known), "{command}: {known:?}");
    }
}

#[test]
fn a_report_that_cannot_be_written_says_why_and_harms_nothing() {
    let place = TestDir::new();
    place.write("run.jsonl", &run_file());
    place.write("other.jsonl", &run_file());
    place.write("kept.csv", "precious");
    place.write("broken.jsonl", "no run file");
    place.write(
        "few.yaml",
        "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 1, over: 1s}}]\nuser: [connect]\n",
    );
    for (args, why) in [
        (&["report", "-o", "a.pdf"][..], ".html, .htm, .json, .csv, .md"),
        (&["report", "-o", "run.jsonl", "--format", "csv"], "it is a run file"),
        (&["report", "-o", "other.jsonl"], "it is a run file"),
        (&["report", "-o", "nowhere/a.csv"], "there is no folder nowhere"),
        (&["report", "--format", "pdf"], "text, html, json, csv, markdown"),
        (&["report", "broken.jsonl", "-o", "kept.csv"], "not a run file"),
        (&["run", "few.yaml", "--record", "a.json", "--report", "./a.json"], "it is the run file"),
        (&["run", "few.yaml", "--record", "a.html", "--report"], "it is the run file"),
        (&["run", "no.yaml", "--report", "a.pdf"], ".html, .htm, .json, .csv, .md"),
    ] {
        place.throng(args).exits_with(2).stderr_contains(&[why]);
    }
    assert_eq!(std::fs::read_to_string(place.path("other.jsonl")).unwrap(), run_file());
    assert_eq!(std::fs::read_to_string(place.path("kept.csv")).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(place.path(".")).unwrap().count(), 5, "nothing is left behind");
}

#[test]
fn a_report_through_a_link_does_not_replace_the_run_file_and_costs_no_result() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    place.write("few.yaml", &server.scenario("[{ramp: {to: 3, over: 300ms}}]", "[connect, close]"));
    std::os::unix::fs::symlink("a.json", place.path("link.json")).unwrap();
    let run = ["run", "few.yaml", "--record", "a.json", "--report", "link.json"];
    let said = place.throng(&[&run[..], &["--json", "result.json"]].concat()).exits_with(5);
    said.stderr_contains(&["cannot write link.json: it is a run file"]);
    let run_file = std::fs::read_to_string(place.path("a.json")).unwrap();
    assert!(run_file.starts_with("{\"schema\"") && run_file.lines().count() > 2, "{run_file}");
    let result = std::fs::read_to_string(place.path("result.json")).unwrap();
    assert!(result.contains("\"validity\""), "{result}");
}

#[test]
fn a_run_ends_with_its_reports() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let load = "[{ramp: {to: 3, over: 300ms}}]";
    place.write("few.yaml", &server.scenario(load, "[connect, close]"));
    let run = ["run", "few.yaml", "--report", "--report", "tests.xml"];
    let said = place.throng(&run);
    assert!(said.stdout.ends_with("report: run.html\nreport: tests.xml\n"), "{said:#?}");
    let page = std::fs::read_to_string(place.path("run.html")).unwrap();
    assert!(page.contains("<html") && place.path("tests.xml").exists());
}

/// Returns a run file of a run of ten connects, changed by `change`, with one threshold.
fn made_up(change: &str, threshold: &str) -> String {
    let mut lines = vec![
        json!({"scenario": {"path": "a.yaml", "source": format!(
            "target: tcp://127.0.0.1:1\nload: [{{ramp: {{to: 10, over: 1s}}}}]\n\
             user: [connect, close]\n{threshold}"
        )}}),
        json!({"at_ms": 1000, "span_ms": 1000, "load": {"phase": "ramp", "counters": {
            "users_intended": 10, "users_started": 10, "users_finished": 10,
            "connects_started": 10, "connects_ok": 10, "connected": 10,
        }}}),
        json!({"end": {"reason": "finished"}}),
    ];
    match change {
        "none" => {}
        "unreached" => lines[1]["load"]["counters"]["connects_ok"] = 0.into(),
        "unserved" => {
            lines[1]["load"]["counters"]["users_finished"] = 0.into();
            lines[1]["load"]["counters"]["users_failed"] = 10.into();
        }
        "lost" => lines[2]["end"]["reason"] = "target_lost".into(),
        "failed" => lines[2]["end"]["reason"] = "failed".into(),
        "interrupted" => lines[2]["end"]["reason"] = "interrupted".into(),
        "late" => lines[1]["load"]["counters"]["users_started"] = 4.into(),
        "killed" => _ = lines.pop(),
        _ => panic!("{change}"),
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{{\"schema\":\"throng.run/1\",{}", &text[1..])
}

#[test]
fn a_check_exits_as_the_run_did_and_says_why() {
    let place = TestDir::new();
    let missed = "thresholds: [connected_most >= 11]\n";
    let met = "thresholds: [connected_most <= 11]\n";
    for (change, threshold, code, says) in [
        ("none", "", 0, "met: "),
        ("none", met, 0, "met: "),
        ("none", missed, 1, "missed\n  connected_most >= 11: measured 10\n"),
        ("unserved", "", 1, "missed\n  no user finished: all 10 iterations failed\n"),
        ("lost", met, 1, "missed\n  the target had stopped answering"),
        ("unreached", "", 2, "unreached: no connection was ever established\n"),
        ("failed", met, 3, "invalid: "),
        ("late", missed, 3, "invalid: "),
        ("interrupted", missed, 4, "incomplete\n  a request ended it after 1.0 s\n"),
        ("killed", "", 4, "incomplete\n  its file has no last line"),
    ] {
        place.write("run.jsonl", &made_up(change, threshold));
        let check = place.throng(&["report", "--check"]);
        assert!(check.stdout.starts_with(says), "{change}: {check:#?}");
        check.exits_with(code);
        place.throng(&["report"]).exits_with(code);
        let files = ["report", "--check", "-o", "a.xml"];
        place.throng(&files).exits_with(code);
        assert!(place.path("a.xml").exists());
    }
    place.write("run.jsonl", "no run file");
    place.throng(&["report", "--check"]).exits_with(2).stderr_contains(&["not a run file"]);
}

#[test]
fn a_check_exits_as_a_real_run_did() {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let load = "[{ramp: {to: 3, over: 300ms}}]";
    for (threshold, code) in [("connected_most <= 3", 0), ("connected_most >= 4", 1)] {
        let scenario = server.scenario(load, "[connect, close]");
        place.write("few.yaml", &format!("{scenario}\nthresholds: [{threshold}]\n"));
        let run = place.throng(&["run", "few.yaml"]);
        let check = place.throng(&["report", "--check"]);
        assert_eq!(check.code, run.code, "{run:#?} {check:#?}");
        // A machine that stalls makes the run invalid.
        assert!([code, 3].contains(&run.code.unwrap()), "{run:#?}");
    }
}

#[test]
fn gitlab_reads_a_code_quality_report() {
    let place = TestDir::new();
    place.write("run.jsonl", &run_file());
    let args = ["report", "--format", "codequality", "-o", "gl-code-quality-report.json"];
    place.throng(&args).exits_with(1);
    let issues = place.json("gl-code-quality-report.json");
    let issue = &issues[0];
    for member in ["description", "check_name", "fingerprint", "severity"] {
        assert!(issue[member].as_str().is_some_and(|text| !text.is_empty()), "{issues}");
    }
    assert_eq!(issue["location"], json!({"path": "a|b.yaml", "lines": {"begin": 4}}));
}
