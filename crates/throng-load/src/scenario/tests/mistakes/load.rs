//! Mistakes in the phases of a load.

use super::load;

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
  = help: expected one of: `ramp`, `hold`, `arrivals`

error: unknown key `form` in `hold`
 --> test.yaml:5:12
  |
5 |   - hold: {form: 1m}
  |            ^^^^ did you mean `for`?
  |
  = help: expected one of: `for`
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
