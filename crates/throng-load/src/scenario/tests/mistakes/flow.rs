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
error: `every` needs `period` or `rate`
 --> test.yaml:5:5
  |
5 |   - every: {do: [send: a]}
  |     ^^^^^ for example `period: 1s`

error: `every` has both `period` and `rate`
 --> test.yaml:6:25
  |
6 |   - every: {period: 1s, rate: 1/s, do: [send: a]}
  |                         ^^^^ use only one of them

error: `every` has no `do`
 --> test.yaml:7:12
  |
7 |   - every: {rate: 1/s}
  |            ^^^^^^^^^^^ `do` is missing, for example `do: [send: ping]`

error: `repeat` needs `times` or `for`
 --> test.yaml:8:5
  |
8 |   - repeat: {do: []}
  |     ^^^^^^ for example `times: 10`

error: `do` has no steps
 --> test.yaml:8:18
  |
8 |   - repeat: {do: []}
  |                  ^^ add at least one

error: `times` is zero
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
error: `send` needs a connection
 --> test.yaml:4:5
  |
4 |   - send: a
  |     ^^^^^^^ not connected here; add `connect` before it

error: `close` needs a connection
 --> test.yaml:7:5
  |
7 |   - close
  |     ^^^^^ not connected here; add `connect` before it
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
error: `send` after `close: half`
 --> test.yaml:6:5
  |
6 |   - send: a
  |     ^^^^^^^ the sending side is closed

error: already connected
 --> test.yaml:8:5
  |
8 |   - connect
  |     ^^^^^^^ add a `close` before it
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
  |     ^^^^^ the step before it runs until the run ends
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
  |     ^^^^^ the step before it runs until the run ends
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
error: already connected
 --> test.yaml:7:11
  |
7 |         - connect
  |           ^^^^^^^ add a `close` before it
  |
  = help: this happens from the second turn of the loop
"#);
}
