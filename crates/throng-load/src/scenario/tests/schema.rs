//! The JSON Schema for editors, which names the keys that the reader knows. That all examples are
//! valid by it, and misspelled ones are not, is tested with a validator among the clients of
//! `throng-cli`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;

/// Returns the examples of the reference.
fn examples() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let docs = fs::read_to_string(path).expect("it can be read");
    let examples = docs.split("```yaml\n").skip(1);
    examples.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The keys of each mapping of the scenarios that the documentation, the examples and the suite of
/// broken scenarios have.
fn mappings() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = examples();
    for folder in ["examples", "crates/throng-load/tests/broken"] {
        for file in fs::read_dir(root.join(folder)).expect("the folder exists") {
            let path = file.expect("it can be read").path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                sources.push(fs::read_to_string(path).expect("it can be read"));
            }
        }
    }
    sources.extend(OTHERS.map(str::to_owned));
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    for source in &sources {
        let _ = parse_with(source, "test.yaml", |reader, root| {
            let scenario = read(reader, root, Path::new(""), None);
            for (what, keys) in std::mem::take(&mut reader.mappings) {
                all.entry(what).or_default().extend(keys);
            }
            scenario
        });
    }
    all
}

/// Mappings that no example has.
const OTHERS: [&str; 3] = [
    "
target: ws://h:1/
protocol: phoenix
load: [arrivals: {rate: {from: 1/s, to: 2/s}, for: 1s}]
data: {users: {file: a.csv}}
users:
  people:
    user:
      - connect
      - join: {topic: a}
      - every: {rate: {from: 1/s, to: 2/s, over: 1s}, do: [push: {topic: a, event: b}]}
      - leave: {topic: a}
",
    "
target: tcp://h:1
load: [ramp: {to: 1, over: 1s}]
user: [connect, receive: {until: a}, send: {hex: aa}]
",
    "
target: ws://h:1/
load: [ramp: {to: 1, over: 1s}]
user: [connect, pong: {text: a}, expect: {one_of: [text: a, text: b], capture: {b: {regex: c}}}]
",
];

/// Returns the definition of a mapping. There are two of the name `rate`, one of a name of its own
/// for each class.
fn definition(what: &str, keys: &BTreeSet<String>) -> String {
    match what.replace('`', "").as_str() {
        "steps" => "stairs".to_owned(),
        "rate" if keys.contains("over") => "turn-rate".to_owned(),
        "a list of choose" => "a-choice".to_owned(),
        class if class.starts_with("the class ") => "a-class".to_owned(),
        what => what.replace(' ', "-"),
    }
}

#[test]
fn the_schema_has_the_keys_of_the_reader_and_no_others() {
    let schema: Value = serde_json::from_str(Scenario::SCHEMA).expect("it is JSON");
    let definitions = schema["definitions"].as_object().expect("it has definitions");
    let mut seen = BTreeSet::new();
    for (what, keys) in mappings() {
        let name = definition(&what, &keys);
        let Some(known) = definitions.get(&name).and_then(|it| it["properties"].as_object()) else {
            panic!("the schema has no definition `{name}` for {what}, with the keys {keys:?}");
        };
        // A `when` is taken out before a mapping is read.
        let known: BTreeSet<_> = known.keys().filter(|key| *key != "when").cloned().collect();
        assert_eq!(known, keys, "{what}");
        seen.insert(name);
    }
    // The `rate` of arrivals has the keys of that of turns, but lasts as long as its phase.
    let arrivals = definitions["arrival-rate"]["properties"].as_object().expect("it has keys");
    let turns = definitions["turn-rate"]["properties"].as_object().expect("it has keys");
    let shared = turns.keys().filter(|key| *key != "over");
    assert!(arrivals.keys().eq(shared), "{arrivals:?}");
    seen.insert("arrival-rate".to_owned());
    let mappings = definitions.iter().filter(|(_, it)| it.get("properties").is_some());
    let unseen: Vec<_> = mappings.filter(|(name, _)| !seen.contains(*name)).collect();
    assert!(unseen.is_empty(), "no scenario has {unseen:#?}");
}

#[test]
fn the_schema_has_all_steps_and_no_others() {
    let schema: Value = serde_json::from_str(Scenario::SCHEMA).expect("it is JSON");
    let step = &schema["definitions"]["step"]["oneOf"][1]["properties"];
    let known: BTreeSet<_> = step.as_object().expect("it has properties").keys().cloned().collect();
    let kinds = Protocol::ALL.iter().flat_map(|it| of_user(*it).iter().copied().flatten());
    let kinds: BTreeSet<_> =
        kinds.map(|kind| kind.name.to_owned()).chain(["when".to_owned()]).collect();
    assert_eq!(known, kinds);
}

#[test]
fn the_reference_has_an_example_of_each_key() {
    let schema: Value = serde_json::from_str(Scenario::SCHEMA).expect("it is JSON");
    let definitions = schema["definitions"].as_object().expect("it has definitions");
    let keys = definitions.values().filter_map(|it| it["properties"].as_object());
    let examples = examples().concat();
    let has_example = |key: &str| {
        let written = [format!("{key}:"), format!("- {key}\n"), format!("[{key},")];
        written.iter().any(|written| {
            let mut places = examples.match_indices(written.as_str());
            places.any(|(at, _)| {
                let before = examples[..at].chars().next_back();
                !before.is_some_and(|before| before.is_alphanumeric() || before == '_')
            })
        })
    };
    // The reference of labs has that of `lab`.
    let missing: BTreeSet<_> = keys
        .flat_map(|keys| keys.keys())
        .filter(|key| *key != "lab" && !has_example(key))
        .collect();
    assert!(missing.is_empty(), "docs/scenario.md has no example of {missing:?}");
}
