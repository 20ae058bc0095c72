//! What an engineer writes who knows another tool, or YAML a little: each answer says what to
//! write.

use super::whole;

/// A load and a user for the mistake of another part.
const LOAD: &str = "load: [ramp: {to: 1, over: 1s}]\n";
const USER: &str = "user: [connect]\n";

/// Checks that a scenario has one mistake, whose text on the screen has these parts.
#[track_caller]
fn says(source: &str, parts: &[&str]) {
    let shown = whole(source);
    assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
    for part in parts {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
}

#[test]
fn keys_of_other_tools_at_the_top() {
    let target = "target: tcp://h:1\n";
    for key in ["stages: [{duration: 30s, target: 9}]", "vus: 9", "phases: []", "duration: 30s"] {
        says(&format!("{target}{USER}{key}\n"), &["did you mean `load`?"]);
    }
    says(&format!("{target}{LOAD}flow: [connect]\n"), &["did you mean `user`?"]);
    says(&format!("{target}{LOAD}{USER}timeout: 5s\n"), &["each step that waits has a `timeout`"]);
    let headers = format!("{target}{LOAD}{USER}headers: {{a: b}}\n");
    says(&headers, &["write `headers` in each request"]);
}

#[test]
fn a_scheme_that_is_missing_makes_no_other_mistake() {
    let source = format!("target: localhost:80\n{LOAD}user: [get: /, wait: 1s]\n");
    says(&source, &["write tcp://, ws:// or http:// before it"]);
}

#[test]
fn a_blank_is_missing_after_a_key() {
    let source = "target: tcp://h:1\nload:\n  - ramp:{to: 1, over: 1s}\nuser: [connect]\n";
    says(source, &["a blank is missing after `ramp:`", "write `ramp: {`", "test.yaml:3:10"]);
    let source = format!("target: tcp://h:1\n{LOAD}user:\n  - send: a: {{b\n");
    says(&source, &["a colon in a text without quotes"]);
}

#[test]
fn an_object_where_a_message_is_expected() {
    for step in ["send", "expect", "receive"] {
        let source =
            format!("target: ws://h:1\n{LOAD}user: [connect, {step}: {{\"room\": \"a\"}}]\n");
        says(&source, &["put this object under `json`", "for example `{json: {a: 1}}`"]);
    }
}

#[test]
fn a_key_beside_its_step() {
    let user = |steps: &str| format!("target: ws://h:1\n{LOAD}user:\n  - connect\n{steps}");
    let beside = user("  - every: 1s\n    do: [send: a]\n");
    says(&beside, &["if `do` belongs to `every`, put it inside", "`every: {period: 1s, do: ["]);
    let shallow = user("  - every:\n    period: 1s\n    do: [send: a]\n");
    says(
        &shallow,
        &["if `period` belongs to `every`, indent it further", "four more than its `-`"],
    );
}

#[test]
fn values_of_another_form() {
    let load = |phase: &str| format!("target: tcp://h:1\n{USER}load: [{phase}]\n");
    says(&load("ramp: {to: 1, over: 1s}, hold: 1m"), &["for example `hold: {for: 1m}`"]);
    says(&load("arrivals: 50"), &["for example `arrivals: {rate: 50/s, for: 1m}`"]);
    says(&load("ramp: {to: 9/s, over: 1s}"), &["a rate is that of `arrivals`"]);
    for (wait, meant) in [
        ("1-3s", "1s, 3s"),
        ("1s..3s", "1s, 3s"),
        ("500ms - 2s", "500ms, 2s"),
        ("1 to 2m", "1m, 2m"),
    ] {
        let source = format!("target: tcp://h:1\n{LOAD}user: [connect, wait: {wait}]\n");
        says(&source, &[&format!("write `uniform({meant})`")]);
    }
}

#[test]
fn steps_of_websockets_over_http() {
    for (step, help) in [
        ("expect: {status: 200}", "get: {path: /, expect: 200}"),
        ("send: hello", "post: {path: /, body: hello}"),
    ] {
        says(&format!("target: http://h\n{LOAD}user: [get: /, {step}]\n"), &[help]);
    }
}
