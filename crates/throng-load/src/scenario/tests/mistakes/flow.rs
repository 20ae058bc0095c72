//! Mistakes in loops, and steps that cannot follow one another.

use super::user;

#[test]
fn every_with_too_little_and_too_much() {
    let shown = user(
        "  - connect
  - every: {do: [send: a]}
  - every: {period: 1s, rate: 1/s, do: [send: a]}
  - every: {rate: 1/s}
  - repeat: {do: []}
  - repeat: {times: 0, do: [send: a]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `every` does not say how often
 --> test.yaml:5:5
  |
5 |   - every: {do: [send: a]}
  |     ^^^^^ `period` or `rate` is missing, for example `period: 1s`

error: `every` has both `period` and `rate`
 --> test.yaml:6:25
  |
6 |   - every: {period: 1s, rate: 1/s, do: [send: a]}
  |                         ^^^^ one of them says when turns are due

error: `every` has no `do`
 --> test.yaml:7:12
  |
7 |   - every: {rate: 1/s}
  |            ^^^^^^^^^^^ `do` is missing, for example `do: [send: ping]`

error: `repeat` does not say how often
 --> test.yaml:8:5
  |
8 |   - repeat: {do: []}
  |     ^^^^^^ `times` or `for` is missing, for example `times: 10`

error: `do` has no steps
 --> test.yaml:8:18
  |
8 |   - repeat: {do: []}
  |                  ^^ at least one belongs here

error: nothing would be repeated
 --> test.yaml:9:21
  |
9 |   - repeat: {times: 0, do: [send: a]}
  |                     ^ at least 1
"#);
}

#[test]
fn loops_too_deep() {
    let shown = user(
        "  - connect
  - repeat: {times: 2, do: [repeat: {times: 2, do: [repeat: {times: 2, do: [repeat: {times: 2, do: [
      every: {period: 1s, do: [send: a]}]}]}]}]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: loops are nested more than 4 deep
 --> test.yaml:6:7
  |
6 |       every: {period: 1s, do: [send: a]}]}]}]}]}
  |       ^^^^^ this one is too deep
"#);
}

#[test]
fn a_step_without_a_connection() {
    let shown = user(
        "  - send: a
  - expect: b
  - close
  - close
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `send` has nothing to send on
 --> test.yaml:4:5
  |
4 |   - send: a
  |     ^^^^^^^ there is no connection here; `connect` comes first

error: `close` has nothing to close
 --> test.yaml:7:5
  |
7 |   - close
  |     ^^^^^ there is no connection here; `connect` comes first
"#);
    let shown = user(
        "  - connect
  - close: half
  - send: a
  - expect: b
  - connect
",
    );
    insta::assert_snapshot!(shown, @r#"
error: nothing more can be sent
 --> test.yaml:6:5
  |
6 |   - send: a
  |     ^^^^^^^ `close: half` has ended the sending

error: there is a connection already
 --> test.yaml:8:5
  |
8 |   - connect
  |     ^^^^^^^ `close` comes first
"#);
}

#[test]
fn a_step_after_the_end() {
    let shown = user(
        "  - connect
  - stay
  - close
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this step is never reached
 --> test.yaml:6:5
  |
6 |   - close
  |     ^^^^^ the step before it goes on until the run ends
"#);
    let shown = user(
        "  - connect
  - every: {period: 1s, do: [send: a]}
  - close
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this step is never reached
 --> test.yaml:6:5
  |
6 |   - close
  |     ^^^^^ the step before it goes on until the run ends
"#);
}

#[test]
fn a_loop_whose_second_turn_fails() {
    let shown = user(
        "  - repeat:
      times: 2
      do:
        - connect
        - send: a
",
    );
    insta::assert_snapshot!(shown, @r#"
error: there is a connection already
 --> test.yaml:7:11
  |
7 |         - connect
  |           ^^^^^^^ `close` comes first
  |
  = help: this is so from the second turn of the loop on
"#);
}
