//! Stressgrid's scripts, plans and commands.

mod constructs;
mod mistakes;
mod ramps;

use std::fs;
use std::path::Path;

use throng_import::{Import, ImportOptions, import};
use throng_load::program::Program;
use throng_load::scenario::Scenario;

use crate::{import_file, show};

#[test]
fn the_line_of_the_article() {
    insta::assert_snapshot!(show(&import_file("stressgrid/delay.exs")), @r#""#);
}

#[test]
fn a_script_with_its_command_in_a_comment() {
    insta::assert_snapshot!(show(&import_file("stressgrid/article.exs")), @r#""#);
}

#[test]
fn a_command() {
    insta::assert_snapshot!(show(&import_file("stressgrid/run.sh")), @r#""#);
}

#[test]
fn a_plan() {
    insta::assert_snapshot!(show(&import_file("stressgrid/plan.json")), @r#""#);
}

#[test]
fn requests() {
    insta::assert_snapshot!(show(&import_file("stressgrid/http.exs")), @r#""#);
}

#[test]
fn web_sockets() {
    insta::assert_snapshot!(show(&import_file("stressgrid/socket.exs")), @r#""#);
}

#[test]
fn plain_tcp() {
    insta::assert_snapshot!(show(&import_file("stressgrid/tcp.exs")), @r#""#);
}

#[test]
fn the_target_decides_the_protocol() {
    let notes = |text: &str, target: &str| match import_for(text, target) {
        Ok(import) => {
            let steps = import.scenario.split_once("user:\n").unwrap().1.to_owned();
            format!("{steps}{}", import.fidelity)
        }
        Err(mistakes) => mistakes.to_string(),
    };
    let shown = [
        notes("delay(1000, 0.1)\n", "tcp://127.0.0.1:5555"),
        notes("delay(1000, 0.1)\n", "http://127.0.0.1:5555"),
        notes("delay(1000, 0.1)\nget(\"/\")\n", "tcp://127.0.0.1:5555"),
        notes("ws_upgrade(\"/x\")\ndelay(1000)\n", "http://127.0.0.1:5555"),
    ];
    insta::assert_snapshot!(shown.join("\n\n"), @r#""#);
}

fn import_for(text: &str, target: &str) -> Result<Import, throng_load::scenario::Diagnostics> {
    let options = ImportOptions { target: Some(target.parse().unwrap()) };
    import(text, "script.exs", &options)
}

/// The lab was written by hand from the article.
#[test]
fn the_article_is_the_lab() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/stressgrid-100k.yaml");
    let lab = parse(&fs::read_to_string(lab).unwrap());
    let import = parse(&import_file("stressgrid/article.exs").scenario);
    assert_eq!(lab.load, import.load);
    let [lab_ops, import_ops] =
        [&lab, &import].map(|scenario| format!("{:?}", Program::compile(scenario).ops()));
    assert_eq!(lab_ops, import_ops);
    assert_eq!(lab.classes[0].on_error, import.classes[0].on_error);
}

fn parse(scenario: &str) -> Scenario {
    Scenario::parse(scenario, "import.yaml").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}
