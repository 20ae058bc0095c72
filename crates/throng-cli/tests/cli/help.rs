//! Help, completions and manual, which are generated from the flags, and the output on a terminal.

use std::process::Command;

use crate::process::{Finished, TestDir};

#[test]
fn help_has_examples_and_exit_codes() {
    let place = TestDir::new();
    for command in [
        "serve",
        "init",
        "run",
        "agent",
        "fleet",
        "find",
        "try",
        "lab",
        "ctl",
        "top",
        "import-log",
        "report",
        "compare",
        "doctor",
        "plan",
        "completions",
        "man",
    ] {
        let help = place.throng(&[command, "--help"]).exits_with(0).stdout;
        assert!(
            help.contains("Examples:") && help.contains(&format!("throng {command}")),
            "{help}"
        );
    }
    assert!(place.throng(&["run", "--help"]).stdout.contains("Exit codes:"));
    place.throng(&["reprot"]).exits_with(2).stderr_contains(&["'report'"]);
}

#[test]
fn completions_and_manual_know_every_command() {
    let place = TestDir::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.throng(&["completions", shell]).exits_with(0).stdout;
        assert!(script.contains("server-control") && script.contains("pingpong"), "{shell}");
    }
    let page = place.throng(&["man", "run"]).exits_with(0).stdout;
    assert!(page.starts_with(".ie") && page.contains("dry\\-run"), "{page}");
    place.throng(&["man", "rum"]).exits_with(2).stderr_contains(&["did you mean `run`?"]);
    place.throng(&["man", "--dir", "man"]).exits_with(0);
    assert!(place.path("man/throng.1").exists() && place.path("man/throng-serve.1").exists());
}

#[test]
fn the_doctor_shows_facts_as_text_and_as_json() {
    let place = TestDir::new();
    let text = place.throng(&["doctor"]).exits_with(0).stdout;
    assert!(text.lines().any(|line| line.starts_with("net.core.somaxconn ")), "{text}");
    let facts = place.throng(&["doctor", "--json"]).exits_with(0).json();
    let number: u64 = facts["fs.nr_open"].as_str().unwrap().parse().unwrap();
    assert!(number > 0);
}

#[test]
fn labs_are_listed_and_a_mistyped_one_suggested() {
    let place = TestDir::new();
    let list = place.throng(&["lab"]).exits_with(0).stdout;
    for name in ["stressgrid-100k", "fast-connect", "fast-receive", "connscale"] {
        assert!(list.contains(name), "{list}");
    }
    place
        .throng(&["lab", "conscale"])
        .exits_with(2)
        .stderr_contains(&["did you mean `connscale`?"]);
}

#[test]
fn a_report_of_nothing_is_exit_code_2() {
    let place = TestDir::new();
    place.throng(&["report"]).exits_with(2).stderr_contains(&["run.jsonl"]);
    place.write("not-a-run.jsonl", "hello\n");
    place
        .throng(&["report", "not-a-run.jsonl"])
        .exits_with(2)
        .stderr_contains(&["not-a-run.jsonl"]);
}

/// Runs a command on a terminal, which `script` provides. Both outputs come back as one.
fn on_a_terminal(place: &TestDir, command: &str, no_color: bool) -> String {
    let throng = env!("CARGO_BIN_EXE_throng");
    let command = format!("stty rows 24 cols 80; exec {throng} {command}");
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(place.path("."));
    script
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .env("LC_ALL", "C.UTF-8")
        .env("XDG_RUNTIME_DIR", place.path("."));
    if no_color {
        script.env("NO_COLOR", "1");
    }
    Finished::from(script.output().unwrap()).stdout
}

/// Reports whether the text sets a colour: `ESC [ … m` with 30 to 38, 40 to 48 or 90 to 107.
fn has_colors(text: &str) -> bool {
    text.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';');
        let set = end.filter(|end| rest[*end..].starts_with('m')).map(|end| &rest[..end]);
        let first = set.and_then(|set| set.split(';').next()?.parse().ok());
        let last = set.and_then(|set| set.split(';').next_back()?.parse().ok());
        let is_color = |n: u32| matches!(n, 30..=38 | 40..=48 | 90..=107);
        first.is_some_and(is_color) || last.is_some_and(is_color)
    })
}

#[test]
fn no_color_means_no_colors_on_a_terminal_too() {
    let place = TestDir::new();
    place.write("typo.yaml", "target: tcp://127.0.0.1:1\nload: []\nusre: []\n");
    let server = place.serve(&["hold"]);
    place.write(
        "good.yaml",
        &server.scenario("[{ramp: {to: 2, over: 300ms}}, {hold: {for: 1s}}]", "[connect, stay]"),
    );
    for command in ["run typo.yaml", "run --nonsense", "run missing.yaml", "run good.yaml"] {
        let (colored, plain) =
            (on_a_terminal(&place, command, false), on_a_terminal(&place, command, true));
        assert!(has_colors(&colored), "{command}: {colored:?}");
        assert!(!has_colors(&plain), "{command}: {plain:?}");
    }
}

#[test]
fn a_terminal_gets_a_view_and_then_the_report() {
    let place = TestDir::new();
    let server = place.serve(&["hold"]);
    place.write(
        "good.yaml",
        &server.scenario("[{ramp: {to: 20, over: 1s}}, {hold: {for: 3s}}]", "[connect, stay]"),
    );
    let shown = on_a_terminal(&place, "run good.yaml --interval 200ms", true);
    let (before, view) = shown.split_once(ENTER).unwrap_or_else(|| panic!("{shown:?}"));
    let (view, after) = view.split_once(LEAVE).unwrap_or_else(|| panic!("{shown:?}"));
    assert!(before.contains("20 connections at most"), "{before:?}");
    assert!(view.contains("good.yaml") && view.contains('━'), "{view:?}");
    assert!(view.contains("connected") && view.contains("errors"), "{view:?}");
    assert!(after.contains("run file: run.jsonl") && !after.contains(ENTER), "{after:?}");
    let both = on_a_terminal(&place, "run good.yaml --interval 200ms --ui", true);
    let (before, view) = both.split_once(ENTER).unwrap_or_else(|| panic!("{both:?}"));
    assert!(before.contains("live page: http://127.0.0.1:"), "{before:?}");
    assert!(view.contains("live page: http://127.0.0.1:") && view.contains('━'), "{view:?}");
    let plain = on_a_terminal(&place, "run good.yaml --interval 200ms --no-tui", true);
    assert!(!plain.contains(ENTER) && plain.contains("  connected "), "{plain:?}");
}

/// What a terminal gets when a view takes it, and gives it back.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

#[test]
fn the_reference_of_commands_names_every_flag() {
    const DOCUMENT: &str = "/../../docs/reference/commands.md";
    let path = format!("{}{DOCUMENT}", env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(path).unwrap();
    let place = TestDir::new();
    for command in [
        "serve",
        "init",
        "init",
        "run",
        "try",
        "agent",
        "fleet up",
        "fleet ls",
        "fleet logs",
        "fleet down",
        "import",
        "import-log",
        "report",
        "compare",
        "doctor",
        "ctl",
        "top",
        "lab",
        "plan",
        "completions",
        "man",
    ] {
        let words: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let row =
            |line: &str| line.starts_with("| [`") && line.contains(&format!("`{}`", words[0]));
        assert!(document.lines().any(row), "docs/reference/commands.md has no row of {command}");
        let help = place.throng(&words).exits_with(0).stdout;
        let flags = help.lines().map(str::trim_start).filter(|line| line.starts_with("--"));
        for flag in flags {
            let end = flag.find(|c: char| !c.is_ascii_lowercase() && c != '-');
            let flag = &flag[..end.unwrap_or(flag.len())];
            assert!(
                document.contains(&format!("`{flag}")),
                "docs/reference/commands.md has no {flag} of `throng {command}`"
            );
        }
    }
}
