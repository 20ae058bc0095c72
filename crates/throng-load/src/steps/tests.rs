use std::time::Duration;

use super::connect::Connect;
use super::expect::{Answer, Expect};
use super::of_user;
use super::send::{Send, SendPayload};
use crate::program::{BytesPattern, Frame, Matcher};
use crate::scenario::step::Action;
use crate::scenario::{Protocol, Scenario, Step, Template};

/// Reads the steps of a user of `protocol`, written as YAML.
fn steps(protocol: Protocol, user: &str) -> Vec<Step> {
    let scheme = protocol.scheme().as_str();
    let source = format!(
        "target: {scheme}://h:1\nprotocol: {}\nload: [ramp: {{to: 100, over: 1s}}]\nuser:\n{user}",
        protocol.name()
    );
    let scenario = Scenario::parse(&source, "test.yaml").unwrap_or_else(|wrong| panic!("{wrong}"));
    scenario.classes.into_iter().next().unwrap().steps
}

#[test]
fn every_form_of_sending_and_expecting_is_read() {
    let second = Duration::from_secs(1);
    let template = |text: &str| Template::parse(text).unwrap();
    let payload = |payload| Send { payload, reply: true };
    let send = |text: &str| payload(SendPayload::Template(template(text), Frame::Raw));
    let bytes = |bytes: &[u8]| {
        let bytes = Template::from_bytes(bytes.to_vec());
        payload(SendPayload::Template(bytes, Frame::Raw))
    };
    let within = |matcher, timeout| {
        let answer = Answer::Bytes(BytesPattern::new(matcher, Vec::new()));
        Expect { answer, timeout }
    };
    let expect = |matcher| within(matcher, 5 * second);
    let read = steps(
        Protocol::Tcp,
        "  - connect: {timeout: 1s}
  - send: hello ${user.id}
  - send: {text: \"a\\n\"}
  - send: {hex: de AD beef}
  - send: {hex: 00}
  - send: {random: 1KiB}
  - send: 17
  - expect: ok
  - expect: {text: \"$${\", timeout: 1s}
  - expect: {hex: 0d0a}
  - expect: {bytes: 4}
  - expect: {until: \"\\n\"}
",
    );
    let expected: [&dyn Action; 12] = [
        &Connect { timeout: second, upgrade: None },
        &send("hello ${user.id}"),
        &send("a\n"),
        &bytes(&[0xde, 0xad, 0xbe, 0xef]),
        &bytes(&[0]),
        &payload(SendPayload::Random(1_024)),
        &send("17"),
        &expect(Matcher::literal(template("ok"))),
        &within(Matcher::literal(template("$${")), second),
        &expect(Matcher::literal(template("\r\n"))),
        &expect(Matcher::bytes(4)),
        &expect(Matcher::until(template("\n"))),
    ];
    for (step, expected) in read.iter().zip(expected) {
        assert_eq!(format!("{:?}", step.action), format!("{expected:?}"));
    }
    assert_eq!(read.len(), expected.len());
}

#[test]
fn loops_and_the_ways_to_close_are_read() {
    let read = steps(
        Protocol::Tcp,
        "  - connect
  - every: {period: 1s, for: 1m, do: [send: a]}
  - repeat: {times: 1k, do: [send: a]}
  - repeat:
      for: 1m
      do:
        - close: half
        - close: reset
        - connect
  - close: normal
  - connect:
  - every: {rate: {from: 0/s, to: 10/s, over: 1m}, do: [send: a]}
",
    );
    let begin = |step: &Step| {
        let text = format!("{:?}", step.action);
        text.split(", steps").next().unwrap_or_default().to_owned()
    };
    let expected = [
        "Connect { timeout: 5s, upgrade: None }",
        "Every { pace: Period(1s), span: Some(60s)",
        "Repeat { until: Times(1000)",
        "Repeat { until: For(60s)",
        "Close(Normal)",
        "Connect { timeout: 5s, upgrade: None }",
        "Every { pace: Rate { from: 0.0, to: 10.0, over: 60s, curve: Linear }, span: None",
    ];
    assert_eq!(read.iter().map(begin).collect::<Vec<_>>(), expected);
    let ways = format!("{:?}", read[3].action);
    let ways: Vec<_> = ["Close(Half)", "Close(Reset)", "Connect"].map(|way| ways.find(way)).into();
    assert!(ways.is_sorted() && ways[0].is_some(), "{ways:?}");
}

#[test]
fn each_step_has_an_example_that_all_its_protocols_read() {
    for protocol in Protocol::ALL {
        for kind in of_user(*protocol).iter().copied().flatten() {
            let before = match kind.name {
                "connect" => "",
                "signal" => "  - wait_for: ready\n",
                "wait_for" => "  - signal: ready\n",
                name if name != "join" && kind.example.contains("topic") => {
                    "  - connect\n  - join: {topic: \"rooms:lobby\"}\n"
                }
                "get" | "head" | "post" | "put" | "patch" | "delete" | "options" => "",
                _ if protocol.opens_itself => "",
                _ => "  - connect\n",
            };
            let mut own = of_user(*protocol).iter().copied().flatten();
            let example = match own.any(|own| own.name == "send") {
                true => kind.example.to_owned(),
                false => kind.example.replace("send: ping", "wait: 1s"),
            };
            assert!(kind.example.starts_with(kind.name), "{}", kind.name);
            let read = steps(*protocol, &format!("{before}  - {example}\n"));
            assert_eq!(read.last().unwrap().name, kind.name);
        }
    }
}

#[test]
fn the_reference_has_an_example_of_each_step() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let text = std::fs::read_to_string(path).unwrap();
    let steps = |protocol: &Protocol| of_user(*protocol).iter().copied().flatten();
    for kind in Protocol::ALL.iter().flat_map(steps) {
        let in_table = format!("| `{}", kind.name);
        assert!(text.contains(&in_table), "{}: no row in docs/scenario.md", kind.name);
    }
}

#[test]
fn think_times_are_read() {
    let steps = "[connect, wait: 1s, wait: 'uniform(1s, 3s)', wait: exponential(2s), \
        wait: 'exponential( 2s , max 1m30s)', wait: 'lognormal(median 2s, p95 10s, max 1m)']";
    let source = format!("target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser: {steps}");
    let scenario = Scenario::parse(&source, "test").unwrap_or_else(|error| panic!("{error}"));
    let actions: Vec<_> =
        scenario.classes[0].steps.iter().map(|step| format!("{:?}", step.action)).collect();
    let expected = [
        "Wait { span: 1s, jitter: 0.0 }",
        "Wait { span: 2s, jitter: 0.5 }",
        "Think(ThinkTime { law: Exponential { mean: 2s }, most: None })",
        "Think(ThinkTime { law: Exponential { mean: 2s }, most: Some(90s) })",
        "Think(ThinkTime { law: LogNormal { median: 2s, p95: 10s }, most: Some(60s) })",
    ];
    assert_eq!(actions[1..], expected);
}
