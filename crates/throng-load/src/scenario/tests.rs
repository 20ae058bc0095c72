use std::time::Duration;

use super::*;
use crate::program::Program;

mod mistakes;
mod schema;

fn parse(source: &str) -> Scenario {
    Scenario::parse(source, "test.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}"))
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
        Phase::Ramp { to: 100_000, over: minutes(15), curve: Curve::Linear },
        Phase::Hold { span: minutes(1), until_done: false },
        Phase::Ramp { to: 0, over: minutes(15), curve: Curve::Linear },
    ];
    assert_eq!(scenario.load.shared(), load);
    assert_eq!(scenario.load.model(), Model::Closed);
    let [class] = &scenario.classes[..] else { panic!("one class") };
    assert_eq!((class.name.as_str(), class.weight, class.on_error), ("user", 1, OnError::Restart));
    let actions: Vec<_> = class.steps.iter().map(|step| format!("{:?}", step.action)).collect();
    let expected = [
        "Connect { timeout: 5s, upgrade: None }",
        "Wait { span: 1s, jitter: 0.1 }",
        "Close(Normal)",
    ];
    assert_eq!(actions, expected);
    let thresholds: Vec<_> = scenario.thresholds.iter().map(Threshold::text).collect();
    assert_eq!(thresholds, ["connect.p99 < 100ms", "errors < 0.01%"]);
}

#[test]
fn stairs_spikes_and_loops_are_written_out() {
    let load = |load: &str| {
        let load = parse(&format!("target: tcp://h:1\nload: {load}\nuser: [connect]")).load;
        load.pieces().into_iter().map(|piece| piece.name).collect::<Vec<_>>()
    };
    let stairs = "[steps: {from: 100, to: 350, by: 100, each: 30s}, \
        steps: {from: 300, to: 0, count: 3, each: 1m}]";
    let users = ["100", "200", "300", "350"].map(|users| format!("{users} users for 30s"));
    let down = ["300", "150", "0"].map(|users| format!("{users} users for 1m"));
    assert_eq!(load(stairs), [&users[..], &down[..]].concat());
    let rates = "[steps: {from: 0.1/s, to: 0.3/s, by: 0.1/s, each: 30s, spacing: even}, \
        spike: {to: 5/s, over: 1s, for: 2s}, steps: {from: 30/s, to: 10/s, count: 2, each: 1s}]";
    let expected = [
        "arrivals 0.1/s",
        "arrivals 0.2/s",
        "arrivals 0.3/s",
        "arrivals 0.3/s to 5/s",
        "arrivals 5/s",
        "arrivals 5/s to 0.3/s",
        "arrivals 30/s",
        "arrivals 10/s",
    ];
    assert_eq!(load(rates), expected);
    let nested = "[loop: {times: 2, do: [ramp: {to: 10, over: 1s, curve: exponential}, \
        loop: {times: 2, do: [spike: {to: 1k, over: 1s, for: 5s}, hold: {for: 2s}]}, \
        ramp: {to: 0, over: 3s}]}]";
    let load = parse(&format!("target: tcp://h:1\nload: {nested}\nuser: [connect]")).load;
    let phases = load.shared();
    assert_eq!(phases.len(), 12);
    let spike = Phase::Spike {
        to: 1_000,
        back: 10,
        over: Duration::from_secs(1),
        span: Duration::from_secs(5),
    };
    assert_eq!([&phases[1], &phases[3], &phases[7]], [&spike; 3]);
    assert_eq!(load.length(), Duration::from_secs(2 * (1 + 2 * 9 + 3)));
    assert_eq!(
        load.outline(),
        "2 x (exponential ramp to 10 over 1s, spike to 1k for 5s, hold for 2s, spike to 1k for \
         5s, hold for 2s, ramp to 0 over 3s)"
    );
    let many = parse(
        "target: tcp://h:1\nload: [steps: {from: 1, to: 100, by: 1, each: 1s}]\nuser: [connect]",
    );
    let shown = many.load.outline();
    assert!(shown.starts_with("1 user for 1s, 2 users for 1s"), "{shown}");
    assert!(shown.ends_with("10 users for 1s, … 89 more …, 100 users for 1s"), "{shown}");
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
            let source = std::fs::read_to_string(file).unwrap();
            check_is_clean(&source, &name);
        }
    }
}

#[test]
fn arrivals_are_read_with_their_defaults() {
    let load = |load: &str| {
        let scenario = parse(&format!("target: tcp://h:1\nload:\n{load}\nuser: [connect]"));
        scenario.load.shared().to_vec()
    };
    let span = Duration::from_secs(100);
    assert_eq!(
        load("  - arrivals: {rate: 1000/s, for: 100s, most: 100k}"),
        [Phase::Arrivals {
            from: 1_000.0,
            to: 1_000.0,
            curve: Curve::Linear,
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
            Phase::Arrivals {
                from: 0.0,
                to: 1.0,
                curve: Curve::Linear,
                span,
                most: None,
                spacing: Spacing::Even
            },
            Phase::Hold { span, until_done: false }
        ]
    );
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
    let [a, b] = [0, 1].map(|class| format!("{:?}", scenario.classes[class].steps));
    assert_eq!(a, b);
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
    let folder = tempfile::TempDir::new().unwrap();
    let row = |user| format!("ann {user},t{user},test-ca.pem,test-ca.key\n");
    let rows: String = (0..1_000).map(row).collect();
    let table = format!("name,token,cert,key\n{rows}");
    std::fs::write(folder.path().join("users.csv"), table).unwrap();
    let authority = throng_tls::SelfSigned::new(&["chat.example".to_owned()]).unwrap();
    std::fs::write(folder.path().join("test-ca.pem"), authority.pair.chain.text()).unwrap();
    std::fs::write(folder.path().join("test-ca.key"), authority.pair.key.text()).unwrap();
    std::fs::write(folder.path().join("urls.txt"), "/items/1?x=2&name=a%20b\n").unwrap();
    std::fs::write(folder.path().join("devices.txt"), "4711;secret\n").unwrap();
    std::fs::write(folder.path().join("times.csv"), "user,begin\nann,0\nbob,2.5\n").unwrap();
    let name = folder.path().join("scenario.yaml").display().to_string();
    for example in examples {
        let (source, _) = example.split_once("```").expect("the block is closed");
        match source.contains("verify: none") {
            true => drop(Scenario::parse(source, &name).unwrap_or_else(|error| panic!("{error}"))),
            false => check_is_clean(source, &name),
        }
    }
}

/// Checks that a scenario has no mistake, and that nothing in it is warned of.
#[track_caller]
fn check_is_clean(source: &str, name: &str) {
    let scenario = Scenario::parse(source, name).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let warnings = Program::compile(&scenario).warnings(name, source);
    assert!(warnings.is_empty(), "{warnings}");
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

#[test]
fn a_document_has_at_most_a_million_values() {
    let list = |values: usize| node::Node::parse(&format!("[{}]", "a,".repeat(values)));
    assert!(list(900_000).is_ok(), "an import of 15,000 requests with 20 headers each");
    let mistake = list(1_000_000).unwrap_err();
    assert!(format!("{mistake:?}").contains("at most a million values"), "{mistake:?}");
}
