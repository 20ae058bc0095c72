//! What users hold of what the target sent, beside the unfinished messages of their connections.

use throng_proto::HeldBudget;
use throng_proto::websocket::Violation;

use super::play::{HTTP, Play, TCP, WS};
use crate::user::{ErrorKind, violation_error};

/// Plays a user on a core whose users hold at most `bytes` together.
fn on_core(budget: &HeldBudget, head: &str, user: &str) -> Play {
    let mut play = Play::new(head, user);
    play.held = budget.clone();
    play
}

const KEEPS: &str = "[connect, wait: 10ms, expect: {text: a, skip_others: true}, stay]";
const BEGUN: &str = "0 begin; 1 opened; 2 upgraded";

#[test]
fn a_user_that_keeps_more_than_its_share_fails_and_the_others_do_not() {
    let budget = HeldBudget::new(10_000);
    let [mut large, mut small] = [(); 2].map(|()| on_core(&budget, WS, KEEPS));
    large.row(BEGUN);
    small.row(BEGUN);
    assert_eq!(large.row("3 flood-text 4000"), "");
    let failed = large.row("3 flood-text 4000");
    assert_eq!(failed, "error held_overflow, no deadline, close, sent a close frame");
    assert_eq!(budget.used_bytes(), 0, "it has forgotten all");
    assert!(large.row("3 closed requested").contains("end failed"));
    assert_eq!(small.row("4 flood-text 3000"), "");
    assert_eq!((budget.used_bytes() >= 3_000, budget.refused()), (true, 1));
    small.row("12 deadline; 13 text a");
    assert_eq!(budget.used_bytes(), 0, "its steps have read all");
}

#[test]
fn a_user_that_continues_after_an_error_keeps_its_connection() {
    let budget = HeldBudget::new(1_000);
    let head = format!("{WS}\non_error: continue");
    let mut play = on_core(&budget, &head, KEEPS);
    play.row(BEGUN);
    assert_eq!(play.row("3 flood-text 900"), "error held_overflow");
    assert_eq!(play.row("4 text a"), "");
    let read = play.row("12 deadline");
    assert!(read.starts_with("late 0, answered unmeasured, no deadline"), "{read}");
}

#[test]
fn empty_messages_take_memory_too() {
    let budget = HeldBudget::new(100_000);
    let mut play = on_core(&budget, WS, KEEPS);
    play.row(BEGUN);
    let rows = (0..10_000).map(|_| play.row("3 flood-text 0"));
    let failed = rows.into_iter().position(|row| row.contains("error held_overflow"));
    assert!(failed.is_some_and(|at| at > 100), "{failed:?}");
}

#[test]
fn a_message_that_is_too_large_is_no_violation_of_the_protocol() {
    for violation in [Violation::MessageTooLarge, Violation::FrameTooLarge, Violation::HeldTooMuch]
    {
        assert_eq!(violation_error(violation), ErrorKind::WebSocketTooLarge);
    }
    assert_eq!(violation_error(Violation::NotUtf8), ErrorKind::WebSocketViolation);
}

#[test]
fn stored_values_and_pieces_of_answers_count_until_the_user_is_gone() {
    let budget = HeldBudget::new(100_000);
    let steps = "[connect, expect: {until: z, capture: {part: {regex: '(.*)z'}}}, stay]";
    let mut lines = on_core(&budget, TCP, steps);
    lines.row("0 begin; 1 opened; 2 flood 20000");
    assert!(budget.used_bytes() >= 20_000, "{budget:?}");
    assert!(lines.row("3 flood 40000").contains("error held_overflow"));
    assert_eq!(budget.used_bytes(), 0);
    let body = "x".repeat(9_000);
    let steps = "[get: {path: /, capture: {all: {regex: '(.*)'}}}, wait: 1s]";
    let mut get = on_core(&budget, HTTP, steps);
    get.row("0 begin; 1 opened");
    get.row(&format!("2 http HTTP/1.1 200 OK|content-length: 9000||{body}"));
    assert!(budget.used_bytes() >= 9_000, "{budget:?}");
    assert!(get.row("3 stop; 3 leave; 4 closed requested").contains("remove"));
    assert_eq!(budget.used_bytes(), 0);
}
