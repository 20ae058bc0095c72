//! Mistakes in single steps.

use super::user;

#[test]
fn an_unknown_step() {
    let shown = user(
        "  - conect
  - wiat: 1s
  - subscribe: news
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown step `conect`
 --> test.yaml:4:5
  |
4 |   - conect
  |     ^^^^^^ did you mean `connect`?
  |
  = help: expected one of: `connect`, `send`, `expect`, `receive`, `set`, `wait`, `barrier`, `signal`, `wait_for`, `every`, `repeat`, `transaction`, `foreach`, `if`, `choose`, `stay`, `close`

error: unknown step `wiat`
 --> test.yaml:5:5
  |
5 |   - wiat: 1s
  |     ^^^^ did you mean `wait`?
  |
  = help: expected one of: `connect`, `send`, `expect`, `receive`, `set`, `wait`, `barrier`, `signal`, `wait_for`, `every`, `repeat`, `transaction`, `foreach`, `if`, `choose`, `stay`, `close`

error: unknown step `subscribe`
 --> test.yaml:6:5
  |
6 |   - subscribe: news
  |     ^^^^^^^^^ not known here
  |
  = help: expected one of: `connect`, `send`, `expect`, `receive`, `set`, `wait`, `barrier`, `signal`, `wait_for`, `every`, `repeat`, `transaction`, `foreach`, `if`, `choose`, `stay`, `close`
"#);
}

#[test]
fn two_steps_in_one_item() {
    let shown = user(
        "  - connect
  - expect: ok
    timeout: 1s
  - send: a
    close: reset
",
    );
    insta::assert_snapshot!(shown, @r#"
error: each step needs its own list item
 --> test.yaml:6:5
  |
6 |     timeout: 1s
  |     ^^^^^^^ if `timeout` belongs to `expect`, put it inside: {..., timeout: ...}

error: each step needs its own list item
 --> test.yaml:8:5
  |
8 |     close: reset
  |     ^^^^^ start this one with `- `
"#);
}

#[test]
fn a_step_without_what_it_needs() {
    let shown = user(
        "  - connect
  - send
  - expect:
  - wait
  - stay: 1m
  - close: rest
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `send` needs a value
 --> test.yaml:5:5
  |
5 |   - send
  |     ^^^^ for example `send: hello`

error: `expect` needs a value
 --> test.yaml:6:5
  |
6 |   - expect:
  |     ^^^^^^ for example `expect: ok`

error: `wait` needs a value
 --> test.yaml:7:5
  |
7 |   - wait
  |     ^^^^ for example `wait: 1s ±10%`

error: `stay` takes no value
 --> test.yaml:8:11
  |
8 |   - stay: 1m
  |           ^^ remove this
  |
  = help: to stay for a time, write `wait: 1m`

error: unknown way to close `rest`
 --> test.yaml:9:12
  |
9 |   - close: rest
  |            ^^^^ did you mean `reset`?
  |
  = help: expected one of: `normal`, `reset`, `half`
"#);
}

#[test]
fn an_empty_user() {
    let shown = user(
        "  []
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `user` has no steps
 --> test.yaml:4:3
  |
4 |   []
  |   ^^ add at least one
"#);
    let shown = user(
        "  connect
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `user` must be a list of steps such as `- connect`
 --> test.yaml:4:3
  |
4 |   connect
  |   ^^^^^^^ found a single value
"#);
}

#[test]
fn a_bad_template() {
    let shown = user(
        "  - connect
  - send: hello ${user.ip} and ${random(6,1)}
",
    );
    insta::assert_snapshot!(shown, @r"
error: unknown variable `user.ip`
 --> test.yaml:5:19
  |
5 |   - send: hello ${user.ip} and ${random(6,1)}
  |                   ^^^^^^^ did you mean `user.id`?

error: the range of a random number is empty
 --> test.yaml:5:34
  |
5 |   - send: hello ${user.ip} and ${random(6,1)}
  |                                  ^^^^^^^^^^^ 6 is more than 1: random(1,6)
");
    let shown = user(
        "  - connect
  - send: \"hello ${counter\\n\"
  - expect: ${counter}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a variable is not closed
 --> test.yaml:5:11
  |
5 |   - send: "hello ${counter\n"
  |           ^^^^^^^^^^^^^^^^^^^ `}` is missing; a plain `${` is written `$${`
"#);
}

#[test]
fn bytes_that_are_none() {
    let shown = user(
        "  - connect
  - send: {hex: de a}
  - send: {hex: xy}
  - send: {random: 0}
  - expect: {bytes: 0}
  - expect: \"\"
  - expect: {text: a, bytes: 1}
  - send: {random: 2GiB}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `hex` must be bytes in hexadecimal such as de ad be ef
 --> test.yaml:5:20
  |
5 |   - send: {hex: de a}
  |                    ^ the second digit is missing

error: `hex` must be bytes in hexadecimal such as de ad be ef
 --> test.yaml:6:17
  |
6 |   - send: {hex: xy}
  |                 ^ not one of 0-9a-f; a text is written ${'text'}

error: `random` is 0 bytes
 --> test.yaml:7:20
  |
7 |   - send: {random: 0}
  |                    ^ at least 1

error: `bytes` is 0 bytes
 --> test.yaml:8:21
  |
8 |   - expect: {bytes: 0}
  |                     ^ at least 1

error: `expect` is empty
 --> test.yaml:9:13
  |
9 |   - expect: ""
  |             ^^ at least one byte

error: `expect` needs exactly one pattern
  --> test.yaml:10:13
   |
10 |   - expect: {text: a, bytes: 1}
   |             ^^^^^^^^^^^^^^^^^^^ one of `text`, `hex`, `bytes` and `until`

error: `random` is too large
  --> test.yaml:11:20
   |
11 |   - send: {random: 2GiB}
   |                    ^^^^ at most 16MiB: repeat the step to send more
"#);
}

#[test]
fn a_jitter_beyond_all() {
    let shown = user(
        "  - wait: 1s ±101%
  - wait: 1s ±10
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `wait` varies by more than 100%
 --> test.yaml:4:11
  |
4 |   - wait: 1s ±101%
  |           ^^^^^^^^ at most ±100%

error: `wait` must be a duration with an optional spread, such as 1s or 1s ±10%
 --> test.yaml:5:15
  |
5 |   - wait: 1s ±10
  |               ^^ the unit is missing
"#);
}

#[test]
fn laws_of_think_times_that_are_impossible() {
    let shown = user(
        "  - wait: exponentail(2s)
  - wait: exponential(2)
  - wait: exponential(2s, 30s)
  - wait: exponential(2s, max 1s)
  - wait: exponential(0s)
  - wait: \"uniform(3s, 1s)\"
  - wait: lognormal(median 2s, p95 2s)
  - wait: lognormal(median 2s
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown think time `exponentail`
 --> test.yaml:4:11
  |
4 |   - wait: exponentail(2s)
  |           ^^^^^^^^^^^ did you mean `exponential`?
  |
  = help: expected one of: `uniform`, `exponential`, `lognormal`

error: a value of `wait` must be a duration such as 250ms, 15m or 1h30m
 --> test.yaml:5:23
  |
5 |   - wait: exponential(2)
  |                       ^ the unit is missing

error: `exponential` takes other values
 --> test.yaml:6:23
  |
6 |   - wait: exponential(2s, 30s)
  |                       ^^^^^^^ such as `exponential(2s, max 30s)`

error: `max` is too short
 --> test.yaml:7:27
  |
7 |   - wait: exponential(2s, max 1s)
  |                           ^^^^^^ must be at least the first value

error: this think time is zero
 --> test.yaml:8:23
  |
8 |   - wait: exponential(0s)
  |                       ^^ must be more than 0s

error: `uniform` goes down
 --> test.yaml:9:20
  |
9 |   - wait: "uniform(3s, 1s)"
  |                    ^^ the shorter one comes first

error: `p95` is not above the median
  --> test.yaml:10:32
   |
10 |   - wait: lognormal(median 2s, p95 2s)
   |                                ^^^^^^ must be more than the median

error: `lognormal` has no closing `)`
  --> test.yaml:11:11
   |
11 |   - wait: lognormal(median 2s
   |           ^^^^^^^^^^^^^^^^^^^ such as `lognormal(median 2s, p95 10s, max 30s)`
"#);
}

#[test]
fn a_period_that_is_impossible() {
    let shown = user(
        "  - connect
  - every: {period: 5s ±51%, for: 1m, do: [send: a]}
  - every: {period: 0s ±10%, for: 1m, do: [send: a]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `period` varies by more than 50%
 --> test.yaml:5:21
  |
5 |   - every: {period: 5s ±51%, for: 1m, do: [send: a]}
  |                     ^^^^^^^ at most ±50%: beyond it, turns would change places

error: `period` is zero
 --> test.yaml:6:21
  |
6 |   - every: {period: 0s ±10%, for: 1m, do: [send: a]}
  |                     ^^^^^^^ must be more than 0s
"#);
}
