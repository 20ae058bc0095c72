//! Mistakes in probes.

use crate::scenario::Scenario;

use super::whole;

fn probe(protocol: &str, probe: &str) -> String {
    whole(&format!(
        "target: ws://h:1/s\nprotocol: {protocol}\nload: [ramp: {{to: 1, over: 1s}}]\n\
         user: [connect, stay]\nprobe:\n{probe}"
    ))
}

#[test]
fn a_probe_that_cannot_be() {
    let shown = probe("phoenix", "  - every: 10s\n    brodcast: {topic: lobby}\n");
    insta::assert_snapshot!(shown, @r#"
error: unknown key `brodcast` in a probe
 --> test.yaml:7:5
  |
7 |     brodcast: {topic: lobby}
  |     ^^^^^^^^ did you mean `broadcast`?
  |
  = help: expected one of: `every`, `broadcast`, `timeout`, `to_sender`, `members`
"#);
    let shown = probe(
        "phoenix",
        "  - broadcast: {topic: \"rooms:${user.id}\", event: \"\", payload: [1]}
    timeout: 0s
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a probe has no `every`
 --> test.yaml:6:5
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `every` is missing, for example `every: 10s`

error: the topic of a probe cannot contain variables
 --> test.yaml:6:24
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |                        ^^^^^^^^^^^^^^^^^^ use a fixed topic

error: the event is empty
 --> test.yaml:6:51
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |                                                   ^^ for example new_msg

error: `payload` must be a mapping such as {body: hello}
 --> test.yaml:6:64
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |                                                                ^^^ found a list

error: `timeout` is zero
 --> test.yaml:7:14
  |
7 |     timeout: 0s
  |              ^^ must be more than 0s
"#);
    let shown = probe("ws", "  - every: 10s\n    broadcast: {topic: lobby, event: x}\n");
    insta::assert_snapshot!(shown, @r#"
error: `broadcast` needs exactly one payload
 --> test.yaml:7:16
  |
7 |     broadcast: {topic: lobby, event: x}
  |                ^^^^^^^^^^^^^^^^^^^^^^^^ one of `text` and `json`

error: unknown key `topic` in `broadcast`
 --> test.yaml:7:17
  |
7 |     broadcast: {topic: lobby, event: x}
  |                 ^^^^^ not known here
  |
  = help: expected one of: `text`, `json`

error: unknown key `event` in `broadcast`
 --> test.yaml:7:31
  |
7 |     broadcast: {topic: lobby, event: x}
  |                               ^^^^^ not known here
  |
  = help: expected one of: `text`, `json`
"#);
    let shown = probe("ws", "  every: 10s\n");
    insta::assert_snapshot!(shown, @r#"
error: `probe` must be a list such as `- every: 10s`, with a `broadcast` in it
 --> test.yaml:6:3
  |
6 |   every: 10s
  |   ^^^^^^^^^^ found a mapping
"#);
    let shown = probe(
        "ws",
        "  - {every: 1s, broadcast: {text: a}}\n  - {every: 2s, broadcast: {text: b}}\n",
    );
    insta::assert_snapshot!(shown, @r#"
error: `probe` needs exactly one item
 --> test.yaml:7:5
  |
7 |   - {every: 2s, broadcast: {text: b}}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this version supports one probe
"#);
}

#[test]
fn a_probe_to_a_topic_that_no_user_joins() {
    let users = |steps: &str| {
        Scenario::parse(
            &format!(
                "target: ws://h:1/s\nprotocol: phoenix\nload: [ramp: {{to: 1, over: 1s}}]\n\
                 users:\n  idle: {{user: [connect, stay]}}\n  chat: {{user: {steps}}}\n\
                 probe: [{{every: 1s, broadcast: {{topic: \"rooms:lobby\", event: a}}}}]\n"
            ),
            "test.yaml",
        )
    };
    let shown = |steps: &str| users(steps).expect_err(steps).render(false);
    insta::assert_snapshot!(shown("[connect, stay]"), @r#"
error: no user joins the topic of the probe
 --> test.yaml:7:40
  |
7 | probe: [{every: 1s, broadcast: {topic: "rooms:lobby", event: a}}]
  |                                        ^^^^^^^^^^^^^ add a `join` of this topic to the users' steps
"#);
    insta::assert_snapshot!(
        shown("[connect, join: {topic: \"rooms:loby\"}, join: {topic: \"u:${user.id}\"}, stay]"),
        @r#"
error: no user joins the topic of the probe
 --> test.yaml:7:40
  |
7 | probe: [{every: 1s, broadcast: {topic: "rooms:lobby", event: a}}]
  |                                        ^^^^^^^^^^^^^ did you mean `rooms:loby`?
  |
  = help: the users join `rooms:loby`, `u:${user.id}`
"#
    );
    for may_join in ["rooms:lobby", "rooms:${user.id}", "${random(1,2)}:${user.id}y", "${user.id}"]
    {
        let join =
            format!("[connect, repeat: {{times: 1, do: [join: {{topic: \"{may_join}\"}}]}}]");
        assert!(users(&join).is_ok(), "{may_join}");
    }
    // A mistake in the steps is no mistake in the probe.
    assert!(!shown("[conect, join: {topic: other}]").contains("no user joins"));
}

#[test]
fn a_probe_of_plain_tcp() {
    let shown = whole(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user: [connect, stay]
probe: [{every: 10s, broadcast: {text: hi}}]
",
    );
    insta::assert_snapshot!(shown, @r#"
error: a probe needs messages, and plain TCP has none
 --> test.yaml:4:8
  |
4 | probe: [{every: 10s, broadcast: {text: hi}}]
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ use a `ws://` target
"#);
}

#[test]
fn members_and_marks_that_cannot_be() {
    let shown = Scenario::parse(
        "target: ws://h:1/
load: [ramp: {to: 1, over: 1s}]
user: [connect, send: 'a ${probe}']
probe:
  - every: 1s
    members: '${random(1,2)} == 1'
    broadcast: {text: 'a ${room}'}
",
        "test.yaml",
    );
    insta::assert_snapshot!(shown.expect_err("mistakes").render(false), @r#"
error: `probe` is the mark of a probe
 --> test.yaml:3:28
  |
3 | user: [connect, send: 'a ${probe}']
  |                            ^^^^^ it belongs in the `broadcast` of a probe

error: a user must stay a member
 --> test.yaml:6:14
  |
6 |     members: '${random(1,2)} == 1'
  |              ^^^^^^^^^^^^^^^^^^^^^ random, choice, uuid, time and counter change

error: unknown variable `room`
 --> test.yaml:7:28
  |
7 |     broadcast: {text: 'a ${room}'}
  |                            ^^^^ use user.id, counter, sent, env.NAME, random(a,b), choice(a,b), uuid(), time(), base64(x), json(x), sha256(x), raw(x), length(x), what `set`, `capture` and `data` store, or arithmetic such as user.id % 50; a plain `${` is written `$${`
"#);
}
