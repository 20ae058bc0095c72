//! Every input of the corpus of long-poll sessions, and some random ones, through the body of their
//! fuzz target.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use throng_base::Prng;

use super::longpoll_session::check;

#[test]
fn every_session_of_the_corpus_is_survived() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/longpoll_session");
    let inputs: Vec<_> = fs::read_dir(Path::new(corpus)).unwrap().map(Result::unwrap).collect();
    assert!(inputs.len() >= 5, "{} inputs only", inputs.len());
    let fails = |input: &fs::DirEntry| {
        let bytes = fs::read(input.path()).unwrap();
        catch_unwind(|| check(&bytes)).is_err()
    };
    let failed: Vec<_> =
        inputs.iter().filter(|input| fails(input)).map(fs::DirEntry::path).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn random_sessions_are_survived_too() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let bytes: Vec<u8> = (0..prng.between(20, 200)).map(|_| prng.bits() as u8).collect();
        if catch_unwind(|| check(&bytes)).is_err() {
            panic!("seed {seed}: {bytes:?}");
        }
    }
}
