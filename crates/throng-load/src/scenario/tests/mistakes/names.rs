//! Mistakes in the names of steps, in transactions, and in thresholds about them.

use super::{user, user_of, whole};
use crate::scenario::Scenario;

#[test]
fn a_name_that_is_none() {
    let shown = user(
        "  - connect: {name: 2nd}
  - send: {text: a, name: b}
  - expect: {text: a, name: läuft}
  - expect: {text: a, name: this-name-is-longer-than-a-name-may-be}
  - expect: {text: a, name: [b]}
  - expect: {text: a, nmae: greeting}
  - expect: {text: a, name: \"\"}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `2nd` cannot be the name of a step
 --> test.yaml:4:21
  |
4 |   - connect: {name: 2nd}
  |                     ^^^ a letter first, then letters, digits, `_` and `-`

error: unknown key `name` in `send`
 --> test.yaml:5:21
  |
5 |   - send: {text: a, name: b}
  |                     ^^^^ not known here
  |
  = help: expected one of: `text`, `hex`, `random`, `reply`

error: `läuft` cannot be the name of a step
 --> test.yaml:6:29
  |
6 |   - expect: {text: a, name: läuft}
  |                             ^^^^^ a letter first, then letters, digits, `_` and `-`

error: `this-name-is-longer-than-a-name-may-be` cannot be the name of a step
 --> test.yaml:7:29
  |
7 |   - expect: {text: a, name: this-name-is-longer-than-a-name-may-be}
  |                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ at most 32 characters

error: `name` must be a name such as `login`
 --> test.yaml:8:29
  |
8 |   - expect: {text: a, name: [b]}
  |                             ^^^ found a list

error: unknown key `nmae` in `expect`
 --> test.yaml:9:23
  |
9 |   - expect: {text: a, nmae: greeting}
  |                       ^^^^ did you mean `name`?
  |
  = help: expected one of: `text`, `hex`, `bytes`, `until`, `capture`, `timeout`, `name`

error: `` cannot be the name of a step
  --> test.yaml:10:29
   |
10 |   - expect: {text: a, name: ""}
   |                             ^^ a letter first, then letters, digits, `_` and `-`
"#);
}

#[test]
fn a_name_of_two_kinds() {
    let shown = user(
        "  - connect: {name: login}
  - expect: {text: a, name: login}
  - expect: {text: a, name: greeting}
  - expect: {text: b, name: greeting}
  - transaction: {name: greeting, do: [send: a]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the name `login` is that of another kind of step, `connect`
 --> test.yaml:5:29
  |
5 |   - expect: {text: a, name: login}
  |                             ^^^^^ take another name: the two would be measured together

error: the name `greeting` is that of another kind of step, `expect`
 --> test.yaml:8:25
  |
8 |   - transaction: {name: greeting, do: [send: a]}
  |                         ^^^^^^^^ take another name: the two would be measured together
"#);
}

#[test]
fn too_many_names() {
    let expects: String =
        (0..66).map(|n| format!("  - expect: {{text: a, name: s{n}}}\n")).collect();
    let shown = user(&format!("  - connect\n{expects}"));
    insta::assert_snapshot!(shown, @r#"
error: too many names of steps
  --> test.yaml:69:29
   |
69 |   - expect: {text: a, name: s64}
   |                             ^^^ a scenario may have 64

error: too many names of steps
  --> test.yaml:70:29
   |
70 |   - expect: {text: a, name: s65}
   |                             ^^^ a scenario may have 64
"#);
}

#[test]
fn a_transaction_that_cannot_be_measured() {
    let shown = user(
        "  - connect
  - transaction: {do: [send: a]}
  - transaction: {name: shop}
  - transaction: {name: shop, do: []}
  - transaction: {name: shop, steps: [send: a]}
  - transaction
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `transaction` has no `name`
 --> test.yaml:5:18
  |
5 |   - transaction: {do: [send: a]}
  |                  ^^^^^^^^^^^^^^^ `name` is missing, for example `name: checkout`

error: `transaction` has no `do`
 --> test.yaml:6:18
  |
6 |   - transaction: {name: shop}
  |                  ^^^^^^^^^^^^ `do` is missing, for example `do: [send: ping]`

error: `do` has no steps
 --> test.yaml:7:35
  |
7 |   - transaction: {name: shop, do: []}
  |                                   ^^ add at least one

error: unknown key `steps` in `transaction`
 --> test.yaml:8:31
  |
8 |   - transaction: {name: shop, steps: [send: a]}
  |                               ^^^^^ did you mean `do`?
  |
  = help: expected one of: `name`, `do`

error: `transaction` needs a value
 --> test.yaml:9:5
  |
9 |   - transaction
  |     ^^^^^^^^^^^ for example `transaction: {name: checkout, do: [send: ping]}`
"#);
    let shown = user(
        "  - connect
  - transaction: {name: shop, do: [send: a, stay]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the transaction `shop` never ends
 --> test.yaml:5:45
  |
5 |   - transaction: {name: shop, do: [send: a, stay]}
  |                                             ^^^^ this runs until the run ends; take it out of the transaction
"#);
    let shown = user(
        "  - connect
  - transaction:
      name: a
      do:
        - transaction:
            name: b
            do:
              - transaction:
                  name: c
                  do:
                    - transaction:
                        name: d
                        do:
                          - transaction: {name: e, do: [send: a]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: transactions are nested more than 4 deep
  --> test.yaml:17:29
   |
17 |                           - transaction: {name: e, do: [send: a]}
   |                             ^^^^^^^^^^^ this one is too deep
"#);
}

#[test]
fn a_push_without_a_reply_has_no_latency() {
    let shown = user_of(
        "phoenix",
        "  - connect
  - join: {topic: a, name: enter}
  - push: {topic: a, event: e, reply: false, name: ask}
  - leave: {topic: a, name: exit}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a `push` that waits for no reply cannot have a `name`
 --> test.yaml:7:32
  |
7 |   - push: {topic: a, event: e, reply: false, name: ask}
  |                                ^^^^^ there is no latency to measure; leave out one of the two

error: unknown key `name` in `leave`
 --> test.yaml:8:23
  |
8 |   - leave: {topic: a, name: exit}
  |                       ^^^^ not known here
  |
  = help: expected one of: `topic`, `timeout`
"#);
}

#[test]
fn a_threshold_about_a_step_that_is_not_there() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user:
  - connect: {name: login}
  - expect: {text: a, name: greeting}
thresholds:
  - step.greeting.p95 < 100ms
  - step.greting.p95 < 100ms
  - \"  step.checkout.errors < 1%\"
  - step.greeting.p9999 < 1s
  - step.greeting.p95 < 1%
  - step.login
  - transaction.login.p95 < 1s
  - closed_by_peer == 0
",
    );
    insta::assert_snapshot!(shown, @r#"
error: invalid threshold: unknown step `greting`
 --> test.yaml:8:10
  |
8 |   - step.greting.p95 < 100ms
  |          ^^^^^^^ did you mean `greeting`?
  |
  = help: steps with a name: `login`, `greeting`

error: invalid threshold: unknown step `checkout`
 --> test.yaml:9:13
  |
9 |   - "  step.checkout.errors < 1%"
  |             ^^^^^^^^ no step has this name
  |
  = help: steps with a name: `login`, `greeting`

error: invalid threshold: `p9999` is no figure of the step `greeting`
  --> test.yaml:10:5
   |
10 |   - step.greeting.p9999 < 1s
   |     ^^^^^^^^^^^^^^^^^^^ did you mean `step.greeting.p99.99`?

error: invalid threshold: the unit is missing
  --> test.yaml:11:25
   |
11 |   - step.greeting.p95 < 1%
   |                         ^ expected a duration such as 250ms, 15m or 1h30m

error: invalid threshold: the figure of the step `login` is missing
  --> test.yaml:12:5
   |
12 |   - step.login
   |     ^^^^^^^^^^ did you mean `step.login.p95`?

error: invalid threshold: unknown measurement `transaction.login.p95`
  --> test.yaml:13:5
   |
13 |   - transaction.login.p95 < 1s
   |     ^^^^^^^^^^^^^^^^^^^^^ did you mean `step.login.p95`?

error: invalid threshold: unknown measurement `closed_by_peer`
  --> test.yaml:14:5
   |
14 |   - closed_by_peer == 0
   |     ^^^^^^^^^^^^^^ did you mean `errors.closed_by_peer`?
"#);
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user: [connect]
thresholds: [step.login.p95 < 1s]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: invalid threshold: unknown step `login`
 --> test.yaml:4:19
  |
4 | thresholds: [step.login.p95 < 1s]
  |                   ^^^^^ no step has this name
  |
  = help: give a step a name: `connect: {name: login}`
"#);
}

#[test]
fn a_threshold_about_work_that_no_step_does() {
    let scenario = |threshold: &str, rest: &str| {
        format!(
            "target: tcp://h:1
load: [ramp: {{to: 1, over: 1s}}]
user: [connect, send: a, expect: b]
thresholds: [{threshold}]
{rest}"
        )
    };
    insta::assert_snapshot!(whole(&scenario("http.p99 < 5ms", "")), @r#"
error: invalid threshold: no run measures `http.p99`
 --> test.yaml:4:14
  |
4 | thresholds: [http.p99 < 5ms]
  |              ^^^^^^^^ the scenario has no step `get`, `head`, `post`, `put`, `patch`, `delete`, `options`
"#);
    insta::assert_snapshot!(whole(&scenario("broadcast.p99 < 5ms", "")), @r#"
error: invalid threshold: no run measures `broadcast.p99`
 --> test.yaml:4:14
  |
4 | thresholds: [broadcast.p99 < 5ms]
  |              ^^^^^^^^^^^^^ the scenario has no `probe`
"#);
    for measured in ["message.p99 < 5ms", "errors.http_closed == 0", "joined_most == 0"] {
        let parsed = Scenario::parse(&scenario(measured, ""), "test.yaml");
        assert!(parsed.is_ok(), "{measured}: {parsed:?}");
    }
    // A step that a parameter leaves out may do the work with another value of it.
    let left_out = scenario("turns.started > 5", "params: {more: 0}")
        .replace("expect: b]", "expect: b, {when: more > 0, every: {rate: 1/s, do: [send: a]}}]");
    let parsed = Scenario::parse(&left_out, "test.yaml");
    assert!(parsed.is_ok(), "{parsed:?}");
}
