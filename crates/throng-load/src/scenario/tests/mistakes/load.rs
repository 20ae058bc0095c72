//! Mistakes in the phases of a load.

use super::{load, whole};

#[test]
fn a_wrong_unit() {
    let shown = load(
        "  - ramp: {to: 100K, over: 15min}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `to` must be a whole number such as 250, 1_000, 100k or 2.5M
 --> test.yaml:4:19
  |
4 |   - ramp: {to: 100K, over: 15min}
  |                   ^ did you mean `k`?

error: `over` must be a duration such as 250ms, 15m or 1h30m
 --> test.yaml:4:30
  |
4 |   - ramp: {to: 100K, over: 15min}
  |                              ^^^ did you mean `m`?
"#);
    let shown = load(
        "  - ramp: {to: 100, over: 15}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `over` must be a duration such as 250ms, 15m or 1h30m
 --> test.yaml:4:27
  |
4 |   - ramp: {to: 100, over: 15}
  |                           ^^ the unit is missing
"#);
}

#[test]
fn an_unknown_phase_and_an_unknown_key_in_one() {
    let shown = load(
        "  - rmap: {to: 1, over: 1s}
  - hold: {form: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown key `rmap` in a load phase
 --> test.yaml:4:5
  |
4 |   - rmap: {to: 1, over: 1s}
  |     ^^^^ did you mean `ramp`?
  |
  = help: expected one of: `ramp`, `hold`, `arrivals`, `steps`, `spike`, `loop`

error: unknown key `form` in `hold`
 --> test.yaml:5:12
  |
5 |   - hold: {form: 1m}
  |            ^^^^ did you mean `for`?
  |
  = help: expected one of: `for`, `until`
"#);
}

#[test]
fn phases_that_are_impossible() {
    let shown = load(
        "  - ramp: {to: 5G, over: 0s}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: too many users
 --> test.yaml:4:16
  |
4 |   - ramp: {to: 5G, over: 0s}
  |                ^^ at most 4294967295

error: `over` is zero
 --> test.yaml:4:26
  |
4 |   - ramp: {to: 5G, over: 0s}
  |                          ^^ must be more than 0s
"#);
    let shown = load(
        "  - hold: {for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the load begins with `hold`, but there are no users yet
 --> test.yaml:4:5
  |
4 |   - hold: {for: 1m}
  |     ^^^^^^^^^^^^^^^ add `ramp` or `arrivals` before it
"#);
    let shown = load(
        "  - ramp: {to: 100, over: 1m}
  - ramp: {to: 100, over: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: there are 100 users already
 --> test.yaml:5:5
  |
5 |   - ramp: {to: 100, over: 1m}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^ a ramp must change the number of users; did you mean `hold`?
"#);
}

#[test]
fn a_hold_that_ends_with_its_users_is_the_last_phase_of_an_open_load() {
    let shown = load(
        "  - arrivals: {rate: 1/s, for: 1s}
  - hold: {for: 1m, until: done}
  - arrivals: {rate: 1/s, for: 1s}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: no phase can follow a `hold` with `until: done`
 --> test.yaml:6:5
  |
6 |   - arrivals: {rate: 1/s, for: 1s}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the load ends with its users before this
"#);
    let shown = load(
        "  - ramp: {to: 1, over: 1s}
  - hold: {for: 1m, until: dnoe}
  - hold: {for: 1m, until: done}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown `until` `dnoe`
 --> test.yaml:5:28
  |
5 |   - hold: {for: 1m, until: dnoe}
  |                            ^^^^ did you mean `done`?
  |
  = help: expected one of: `done`
"#);
    let shown = load(
        "  - ramp: {to: 1, over: 1s}
  - hold: {for: 1m, until: done}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the users of this load are never done: they begin again and again
 --> test.yaml:5:5
  |
5 |   - hold: {for: 1m, until: done}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `until: done` needs users of `arrivals`
  |
  = help: leave out `until`
"#);
    let shown = super::whole(
        "target: ws://h:1/
protocol: phoenix
load: [arrivals: {rate: 1/s, for: 1s}, hold: {for: 1m, until: done}]
user: [connect, join: {topic: a}, stay]
probe: [{every: 10s, broadcast: {topic: a, event: e}}]
",
    );
    assert!(shown.contains("a load with a `probe` does not end with its users"), "{shown}");
}

#[test]
fn arrivals_that_are_impossible() {
    let shown = load(
        "  - arrivals: {rate: 0/s, for: 1m}
  - arrivals: {rate: {from: 0/s, to: 0/s}, for: 0s}
  - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this rate is zero
 --> test.yaml:4:22
  |
4 |   - arrivals: {rate: 0/s, for: 1m}
  |                      ^^^ must be more than 0

error: no user would ever arrive
 --> test.yaml:5:22
  |
5 |   - arrivals: {rate: {from: 0/s, to: 0/s}, for: 0s}
  |                      ^^^^^^^^^^^^^^^^^^^^ `from` or `to` must be more than 0

error: `for` is zero
 --> test.yaml:5:49
  |
5 |   - arrivals: {rate: {from: 0/s, to: 0/s}, for: 0s}
  |                                                 ^^ must be more than 0s

error: this rate is too high
 --> test.yaml:6:22
  |
6 |   - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
  |                      ^^^^ at most 1G/s

error: no user would arrive
 --> test.yaml:6:43
  |
6 |   - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
  |                                           ^ at least 1

error: unknown `spacing` `evn`
 --> test.yaml:6:55
  |
6 |   - arrivals: {rate: 2G/s, for: 1s, most: 0, spacing: evn}
  |                                                       ^^^ did you mean `even`?
  |
  = help: expected one of: `poisson`, `even`
"#);
}

#[test]
fn two_models_in_one_load() {
    let shown = load(
        "  - ramp: {to: 100, over: 1m}
  - arrivals: {rate: 100/s, for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `arrivals` cannot follow `ramp` or `hold`
 --> test.yaml:5:5
  |
5 |   - arrivals: {rate: 100/s, for: 1m}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a load has one model
  |
  = help: a load is either closed (`ramp`: a fixed number of users that repeat their steps) or open (`arrivals`: users arrive by the clock and run once); `hold` works with both
"#);
    let shown = load(
        "  - arrivals: {rate: 100/s, for: 1m}
  - ramp: {to: 0, over: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `ramp` cannot follow `arrivals`
 --> test.yaml:5:5
  |
5 |   - ramp: {to: 0, over: 1m}
  |     ^^^^^^^^^^^^^^^^^^^^^^^ a load has one model
  |
  = help: a load is either closed (`ramp`: a fixed number of users that repeat their steps) or open (`arrivals`: users arrive by the clock and run once); `hold` works with both
"#);
}

#[test]
fn two_phases_in_one_item() {
    let shown = load(
        "  - ramp: {to: 100, over: 1m}
    hold: {for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: each phase needs its own list item
 --> test.yaml:5:5
  |
5 |     hold: {for: 1m}
  |     ^^^^ start this one with `- `
"#);
}

#[test]
fn ramps_that_are_impossible() {
    let shown = load(
        "  - ramp: {to: 100, over: 1m, curve: exponental}
  - arrivals: {rate: {from: 0/s, to: 10/s, curve: exponential}, for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: unknown `curve` `exponental`
 --> test.yaml:4:38
  |
4 |   - ramp: {to: 100, over: 1m, curve: exponental}
  |                                      ^^^^^^^^^^ did you mean `exponential`?
  |
  = help: expected one of: `linear`, `exponential`

error: an exponential rate never reaches zero
 --> test.yaml:5:29
  |
5 |   - arrivals: {rate: {from: 0/s, to: 10/s, curve: exponential}, for: 1m}
  |                             ^^^ more than 0, such as 1/s
  |
  = help: it grows by the same factor in equal times
"#);
}

#[test]
fn stairs_that_are_impossible() {
    let shown = load(
        "  - steps: {from: 100, to: 1k, each: 30s}
  - steps: {from: 100, to: 1k, by: 100, count: 10, each: 30s}
  - steps: {from: 100, to: 1k/s, by: 100, each: 30s}
  - steps: {from: 0, to: 1k, by: 100, each: 30s}
  - steps: {from: 100, to: 1k, by: 10/s, each: 30s}
  - steps: {from: 100, to: 1M, by: 1, each: 30s}
  - steps: {from: 100, to: 1k, count: 1, each: 0s, spacing: even}
  - steps: {from: 10/s, to: 10/s, by: 0/s}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `steps` needs `by` or `count`
 --> test.yaml:4:12
  |
4 |   - steps: {from: 100, to: 1k, each: 30s}
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ for example `by: 100`

error: `steps` has both `by` and `count`
 --> test.yaml:5:41
  |
5 |   - steps: {from: 100, to: 1k, by: 100, count: 10, each: 30s}
  |                                         ^^^^^ use only one of them

error: `steps` go from a number of users to a rate, or back
 --> test.yaml:6:28
  |
6 |   - steps: {from: 100, to: 1k/s, by: 100, each: 30s}
  |                            ^^^^ write both as users (`100`), or both as arrivals (`100/s`)

error: the first step has no users
 --> test.yaml:7:19
  |
7 |   - steps: {from: 0, to: 1k, by: 100, each: 30s}
  |                   ^ begin with the first that has

error: `by` is a rate
 --> test.yaml:8:36
  |
8 |   - steps: {from: 100, to: 1k, by: 10/s, each: 30s}
  |                                    ^^^^ a number of users, such as 100

error: `by: 1` makes more than 10k steps
 --> test.yaml:9:36
  |
9 |   - steps: {from: 100, to: 1M, by: 1, each: 30s}
  |                                    ^ make each step higher

error: `each` is zero
  --> test.yaml:10:48
   |
10 |   - steps: {from: 100, to: 1k, count: 1, each: 0s, spacing: even}
   |                                                ^^ must be more than 0s

error: `spacing` is for arrivals
  --> test.yaml:10:52
   |
10 |   - steps: {from: 100, to: 1k, count: 1, each: 0s, spacing: even}
   |                                                    ^^^^^^^ remove it, or write rates

error: `steps` has no `each`
  --> test.yaml:11:12
   |
11 |   - steps: {from: 10/s, to: 10/s, by: 0/s}
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `each` is missing, for example `each: 30s`

error: all steps have the same height
  --> test.yaml:11:29
   |
11 |   - steps: {from: 10/s, to: 10/s, by: 0/s}
   |                             ^^^^ that is `hold`, or one `arrivals`
"#);
}

#[test]
fn spikes_that_are_impossible() {
    let shown = load(
        "  - ramp: {to: 100, over: 1m}
  - spike: {to: 100, for: 10s}
  - spike: {to: 1k/s, for: 10s}
  - steps: {from: 100, to: 200, by: 50, each: 10s}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: there are 100 users already
 --> test.yaml:5:5
  |
5 |   - spike: {to: 100, for: 10s}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ a spike must change the number of users

error: `arrivals` cannot follow `ramp` or `hold`
 --> test.yaml:6:5
  |
6 |   - spike: {to: 1k/s, for: 10s}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^ a load has one model
  |
  = help: a load is either closed (`ramp`: a fixed number of users that repeat their steps) or open (`arrivals`: users arrive by the clock and run once); `hold` works with both

error: there are 100 users already
 --> test.yaml:7:5
  |
7 |   - steps: {from: 100, to: 200, by: 50, each: 10s}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the first step must change the number of users; begin with the next one
"#);
    let shown = load(
        "  - spike: {to: 100, over: 0s, spacing: even}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `spike` has no `for`
 --> test.yaml:4:12
  |
4 |   - spike: {to: 100, over: 0s, spacing: even}
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `for` is missing, for example `for: 30s`

error: `over` is zero
 --> test.yaml:4:28
  |
4 |   - spike: {to: 100, over: 0s, spacing: even}
  |                            ^^ must be more than 0s

error: `spacing` is for arrivals
 --> test.yaml:4:32
  |
4 |   - spike: {to: 100, over: 0s, spacing: even}
  |                                ^^^^^^^ remove it, or write `to` as a rate
"#);
}

#[test]
fn loops_that_are_impossible() {
    let shown = load(
        "  - loop: {times: 0, do: [hold: {for: 1m}]}
  - loop: {times: 3, do: []}
  - loop: {do: [hold: {four: 1m}]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `times` is zero
 --> test.yaml:4:19
  |
4 |   - loop: {times: 0, do: [hold: {for: 1m}]}
  |                   ^ at least 1

error: `do` has no phase
 --> test.yaml:5:26
  |
5 |   - loop: {times: 3, do: []}
  |                          ^^ add at least one

error: `loop` has no `times`
 --> test.yaml:6:11
  |
6 |   - loop: {do: [hold: {four: 1m}]}
  |           ^^^^^^^^^^^^^^^^^^^^^^^^ `times` is missing, for example `times: 3`

error: unknown key `four` in `hold`
 --> test.yaml:6:24
  |
6 |   - loop: {do: [hold: {four: 1m}]}
  |                        ^^^^ did you mean `for`?
  |
  = help: expected one of: `for`, `until`
"#);
    let shown = load(
        "  - loop:
      times: 3
      do:
        - ramp: {to: 100, over: 1m}
        - hold: {for: 1m}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: there are 100 users already
 --> test.yaml:7:11
  |
7 |         - ramp: {to: 100, over: 1m}
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^ a ramp must change the number of users; did you mean `hold`?
  |
  = help: this is turn 2 of `loop`, which begins where turn 1 ended
"#);
    let shown = load(
        "  - loop: {times: 1G, do: [steps: {from: 1, to: 9, by: 1, each: 1s}]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: more than 10k phases
 --> test.yaml:4:28
  |
4 |   - loop: {times: 1G, do: [steps: {from: 1, to: 9, by: 1, each: 1s}]}
  |                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ each turn of a loop counts; repeat it less often
"#);
}

#[test]
fn loads_of_classes_that_are_wrong() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
users:
  a: {load: [hold: {for: 1s}], user: [connect]}
  b: {load: [ramp: {to: 2, over: 1s}], weight: 2, user: [connect]}
  c: {user: [connect]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a load is that of all users, or each class has one
 --> test.yaml:2:1
  |
2 | load: [ramp: {to: 1, over: 1s}]
  | ^^^^ take this one out, or those of the classes

error: the load begins with `hold`, but there are no users yet
 --> test.yaml:4:14
  |
4 |   a: {load: [hold: {for: 1s}], user: [connect]}
  |              ^^^^^^^^^^^^^^^ add `ramp` or `arrivals` before it

error: `weight` shares one `load`, but each class has its own
 --> test.yaml:5:40
  |
5 |   b: {load: [ramp: {to: 2, over: 1s}], weight: 2, user: [connect]}
  |                                        ^^^^^^ take it out: the `load` has the users

error: the class `c` has no `load`
 --> test.yaml:6:3
  |
6 |   c: {user: [connect]}
  |   ^ another class has one, so that each class needs one
"#);
}

#[test]
fn a_barrier_of_arrivals_beside_other_users_needs_a_number() {
    let users = |barrier: &str| {
        format!(
            "target: tcp://h:1
users:
  stays: {{load: [ramp: {{to: 5, over: 1s}}], user: [connect, barrier: all, stay]}}
  comes: {{load: [arrivals: {{rate: 1/s, for: 9s}}], user: [connect, {barrier}]}}
"
        )
    };
    let shown = whole(&users("barrier: all"));
    insta::assert_snapshot!(shown, @r#"
error: the barrier `all` needs a number of users
 --> test.yaml:3:69
  |
3 |   stays: {load: [ramp: {to: 5, over: 1s}], user: [connect, barrier: all, stay]}
  |                                                                     ^^^ for example `barrier: {name: all, users: 100}`
  |
  = help: users that arrive by a rate are as many as the server lets be
"#);
    let alone = crate::scenario::Scenario::parse(&users("close"), "test").unwrap();
    assert!(format!("{:?}", alone.cues).contains("users: 5"), "{:?}", alone.cues);
}

#[test]
fn more_classes_with_loads_than_a_report_shows() {
    let classes: String = (0..17)
        .map(|at| format!("  c{at}: {{load: [ramp: {{to: 1, over: 1s}}], user: [connect]}}\n"))
        .collect();
    let shown = whole(&format!("target: tcp://h:1\nusers:\n{classes}"));
    insta::assert_snapshot!(shown, @r#"
error: 17 classes with a `load`
  --> test.yaml:19:3
   |
19 |   c16: {load: [ramp: {to: 1, over: 1s}], user: [connect]}
   |   ^^^ at most 16
"#);
}
