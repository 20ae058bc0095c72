//! Functions fit a screen.

use std::fs;
use std::path::Path;

/// Lines of a function, from `fn` to its closing brace. A test may be longer: it is one story, or a
/// table of cases.
const LINES_MAX: usize = 80;

#[test]
fn no_function_is_longer_than_a_screen() {
    let mut long = Vec::new();
    for file in crate::sources().into_iter().filter(|file| !is_for_tests(file)) {
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for at in 0..code_lines(&lines) {
            let count = function_lines(&lines[at..]).unwrap_or_default();
            if count > LINES_MAX {
                let file = file.strip_prefix(crate::root()).unwrap().display();
                long.push(format!("{file}:{}: {count} lines", at + 1));
            }
        }
    }
    assert!(long.is_empty(), "functions of more than {LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn a_function_ends_at_the_brace_below_its_first_line() {
    let count = |text: &str| function_lines(&text.lines().collect::<Vec<_>>());
    assert_eq!(count("fn one() {\n    {\n    }\n}\n}"), Some(4));
    assert_eq!(count("    pub(crate) const fn two(\n        a: u8,\n    ) {\n    }"), Some(4));
    assert_eq!(count("    fn only_declared(\n        a: u8,\n    ) -> u8;\n}"), None);
    assert_eq!(count("    fn short() {}\n}"), None);
    assert_eq!(count("let no_function = 1;"), None);
}

/// Returns the length of the function that begins in the first line, if one does and has a body of
/// several lines.
fn function_lines(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let indent = &first[..first.len() - first.trim_start().len()];
    let mut words = first.trim_start().split([' ', '(']);
    let qualifiers = ["pub", "crate)", "super)", "const", "async", "unsafe"];
    if words.find(|word| !qualifiers.contains(word)) != Some("fn") || first.ends_with('}') {
        return None;
    }
    let of_function = |line: &&str| {
        let rest = line.strip_prefix(indent);
        rest.is_some_and(|rest| rest == "}" || (!rest.starts_with(' ') && rest.ends_with(';')))
    };
    let end = lines.iter().position(of_function)?;
    lines[end].ends_with('}').then_some(end + 1)
}

/// Returns the number of lines before a file's own tests.
fn code_lines(lines: &[&str]) -> usize {
    let begin_tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    };
    lines.windows(2).position(begin_tests).unwrap_or(lines.len())
}

fn is_for_tests(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs")
}
