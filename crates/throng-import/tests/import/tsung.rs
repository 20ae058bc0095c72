//! tsung's XML.

mod arrivals;
mod broken;
mod constructs;
mod file;
mod parts;
mod source;
mod variables;

use throng_load::program::Program;
use throng_load::scenario::{Phase, Scenario};
use throng_load::schedule::Arrivals;

use crate::{import_file, show};

#[test]
fn the_file_of_the_phoenix_article() {
    insta::assert_snapshot!(show(&import_file("tsung/phoenix.xml")));
}

#[test]
fn the_file_of_the_haskell_article() {
    insta::assert_snapshot!(show(&import_file("tsung/haskell.xml")));
}

#[test]
fn raw_sessions() {
    insta::assert_snapshot!(show(&import_file("tsung/raw.xml")));
}

#[test]
fn requests_of_http() {
    insta::assert_snapshot!(show(&import_file("tsung/shop.xml")));
}

/// The article's file and the scenario that a person writes for it are the same program, and give
/// the same arrivals.
#[test]
fn the_phoenix_article_by_hand() {
    let by_hand = r#"
target: ws://server_ip_address:4000/socket/websocket
load:
  - arrivals: {rate: 1000/s, for: 100s, most: 100_000}
  - hold: {for: 500m, until: done}
user:
  - connect: {timeout: 600s}
  - send:
      text: 'JOIN'
  - expect: {regex: ".*", timeout: 600s}
  - repeat:
      times: 1000
      do:
        - wait: 30s
on_error: stop
"#;
    let join = concat!(
        r#"{"topic":"rooms:lobby", "event":"phx_join", "#,
        r#""payload": {"user":"${user.id + 1}"}, "ref":"1"}"#,
    );
    let by_hand = Scenario::parse(&by_hand.replace("JOIN", join), "hand.yaml").unwrap();
    let imported = import_file("tsung/phoenix.xml").scenario;
    let imported = Scenario::parse(&imported, "imported.yaml").unwrap();
    let program = |scenario| format!("{:?}", Program::compile(scenario));
    // Lines of the steps differ.
    let without_lines = |text: String| {
        let digits = regex::Regex::new("(line|span|index|origin)[^,}]*").unwrap();
        digits.replace_all(&text, "").into_owned()
    };
    assert_eq!(without_lines(program(&by_hand)), without_lines(program(&imported)));
    assert_eq!(by_hand.target, imported.target);
    let moments = |load: &[Phase]| Arrivals::new(load, 0, 1, 1).collect::<Vec<_>>();
    assert_eq!(moments(by_hand.load.shared()), moments(imported.load.shared()));
    assert_eq!(Phase::length_of(by_hand.load.shared()), Phase::length_of(imported.load.shared()));
}

/// Each element of a file has its line in the report, except those that only hold others.
#[test]
fn each_element_is_reported() {
    let holders = ["tsung", "clients", "servers", "load", "options", "var", "user_agent"];
    for name in ["phoenix", "haskell", "raw", "shop"] {
        let path = format!("tsung/{name}.xml");
        let text = std::fs::read_to_string(crate::files().join(&path)).unwrap();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(&text, options).unwrap();
        let report = import_file(&path).fidelity;
        let elements = document.descendants().filter(|node| node.is_element());
        for element in elements.filter(|node| !holders.contains(&node.tag_name().name())) {
            let line = document.text_pos_at(element.range().start).row as usize;
            let name = element.tag_name().name();
            let is_reported = report
                .entries
                .iter()
                .any(|entry| entry.line == line && entry.construct.split(' ').next() == Some(name));
            // Of the addresses of a machine, one entry names all.
            assert!(is_reported || name == "ip", "{path}:{line}: `{name}`\n{report}");
        }
    }
}
