//! Mistakes in barriers and signals.

use super::{user, whole};

#[test]
fn a_wait_for_a_signal_that_no_step_gives() {
    let shown = user("  - wait_for: go\n  - wait_for: {name: redy}\n  - signal: ready\n");
    insta::assert_snapshot!(shown, @r#"
error: no step gives the signal `go`
 --> test.yaml:4:15
  |
4 |   - wait_for: go
  |               ^^ users would wait here until the run ends
  |
  = help: add `signal: go` to the steps of the users that they wait for

error: no step gives the signal `redy`
 --> test.yaml:5:22
  |
5 |   - wait_for: {name: redy}
  |                      ^^^^ did you mean `ready`?
  |
  = help: add `signal: redy` to the steps of the users that they wait for

error: no step waits for the signal `ready`
 --> test.yaml:6:13
  |
6 |   - signal: ready
  |             ^^^^^ did you mean `redy`?
  |
  = help: add `wait_for: ready` to the steps that wait for it, or take this one out
"#);
}

#[test]
fn a_signal_for_which_no_step_waits() {
    let shown = user("  - connect\n  - signal: done\n");
    insta::assert_snapshot!(shown, @r#"
error: no step waits for the signal `done`
 --> test.yaml:5:13
  |
5 |   - signal: done
  |             ^^^^ nothing follows from it
  |
  = help: add `wait_for: done` to the steps that wait for it, or take this one out
"#);
}

#[test]
fn a_barrier_for_more_users_than_the_load_has() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 100, over: 1s}, hold: {for: 1m}]
users:
  a: {weight: 9, user: [barrier: {name: start, users: 100}, connect]}
  b: {user: [connect, barrier: {name: both, users: 101}]}
  c: {user: [connect, barrier: both]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the barrier `start` never opens
 --> test.yaml:4:41
  |
4 |   a: {weight: 9, user: [barrier: {name: start, users: 100}, connect]}
  |                                         ^^^^^ it waits for 100 users, and the load has at most 82 of `a`
  |
  = help: leave `users` out for all of them

error: the barrier `both` never opens
 --> test.yaml:5:39
  |
5 |   b: {user: [connect, barrier: {name: both, users: 101}]}
  |                                       ^^^^ it waits for 101 users, and the load has at most 18 of `b` and `c`
  |
  = help: leave `users` out for all of them
"#);
    let shown = whole(
        "target: tcp://h:1
load: [arrivals: {rate: 10/s, for: 10s}]
user:
  - barrier: {name: start, users: 101}
  - barrier: all
  - connect
",
    );
    insta::assert_snapshot!(shown, @r#"
error: the barrier `start` never opens
 --> test.yaml:4:21
  |
4 |   - barrier: {name: start, users: 101}
  |                     ^^^^^ it waits for 101 users, and the load has at most 100
  |
  = help: write at most 100

error: the barrier `all` needs a number of users
 --> test.yaml:5:14
  |
5 |   - barrier: all
  |              ^^^ for example `barrier: {name: all, users: 100}`
  |
  = help: users that arrive by a rate are as many as the server lets be
"#);
}

#[test]
fn a_name_that_two_steps_use_in_different_ways() {
    let shown = user(
        "  - barrier: start
  - wait_for: start
  - signal: start
  - barrier: {name: other, users: 1}
  - barrier: {name: other, users: 2}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `start` is the name of a barrier and of a signal
 --> test.yaml:5:15
  |
5 |   - wait_for: start
  |               ^^^^^ take another name: a barrier has no signal

error: `start` is the name of a barrier and of a signal
 --> test.yaml:6:13
  |
6 |   - signal: start
  |             ^^^^^ take another name: a barrier has no signal

error: the barrier `other` has two numbers of users
 --> test.yaml:8:21
  |
8 |   - barrier: {name: other, users: 2}
  |                     ^^^^^ it is 1 in another step; take that, or another name
"#);
}

#[test]
fn values_that_are_wrong() {
    let shown = user(
        "  - barrier
  - barrier: {users: 10}
  - barrier: {name: a, users: 0}
  - barrier: {name: a, users: 5G}
  - barrier: {name: a, users: many}
  - barrier: {name: a, timeout: 0s}
  - barrier: {name: a, count: 3}
  - barrier: 7 users
  - signal: [a]
  - wait_for: {name: a b, timeout: 5}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `barrier` needs a value
 --> test.yaml:4:5
  |
4 |   - barrier
  |     ^^^^^^^ for example `barrier: {name: start, users: 100}`

error: `barrier` has no `name`
 --> test.yaml:5:14
  |
5 |   - barrier: {users: 10}
  |              ^^^^^^^^^^^ `name` is missing, for example `name: start`

error: a barrier for 0 users
 --> test.yaml:6:31
  |
6 |   - barrier: {name: a, users: 0}
  |                               ^ at least 1

error: a barrier for too many users
 --> test.yaml:7:31
  |
7 |   - barrier: {name: a, users: 5G}
  |                               ^^ at most 4294967295

error: `users` must be a whole number such as 250, 1_000, 100k or 2.5M
 --> test.yaml:8:31
  |
8 |   - barrier: {name: a, users: many}
  |                               ^^^^ a number must begin here

error: `timeout` is zero
 --> test.yaml:9:33
  |
9 |   - barrier: {name: a, timeout: 0s}
  |                                 ^^ must be more than 0s

error: unknown key `count` in `barrier`
  --> test.yaml:10:24
   |
10 |   - barrier: {name: a, count: 3}
   |                        ^^^^^ not known here
   |
   = help: expected one of: `name`, `users`, `timeout`

error: `7 users` cannot be the name of a barrier
  --> test.yaml:11:14
   |
11 |   - barrier: 7 users
   |              ^^^^^^^ a letter first, then letters, digits, `_` and `-`

error: the name of a signal must be a name such as `start`
  --> test.yaml:12:13
   |
12 |   - signal: [a]
   |             ^^^ found a list

error: `a b` cannot be the name of a signal
  --> test.yaml:13:22
   |
13 |   - wait_for: {name: a b, timeout: 5}
   |                      ^^^ a letter first, then letters, digits, `_` and `-`

error: `timeout` must be a duration such as 250ms, 15m or 1h30m
  --> test.yaml:13:36
   |
13 |   - wait_for: {name: a b, timeout: 5}
   |                                    ^ the unit is missing
"#);
}

#[test]
fn a_wait_for_other_users_in_a_setup() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
setup: [connect, signal: ready, close]
user: [wait_for: ready, connect]
teardown: [barrier: {name: a, users: 1}, connect]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `setup` has one user, which no other one waits for
 --> test.yaml:3:26
  |
3 | setup: [connect, signal: ready, close]
  |                          ^^^^^ take this step out: barriers and signals are for the users of the load

error: no step gives the signal `ready`
 --> test.yaml:4:18
  |
4 | user: [wait_for: ready, connect]
  |                  ^^^^^ users would wait here until the run ends
  |
  = help: add `signal: ready` to the steps of the users that they wait for

error: `teardown` has one user, which no other one waits for
 --> test.yaml:5:28
  |
5 | teardown: [barrier: {name: a, users: 1}, connect]
  |                            ^ take this step out: barriers and signals are for the users of the load
"#);
}
