//! Scenarios with one mistake each, as users make them, in `tests/broken`. What the screen shows of
//! each is the text file beside it. `THRONG_WRITE_BROKEN=1` writes these files again.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use throng_load::scenario::Scenario;

#[test]
fn each_broken_scenario_is_refused_with_its_line_a_caret_and_a_way_out() {
    // Tests run in the folder of their crate.
    let scenarios = scenarios(Path::new("tests/broken"));
    assert!(scenarios.len() >= SCENARIOS_MIN, "{} scenarios", scenarios.len());
    let mut differences = String::new();
    for path in &scenarios {
        let shown = shown(path);
        check_form(path, &shown);
        let expected = path.with_extension("txt");
        if std::env::var_os("THRONG_WRITE_BROKEN").is_some() {
            fs::write(&expected, &shown).expect("the folder can be written");
        }
        let known = fs::read_to_string(&expected).unwrap_or_default();
        if known != shown {
            let _ = writeln!(differences, "{}:\n{known}---\n{shown}", path.display());
        }
    }
    assert!(differences.is_empty(), "shown otherwise than in the text files:\n{differences}");
}

/// Returns the scenarios of a folder, sorted.
fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension() == Some(OsStr::new("yaml"))).collect();
    paths.sort();
    paths
}

/// Returns what the screen shows of a scenario.
fn shown(path: &Path) -> String {
    let source = fs::read_to_string(path).expect("a scenario can be read");
    let name = path.to_string_lossy();
    match Scenario::parse(&source, &name) {
        Ok(_) => panic!("{name} is a good scenario"),
        Err(mistakes) => mistakes.render(false) + "\n",
    }
}

/// Checks that each mistake has a place, and a word at its caret or below it.
fn check_form(path: &Path, shown: &str) {
    let name = path.to_string_lossy();
    assert!(shown.starts_with("error: "), "{name}: {shown}");
    for mistake in shown.split("\nerror: ") {
        assert!(mistake.contains(&format!("--> {name}:")), "{name}: no place in {mistake}");
        let caret = mistake.lines().find(|line| {
            line.split_once('|').is_some_and(|(_, line)| line.trim_start().starts_with('^'))
        });
        let caret = caret.unwrap_or_else(|| panic!("{name}: no caret in {mistake}"));
        let words = caret.trim_end_matches(|c: char| c != '^').len();
        let has_way_out = caret.len() > words + 3 || mistake.contains("= help: ");
        assert!(has_way_out, "{name}: no way out in {mistake}");
    }
}

/// Number of scenarios that the folder has at least.
const SCENARIOS_MIN: usize = 60;
