//! Scenarios that are small as they are written, and too large once `foreach` has repeated steps.

use super::{user, whole};
use crate::scenario::Scenario;

/// Returns a step `foreach` with 10 values around `steps`.
fn ten(name: &str, steps: &str) -> String {
    format!("foreach: {{name: {name}, in: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], do: [{steps}]}}")
}

/// Returns `foreach` in `foreach`, this deep.
fn nested(depth: usize, steps: &str) -> String {
    (0..depth).fold(steps.to_owned(), |inner, level| ten(&format!("v{level}"), &inner))
}

#[test]
fn steps_of_lists_in_lists_are_counted_before_they_are_made() {
    let shown = user(&format!("  - connect\n  - {}", nested(16, "send: x")));
    assert!(shown.starts_with("error: this `foreach` has 111111 steps\n"), "{shown}");
    assert!(shown.contains("^^^^^^^ a scenario has at most 100000\n"), "{shown}");
    assert!(shown.contains("test.yaml:5:682"), "the innermost that is too large: {shown}");
    assert!(shown.matches("error").count() == 1 && shown.len() < 10_000, "{shown}");
}

#[test]
fn steps_of_all_classes_and_of_setup_are_counted_together() {
    let many = nested(4, "{wait: 1s}, {wait: 1s}, {wait: 1s}");
    let shown = whole(&format!(
        "target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nsetup: [{many}]\nusers:\n  a:\n    \
         user: [{many}]\n  b:\n    user:\n      - wait: 1s\n      - {many}\nteardown:\n  - {many}\n"
    ));
    assert!(shown.contains("the scenario has 124445 steps"), "{shown}");
    assert!(shown.contains("a scenario has at most 100000, and passes them here"), "{shown}");
    assert!(shown.contains("test.yaml:12:5"), "{shown}");
    assert_eq!(shown.matches("error").count(), 1, "{shown}");
}

#[test]
fn texts_that_are_repeated_are_counted() {
    let text = "x".repeat(10_000);
    let shown =
        user(&format!("  - connect\n  - {}\n  - close", nested(4, &format!("send: {text}"))));
    assert!(shown.contains("this `foreach` has 95 MiB of texts"), "{}", &shown[..300]);
}

#[test]
fn loops_count_their_steps_once() {
    let steps =
        nested(4, "repeat: {times: 1G, do: [every: {period: 1s, for: 1s, do: [wait: 1s]}]}");
    let source = format!("target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser: [{steps}]\n");
    assert!(Scenario::parse(&source, "test.yaml").is_ok());
}
