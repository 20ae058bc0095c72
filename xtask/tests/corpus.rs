//! Every input of `fuzz/corpus/`, run through its fuzz target.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

#[allow(unreachable_pub, reason = "it is the library of another crate")]
#[path = "../../fuzz/src/lib.rs"]
mod targets;

#[test]
fn every_input_of_the_corpus_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut failed = Vec::new();
    for (name, check) in targets::TARGETS {
        let inputs: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(Result::unwrap).collect();
        assert!(inputs.len() >= 5, "{name} has {} inputs only", inputs.len());
        for input in inputs {
            let bytes = fs::read(input.path()).unwrap();
            if catch_unwind(|| check(&bytes)).is_err() {
                failed.push(input.path());
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for folder in fs::read_dir(corpus).unwrap() {
        let name = folder.unwrap().file_name();
        let names = targets::TARGETS.iter().map(|(target, _)| *target).chain(targets::ELSEWHERE);
        assert!(names.into_iter().any(|target| name == *target), "{name:?}");
    }
}
