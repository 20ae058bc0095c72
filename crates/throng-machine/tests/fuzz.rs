//! No text makes a parser panic: `/proc` may be emulated (gVisor, lxcfs), and a later kernel may
//! write what this one does not.

use proptest::prelude::*;

/// The fuzz target of the same parsers.
#[allow(dead_code, unreachable_pub, reason = "it is a module of another crate")]
#[path = "../../../fuzz/src/procfs.rs"]
mod procfs;

use procfs::parse_with_all;

/// Returns the test configuration: a failing input is printed, and no file is kept beside the
/// tests.
fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

/// Returns real files, to be damaged.
fn recordings() -> Vec<String> {
    fn walk(dir: &std::path::Path, texts: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, texts);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                texts.push(text);
            }
        }
    }
    let mut texts = Vec::new();
    walk(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), &mut texts);
    assert!(texts.len() > 80, "{}", texts.len());
    texts
}

#[test]
fn random_text_never_panics() {
    proptest!(cases(512), |(text: String)| parse_with_all(&text));
    let like_proc = "[a-zA-Z:0-9 \\n\\t.,=()/\\\\-]{0,300}";
    proptest!(cases(512), |(text in like_proc)| parse_with_all(&text));
}

#[test]
fn a_damaged_recording_never_panics() {
    let recordings = recordings();
    let damage = (0..recordings.len(), any::<prop::sample::Index>(), ".{0,3}", any::<bool>());
    proptest!(cases(4096), |((which, at, put, cut) in damage)| {
        let chars: Vec<char> = recordings[which].chars().collect();
        let at = if chars.is_empty() { 0 } else { at.index(chars.len()) };
        let mut text: String = chars[..at].iter().collect();
        text.push_str(&put);
        if !cut {
            text.extend(&chars[(at + 1).min(chars.len())..]);
        }
        parse_with_all(&text);
    });
}

#[test]
fn huge_numbers_never_overflow() {
    for text in recordings() {
        let huge: String = text
            .split_inclusive(|c: char| !c.is_ascii_digit())
            .map(|piece| match piece.find(|c: char| !c.is_ascii_digit()) {
                Some(0) => piece.to_owned(),
                Some(end) => format!("{}{}", u64::MAX, &piece[end..]),
                None => u64::MAX.to_string(),
            })
            .collect();
        parse_with_all(&huge);
    }
}
