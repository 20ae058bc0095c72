//! Files of other tools, and the scenarios that the importers write.
//!
//! Each importer has a module here, and a folder of files under `files`.

/// Checks what each text becomes: `check_each! { check: "text" => "line of the scenario"; }`.
macro_rules! check_each {
    ($check:ident: $( $text:expr => $($line:expr),+; )+) => {
        $( $check($text, &[$($line),+]); )+
    };
}

mod artillery;
mod connscale;
mod damaged;
mod expansion;
mod k6;
mod logs;
mod mzbench;
mod stressgrid;
mod tcpkali;
mod tsung;

use std::fs;
use std::path::{Path, PathBuf};

use throng_import::{Import, ImportOptions, import};
use throng_load::program::Program;
use throng_load::scenario::{Diagnostics, Scenario};

/// Imports a file of `files`, which must be valid. Checks that throng accepts the scenario.
fn import_file(path: &str) -> Import {
    let text = fs::read_to_string(files().join(path)).unwrap();
    match import_text(&text, path) {
        Ok(import) => import,
        Err(mistakes) => panic!("{mistakes}"),
    }
}

/// Imports a text. If it is valid, throng must accept the scenario.
fn import_text(text: &str, name: &str) -> Result<Import, Diagnostics> {
    import_with(text, name, &ImportOptions::default())
}

/// Imports a text with these options. If it is valid, throng must accept the scenario.
fn import_with(text: &str, name: &str, options: &ImportOptions) -> Result<Import, Diagnostics> {
    let import = import(text, name, options)?;
    let path = files().join(name);
    if let Err(mistakes) = Scenario::parse(&import.scenario, &path.to_string_lossy())
        // A damaged name of a data file is that of no file.
        && !mistakes.iter().any(|mistake| mistake.title.starts_with("cannot use"))
    {
        panic!("throng refuses an imported scenario:\n{mistakes}\n{}", import.scenario);
    }
    Ok(import)
}

/// Checks that the scenario has these lines, and all that the text describes.
fn check_lines(import: &Import, text: &str, expected: &[&str]) {
    let bare = |line: &str| line.trim().replace(['"', '\''], "");
    for line in expected {
        let has_it = import.scenario.lines().any(|written| bare(written) == bare(line));
        assert!(has_it, "{text}\n{line} is not in\n{}", import.scenario);
    }
    assert!(!import.fidelity.is_partial(), "{text}\n{}", import.fidelity);
}

/// Shows what a person sees of an import.
fn show(import: &Import) -> String {
    format!("{}\n{}", import.scenario, import.fidelity)
}

/// Shows the mistakes of each of these files.
fn show_mistakes(name: &str, files: &[&str]) -> String {
    let show = |text: &&str| match import_text(text, name) {
        Ok(import) => panic!("this file has no mistake:\n{text}\n{}", import.scenario),
        Err(mistakes) => mistakes.to_string(),
    };
    files.iter().map(show).collect::<Vec<_>>().join("\n\n")
}

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/files")
}

/// Checks that an import does the same as a scenario that a person has written: the same target,
/// load, thresholds and compiled steps. Only the places of steps in the text may differ.
fn assert_same(import: &Import, written: &str) {
    let compiled = |text: &str| {
        let scenario = Scenario::parse(text, "scenario.yaml").unwrap_or_else(|m| panic!("{m}"));
        let program = format!("{:#?}", Program::compile(&scenario));
        let is_place = |line: &&str| ["line:", "span:"].iter().any(|key| line.contains(key));
        let program: Vec<_> = program.lines().filter(|line| !is_place(line)).collect();
        let rest = (&scenario.target, &scenario.load, &scenario.thresholds);
        format!("{rest:#?}\n{}", program.join("\n"))
    };
    let (imported, written) = (compiled(&import.scenario), compiled(written));
    for (number, (ours, theirs)) in imported.lines().zip(written.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {number} of the program\n{}", import.scenario);
    }
    assert_eq!(imported.len(), written.len());
}
