use std::time::Duration;

use super::*;

mod mistakes;

fn parse(source: &str) -> Scenario {
    Scenario::parse(source, "test.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Reads the steps of a user, written as YAML.
fn steps(user: &str) -> Vec<Action> {
    let source = format!("target: tcp://h:1\nload: [ramp: {{to: 1, over: 1s}}]\nuser:\n{user}");
    parse(&source).classes.remove(0).steps.into_iter().map(|step| step.action).collect()
}

#[test]
fn the_first_example_is_read_whole() {
    let scenario = parse(
        "# Stressgrid's article
target: tcp://127.0.0.1:5555
load:
  - ramp: {to: 100k, over: 15m}
  - hold: {for: 1m}
  - ramp: {to: 0, over: 15m}
user:
  - connect
  - wait: 1s ±10%
  - close
thresholds:
  - connect.p99 < 100ms
  - errors < 0.01%
",
    );
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    assert_eq!(scenario.target.to_string(), "tcp://127.0.0.1:5555");
    let load = [
        Phase::Ramp { to: 100_000, over: minutes(15) },
        Phase::Hold { span: minutes(1) },
        Phase::Ramp { to: 0, over: minutes(15) },
    ];
    assert_eq!(scenario.load, load);
    assert_eq!(Model::of(&scenario.load), Model::Closed);
    let [class] = &scenario.classes[..] else { panic!("one class") };
    assert_eq!((class.name.as_str(), class.weight, class.on_error), ("user", 1, OnError::Restart));
    let actions: Vec<_> = class.steps.iter().map(|step| step.action.clone()).collect();
    let expected = [
        Action::Connect { timeout: Duration::from_secs(5), upgrade: None },
        Action::Wait { span: Duration::from_secs(1), jitter: 0.1 },
        Action::Close(CloseAction::Normal),
    ];
    assert_eq!(actions, expected);
    let thresholds: Vec<_> = scenario.thresholds.iter().map(Threshold::text).collect();
    assert_eq!(thresholds, ["connect.p99 < 100ms", "errors < 0.01%"]);
}

#[test]
fn every_bundled_example_and_lab_is_read() {
    for folder in ["examples", "labs"] {
        let folder = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
        let files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 3, "{folder}");
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "yaml")) {
            let name = file.display().to_string();
            Scenario::parse(&std::fs::read_to_string(file).unwrap(), &name)
                .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        }
    }
}

#[test]
fn arrivals_are_read_with_their_defaults() {
    let load =
        |load: &str| parse(&format!("target: tcp://h:1\nload:\n{load}\nuser: [connect]")).load;
    let span = Duration::from_secs(100);
    assert_eq!(
        load("  - arrivals: {rate: 1000/s, for: 100s, most: 100k}"),
        [Phase::Arrivals {
            from: 1_000.0,
            to: 1_000.0,
            span,
            most: Some(100_000),
            spacing: Spacing::Poisson
        }]
    );
    assert_eq!(
        load(
            "  - arrivals: {rate: {from: 0/s, to: 60/m}, for: 100s, \
             spacing: even}\n  - hold: {for: 100s}"
        ),
        [
            Phase::Arrivals { from: 0.0, to: 1.0, span, most: None, spacing: Spacing::Even },
            Phase::Hold { span }
        ]
    );
}

#[test]
fn every_form_of_sending_and_expecting_is_read() {
    let second = Duration::from_secs(1);
    let send = |text: &str| Action::Send(SendPayload::Template(Template::parse(text).unwrap()));
    let bytes =
        |bytes: &[u8]| Action::Send(SendPayload::Template(Template::from_bytes(bytes.to_vec())));
    let expect = |expected| Action::ExpectBytes { expected, timeout: EXPECT_TIMEOUT_DEFAULT };
    let actions = steps(
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
    let expected = [
        Action::Connect { timeout: second, upgrade: None },
        send("hello ${user.id}"),
        send("a\n"),
        bytes(&[0xde, 0xad, 0xbe, 0xef]),
        bytes(&[0]),
        Action::Send(SendPayload::Random(1_024)),
        send("17"),
        expect(Expectation::Literal(b"ok".to_vec())),
        Action::ExpectBytes { expected: Expectation::Literal(b"${".to_vec()), timeout: second },
        expect(Expectation::Literal(b"\r\n".to_vec())),
        expect(Expectation::Bytes(4)),
        expect(Expectation::Until(b"\n".to_vec())),
    ];
    assert_eq!(actions, expected);
}

#[test]
fn loops_and_the_ways_to_close_are_read() {
    let actions = steps(
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
    let kinds: Vec<_> = actions
        .iter()
        .map(|action| match action {
            Action::Every { pace, span, .. } => format!("{pace:?} {span:?}"),
            Action::Repeat { until, steps } => format!("{until:?} {}", steps.len()),
            Action::Close(how) => format!("{how:?}"),
            Action::Connect { .. } => "connect".to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        "connect",
        "Period(1s) Some(60s)",
        "Times(1000) 1",
        "For(60s) 3",
        "Normal",
        "connect",
        "Rate { from: 0.0, to: 10.0, over: 60s } None",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn classes_keep_their_order_their_weights_and_what_they_do_after_an_error() {
    let scenario = parse(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
users:
  talker: {weight: 3, on_error: continue, user: [connect, send: x]}
  listener: {user: [connect, stay], on_error: stop}
",
    );
    let classes: Vec<_> =
        scenario.classes.iter().map(|c| (c.name.as_str(), c.weight, c.on_error)).collect();
    assert_eq!(classes, [("talker", 3, OnError::Continue), ("listener", 1, OnError::Stop)]);
}

#[test]
fn anchors_and_aliases_of_yaml_work() {
    let scenario = parse(
        "target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
users:
  a: {user: &steps [connect, wait: 1s, close]}
  b: {user: *steps, on_error: stop}
",
    );
    assert_eq!(scenario.classes[0].steps, scenario.classes[1].steps);
}

#[test]
fn the_bundled_experiments_are_scenarios() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let source = std::fs::read_to_string(&path).unwrap();
            Scenario::parse(&source, &path.to_string_lossy())
                .unwrap_or_else(|mistakes| panic!("{mistakes}"));
            names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    for lab in ["connscale", "fast-connect", "fast-receive", "stressgrid-100k"] {
        assert!(names.iter().any(|name| name == lab), "{lab} is not among {names:?}");
    }
}

#[test]
fn the_examples_of_the_reference_are_scenarios() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let text = std::fs::read_to_string(path).unwrap();
    let examples: Vec<_> = text.split("```yaml\n").skip(1).collect();
    assert!(examples.len() >= 4, "{} examples", examples.len());
    for example in examples {
        let (source, _) = example.split_once("```").expect("the block is closed");
        Scenario::parse(source, "docs/scenario.md").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    }
}

proptest::proptest! {
    /// Reading any text ends with a scenario or with mistakes that can be shown.
    #[test]
    fn no_text_breaks_the_reader(text in "[a-z:{}\\[\\], \n\"'$&*#%±é-]{0,60}") {
        if let Err(mistakes) = Scenario::parse(&text, "test.yaml") {
            assert!(mistakes.iter().count() > 0);
            assert!(mistakes.render(false).contains("test.yaml"), "{text:?}");
        }
    }

    /// Reading a scenario in which a part has been replaced ends in the same way.
    #[test]
    fn no_damage_to_a_scenario_breaks_the_reader(
        at in 0usize..400, length in 0usize..12, patch in "[a-z0-9:{}\\[\\], \n\"$±-]{0,8}",
    ) {
        let mut text: Vec<char> = include_str!("../../../../labs/fast-receive.yaml")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect::<Vec<_>>()
            .join("\n")
            .chars()
            .collect();
        let at = at.min(text.len());
        let end = (at + length).min(text.len());
        text.splice(at..end, patch.chars());
        let text: String = text.into_iter().collect();
        if let Err(mistakes) = Scenario::parse(&text, "test.yaml") {
            assert!(mistakes.render(false).contains("test.yaml"), "{text}");
        }
    }
}
