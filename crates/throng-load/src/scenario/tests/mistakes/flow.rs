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

error: `repeat` needs `times`, `for` or `while`
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

#[test]
fn branches_and_their_conditions() {
    let shown = user(
        "  - connect
  - if: {condition: '${user.id} <', do: [wait: 1s]}
  - if: {condition: '', do: [wait: 1s]}
  - if: {condition: '${usr.id} < 5 < 6', do: [wait: 1s]}
  - if: {do: [wait: 1s], otherwise: []}
  - if: {condition: '${user.id} < 5', do: [close]}
  - choose: [{do: [wait: 1s]}]
  - choose: {do: [wait: 1s]}
  - choose: [{weight: 0, do: [wait: 1s]}, {do: []}]
  - foreach: {name: user, in: [], do: [wait: 1s]}
  - foreach: {name: room, in: a, do: [send: '${rom}']}
  - repeat: {times: 2, while: '1', do: [wait: 1s]}
  - repeat: {do: [wait: 1s]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `<` stands between two values
 --> test.yaml:5:33
  |
5 |   - if: {condition: '${user.id} <', do: [wait: 1s]}
  |                                 ^ for example ${count} < 10

error: the condition is empty
 --> test.yaml:6:21
  |
6 |   - if: {condition: '', do: [wait: 1s]}
  |                     ^^ for example ${count} < 10

error: `<` stands between two values
 --> test.yaml:7:32
  |
7 |   - if: {condition: '${usr.id} < 5 < 6', do: [wait: 1s]}
  |                                ^ for example ${count} < 10

error: `if` has no `condition`
 --> test.yaml:8:9
  |
8 |   - if: {do: [wait: 1s], otherwise: []}
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `condition` is missing, for example `condition: "${user.id} < 10"`

error: unknown key `otherwise` in `if`
 --> test.yaml:8:26
  |
8 |   - if: {do: [wait: 1s], otherwise: []}
  |                          ^^^^^^^^^ not known here
  |
  = help: expected one of: `condition`, `do`, `else`

error: `choose` needs at least two lists of steps
  --> test.yaml:10:13
   |
10 |   - choose: [{do: [wait: 1s]}]
   |             ^^^^^^^^^^^^^^^^^^ add another one

error: `choose` must be a list such as [{weight: 9, do: [...]}, {do: [...]}]
  --> test.yaml:11:13
   |
11 |   - choose: {do: [wait: 1s]}
   |             ^^^^^^^^^^^^^^^^ found a mapping

error: this weight cannot be used
  --> test.yaml:12:23
   |
12 |   - choose: [{weight: 0, do: [wait: 1s]}, {do: []}]
   |                       ^ at least 1, at most 1000000

error: `do` has no steps
  --> test.yaml:12:48
   |
12 |   - choose: [{weight: 0, do: [wait: 1s]}, {do: []}]
   |                                                ^^ add at least one

error: `user` cannot name a value
  --> test.yaml:13:21
   |
13 |   - foreach: {name: user, in: [], do: [wait: 1s]}
   |                     ^^^^ a letter, then letters, digits and _; not user, env, sent, counter or probe

error: `in` has 0 values
  --> test.yaml:13:31
   |
13 |   - foreach: {name: user, in: [], do: [wait: 1s]}
   |                               ^^ at least 1, at most 100

error: `in` must be a list such as [a, b]
  --> test.yaml:14:31
   |
14 |   - foreach: {name: room, in: a, do: [send: '${rom}']}
   |                               ^ found a single value

error: unknown variable `rom`
  --> test.yaml:14:48
   |
14 |   - foreach: {name: room, in: a, do: [send: '${rom}']}
   |                                                ^^^ did you mean `room`?

error: `repeat` has two ends
  --> test.yaml:15:24
   |
15 |   - repeat: {times: 2, while: '1', do: [wait: 1s]}
   |                        ^^^^^ use only one of `times`, `for` and `while`

error: `repeat` needs `times`, `for` or `while`
  --> test.yaml:16:5
   |
16 |   - repeat: {do: [wait: 1s]}
   |     ^^^^^^ for example `times: 10`
"#);
}

#[test]
fn lists_that_end_differently() {
    let shown = user(
        "  - connect
  - if: {condition: '${user.id} < 5', do: [close]}
  - choose: [{do: [close, connect]}, {do: [stay]}]
  - send: a
",
    );
    insta::assert_snapshot!(shown, @r#"
error: its lists of steps end differently
 --> test.yaml:5:5
  |
5 |   - if: {condition: '${user.id} < 5', do: [close]}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ after each the user must have the same connection and the same topics
"#);
}

#[test]
fn arithmetic_with_values_that_may_be_texts() {
    let shown = user(
        "  - connect
  - foreach: {name: i, in: [1, 2], do: [send: \"${i * 2}\"]}
  - foreach: {name: room, in: [1, b], do: [send: \"${room * 2}\"]}
  - set: {i: \"${uuid()}\"}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: arithmetic needs whole numbers
 --> test.yaml:6:53
  |
6 |   - foreach: {name: room, in: [1, b], do: [send: "${room * 2}"]}
  |                                                     ^^^^ this may be a text; values of `foreach` and `set` that are whole numbers can be computed with

error: `i` may be a text here
 --> test.yaml:7:11
  |
7 |   - set: {i: "${uuid()}"}
  |           ^ a step above computes with it: store a whole number, or take another name
"#);
}
