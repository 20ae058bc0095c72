//! Mistakes in probes.

use super::whole;

fn probe(protocol: &str, probe: &str) -> String {
    whole(&format!(
        "target: ws://h:1/s\nprotocol: {protocol}\nload: [ramp: {{to: 1, over: 1s}}]\nuser: [connect, stay]\nprobe:\n{probe}"
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
  = help: known here: `every`, `broadcast`, `timeout`, `to_sender`
"#);
    let shown = probe(
        "phoenix",
        "  - broadcast: {topic: \"rooms:${user.id}\", event: \"\", payload: [1]}\n    timeout: 0s\n",
    );
    insta::assert_snapshot!(shown, @r#"
error: a probe has no `every`
 --> test.yaml:6:5
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `every` is missing, for example `every: 10s`

error: the topic of a probe knows no variables
 --> test.yaml:6:24
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |                        ^^^^^^^^^^^^^^^^^^ name one of the rooms

error: an event has a name
 --> test.yaml:6:51
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |                                                   ^^ for example new_msg

error: `payload` is a mapping such as {body: hello}
 --> test.yaml:6:64
  |
6 |   - broadcast: {topic: "rooms:${user.id}", event: "", payload: [1]}
  |                                                                ^^^ found a list

error: `timeout` is longer than nothing
 --> test.yaml:7:14
  |
7 |     timeout: 0s
  |              ^^ more than 0s
"#);
    let shown = probe("ws", "  - every: 10s\n    broadcast: {topic: lobby, event: x}\n");
    insta::assert_snapshot!(shown, @r#"
error: `broadcast` sends one thing
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
  = help: known here: `text`, `json`

error: unknown key `event` in `broadcast`
 --> test.yaml:7:31
  |
7 |     broadcast: {topic: lobby, event: x}
  |                               ^^^^^ not known here
  |
  = help: known here: `text`, `json`
"#);
    let shown = probe("ws", "  every: 10s\n");
    insta::assert_snapshot!(shown, @r#"
error: `probe` is a list such as `- every: 10s`, with a `broadcast` in it
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
error: `probe` is a list of one
 --> test.yaml:7:5
  |
7 |   - {every: 2s, broadcast: {text: b}}
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ one probe is all of this version
"#);
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
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `ws://` targets have
"#);
}
