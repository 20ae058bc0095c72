//! Mistakes in `setup` and `teardown`, and with the values of `setup`.

use super::whole;

/// Returns all mistakes of a scenario with these lists of steps.
fn steps(setup: &str, user: &str, teardown: &str) -> String {
    whole(&format!(
        "target: ws://h:1/s\nload: [ramp: {{to: 1, over: 1s}}]\nsetup: [{setup}]\nuser: [{user}]\n\
         teardown: [{teardown}]\n"
    ))
}

#[test]
fn steps_that_never_end() {
    let shown = steps("connect, stay", "connect", "connect, {every: {period: 1s, do: [send: a]}}");
    insta::assert_snapshot!(shown, @r#"
error: `setup` never ends
 --> test.yaml:3:8
  |
3 | setup: [connect, stay]
  |        ^^^^^^^^^^^^^^^ the load begins after its last step: no `stay`, no loop without an end

error: `teardown` never ends
 --> test.yaml:5:11
  |
5 | teardown: [connect, {every: {period: 1s, do: [send: a]}}]
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the run ends after its last step: no `stay`, no loop without an end
"#);
}

#[test]
fn a_name_of_a_step() {
    let shown = steps("connect: {name: login}", "connect", "connect");
    insta::assert_snapshot!(shown, @r#"
error: a step of `setup` has no name
 --> test.yaml:3:25
  |
3 | setup: [connect: {name: login}]
  |                         ^^^^^ a name is for a step that is measured: leave it out
"#);
}

#[test]
fn a_value_that_setup_does_not_store() {
    let shown = steps("connect, set: {room: a}", "connect, send: \"${setup.rom}\"", "connect");
    insta::assert_snapshot!(shown, @r#"
error: `setup.rom` has no value
 --> test.yaml:4:26
  |
4 | user: [connect, send: "${setup.rom}"]
  |                          ^^^^^^^^^ `setup` stores room
"#);
    let shown = steps("connect", "connect, send: \"${setup.room}\"", "connect");
    insta::assert_snapshot!(shown, @r#"
error: `setup.room` has no value
 --> test.yaml:4:26
  |
4 | user: [connect, send: "${setup.room}"]
  |                          ^^^^^^^^^^ `setup` stores nothing: add `set`, or `capture` to a step
"#);
    let shown = whole(
        "target: ws://h:1/s
load: [ramp: {to: 1, over: 1s}]
user: [connect, send: \"${setup.room}\"]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `setup.room` has no value
 --> test.yaml:3:26
  |
3 | user: [connect, send: "${setup.room}"]
  |                          ^^^^^^^^^^ the scenario has no `setup`
"#);
}

#[test]
fn a_value_of_setup_without_its_prefix() {
    let shown = steps("connect, set: {room: a}", "connect, send: \"${room}\"", "connect");
    insta::assert_snapshot!(shown, @r#"
error: `room` has no value here
 --> test.yaml:4:26
  |
4 | user: [connect, send: "${room}"]
  |                          ^^^^ `setup` stores it: write ${setup.room}
"#);
}

#[test]
fn a_value_of_setup_with_its_prefix_within_setup() {
    let shown = steps("connect, set: {room: a}, send: \"${setup.room}\"", "connect", "connect");
    insta::assert_snapshot!(shown, @r#"
error: `setup.room` has no value
 --> test.yaml:3:43
  |
3 | setup: [connect, set: {room: a}, send: "${setup.room}"]
  |                                           ^^^^^^^^^^ within `setup` it is ${room}
"#);
}

#[test]
fn a_value_of_a_user_in_teardown() {
    let shown = steps("connect", "connect, set: {room: a}", "connect, send: \"${room}\"");
    insta::assert_snapshot!(shown, @r#"
error: `room` has no value here
 --> test.yaml:5:30
  |
5 | teardown: [connect, send: "${room}"]
  |                              ^^^^ it is a user's own; `teardown` knows what `setup` stores
"#);
}

#[test]
fn a_list_without_steps() {
    let shown = steps("", "connect", "");
    insta::assert_snapshot!(shown, @r#"
error: `setup` has no steps
 --> test.yaml:3:8
  |
3 | setup: []
  |        ^^ add at least one

error: `teardown` has no steps
 --> test.yaml:5:11
  |
5 | teardown: []
  |           ^^ add at least one
"#);
}
