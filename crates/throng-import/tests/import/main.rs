//! Files of other tools, and the scenarios that the importers write.
//!
//! Each importer has a module here, and a folder of files under `files`.

mod connscale;
mod damaged;
mod mzbench;
mod stressgrid;
mod tcpkali;
mod tsung;

use std::fs;
use std::path::{Path, PathBuf};

use throng_import::{Import, ImportOptions, import};
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
    let import = import(text, name, &ImportOptions::default())?;
    let path = files().join(name);
    if let Err(mistakes) = Scenario::parse(&import.scenario, &path.to_string_lossy())
        // A damaged name of a data file is that of no file.
        && !mistakes.iter().any(|mistake| mistake.title.starts_with("cannot use"))
    {
        panic!("throng refuses an imported scenario:\n{mistakes}\n{}", import.scenario);
    }
    Ok(import)
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
