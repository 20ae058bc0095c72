//! What is printed is escaped where it is printed, so only few files may print.

use std::fs;

/// The files that print: one escapes all text, the other one each cell of a view.
const PRINTERS: &[&str] = &["throng-cli/src/output.rs", "throng-view/src/terminal/screen.rs"];

/// What prints, or leads to it.
const WAYS: &[&str] =
    &["stdout()", "stderr()", "stdout_raw", "stderr_raw", "print!(", "println!(", "dbg!("];

#[test]
fn only_the_files_that_escape_text_print() {
    let mut found = Vec::new();
    for file in crate::sources() {
        let path = file.display().to_string();
        let is_program = path.contains("/crates/") && path.contains("/src/");
        let is_tests = path.contains("/throng-sim/") || path.ends_with("/tests.rs");
        if !is_program || is_tests || PRINTERS.iter().any(|printer| path.ends_with(printer)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        // `output::stdout()` escapes.
        let lines = lines.filter(|line| {
            let line = line.replace("output::stdout()", "").replace("output::stderr()", "");
            WAYS.iter().any(|way| line.contains(way))
        });
        found.extend(lines.map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(found.is_empty(), "use `output` of throng-cli instead:\n{}", found.join("\n"));
}
