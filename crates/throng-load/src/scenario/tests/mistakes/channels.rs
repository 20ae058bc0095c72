//! Mistakes in the steps of Phoenix Channels.

use super::user_of;

#[test]
fn a_step_without_what_it_needs() {
    let shown = user_of(
        "phoenix",
        "  - connect
  - join
  - join: {topc: lobby}
  - join: {topic: \"\", payload: 7}
  - join: {topic: \"rooms:${counter}\"}
  - push: {topic: lobby}
  - leave: {}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `join` needs a value
 --> test.yaml:6:5
  |
6 |   - join
  |     ^^^^ for example `join: {topic: "rooms:lobby"}`

error: unknown key `topc` in `join`
 --> test.yaml:7:12
  |
7 |   - join: {topc: lobby}
  |            ^^^^ did you mean `topic`?
  |
  = help: expected one of: `topic`, `payload`, `timeout`, `expect`, `capture`, `name`

error: the topic is empty
 --> test.yaml:8:19
  |
8 |   - join: {topic: "", payload: 7}
  |                   ^^ for example rooms:lobby

error: `payload` must be a mapping such as {body: hello}
 --> test.yaml:8:32
  |
8 |   - join: {topic: "", payload: 7}
  |                                ^ found a single value

error: a topic must stay the same
 --> test.yaml:9:26
  |
9 |   - join: {topic: "rooms:${counter}"}
  |                          ^^^^^^^^^^ `counter` changes with every message
  |
  = help: `${user.id % 100}` and `${random(1,100)}` give each user a fixed room

error: `push` has no `event`
  --> test.yaml:10:11
   |
10 |   - push: {topic: lobby}
   |           ^^^^^^^^^^^^^^ `event` is missing, for example `event: new_msg`

error: `leave` has no `topic`
  --> test.yaml:11:12
   |
11 |   - leave: {}
   |            ^^ `topic` is missing, for example `topic: "rooms:lobby"`
"#);
}

#[test]
fn steps_that_cannot_follow_one_another() {
    let shown = user_of(
        "phoenix",
        "  - join: {topic: lobby}
  - push: {topic: loby, event: x}
  - join: {topic: lobby}
  - leave: {topic: lobby}
  - push: {topic: lobby, event: x}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `join` needs a connection
 --> test.yaml:5:5
  |
5 |   - join: {topic: lobby}
  |     ^^^^^^^^^^^^^^^^^^^^ not connected here; add `connect` before it

error: this topic is not joined
 --> test.yaml:6:5
  |
6 |   - push: {topic: loby, event: x}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ add a `join` with exactly this topic before it

error: this topic is already joined
 --> test.yaml:7:5
  |
7 |   - join: {topic: lobby}
  |     ^^^^^^^^^^^^^^^^^^^^ add a `leave` before it, or use another topic

error: this topic is not joined
 --> test.yaml:9:5
  |
9 |   - push: {topic: lobby, event: x}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ add a `join` with exactly this topic before it
"#);
    let shown = user_of(
        "phoenix",
        "  - connect
  - repeat: {times: 2, do: [join: {topic: \"rooms:${user.id % 10}\"}]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this topic is already joined
 --> test.yaml:6:29
  |
6 |   - repeat: {times: 2, do: [join: {topic: "rooms:${user.id % 10}"}]}
  |                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ add a `leave` before it, or use another topic
  |
  = help: this happens from the second turn of the loop
"#);
}

#[test]
fn an_event_that_is_drawn_anew_cannot_be_received() {
    let shown = user_of(
        "phoenix",
        "  - connect
  - join: {topic: lobby}
  - receive: {topic: lobby, event: \"told-${uuid()}\"}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: `uuid` cannot be expected: each use has another value
 --> test.yaml:7:42
  |
7 |   - receive: {topic: lobby, event: "told-${uuid()}"}
  |                                          ^^^^^^^^^ use `${sent}` or `${sent.member}`, the message that was sent
  |
  = help: `set: {name: ...}` before the `send` keeps a value for both
"#);
}
