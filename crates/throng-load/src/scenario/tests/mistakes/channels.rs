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
error: `join` does not say what
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
  = help: known here: `topic`, `payload`, `timeout`

error: a topic has a name
 --> test.yaml:8:19
  |
8 |   - join: {topic: "", payload: 7}
  |                   ^^ for example rooms:lobby

error: `payload` is a mapping such as {body: hello}
 --> test.yaml:8:32
  |
8 |   - join: {topic: "", payload: 7}
  |                                ^ found a single value

error: a topic is the same each time
 --> test.yaml:9:26
  |
9 |   - join: {topic: "rooms:${counter}"}
  |                          ^^^^^^^^^^ `counter` is another one each time
  |
  = help: `${user.id % 100}` and `${random(1,100)}` give each user a room to stay in

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
error: `join` has no connection to join on
 --> test.yaml:5:5
  |
5 |   - join: {topic: lobby}
  |     ^^^^^^^^^^^^^^^^^^^^ there is no connection here; `connect` comes first

error: this topic is not joined here
 --> test.yaml:6:5
  |
6 |   - push: {topic: loby, event: x}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `join` comes first, with exactly this topic

error: this topic is joined already
 --> test.yaml:7:5
  |
7 |   - join: {topic: lobby}
  |     ^^^^^^^^^^^^^^^^^^^^ `leave` comes first, or another topic

error: this topic is not joined here
 --> test.yaml:9:5
  |
9 |   - push: {topic: lobby, event: x}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `join` comes first, with exactly this topic
"#);
    let shown = user_of(
        "phoenix",
        "  - connect
  - repeat: {times: 2, do: [join: {topic: \"rooms:${user.id % 10}\"}]}
",
    );
    insta::assert_snapshot!(shown, @r#"
error: this topic is joined already
 --> test.yaml:6:29
  |
6 |   - repeat: {times: 2, do: [join: {topic: "rooms:${user.id % 10}"}]}
  |                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `leave` comes first, or another topic
  |
  = help: this is so from the second turn of the loop on
"#);
}
