//! A scenario with its thresholds and its target.

use throng_load::program::Program;
use throng_load::scenario::Scenario;

/// Checks that every mistake has a position in the text and a rendering, and that a scenario
/// without mistakes compiles.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Scenario::parse(text, "fuzz.yaml") {
        Ok(scenario) => {
            assert!(scenario.load.lanes().count() > 0 && !scenario.classes.is_empty());
            let program = Program::compile(&scenario);
            assert_eq!(program.classes().len(), scenario.classes.len());
        }
        Err(mistakes) => {
            assert!(mistakes.iter().count() > 0);
            for mistake in mistakes.iter() {
                assert!(text.get(mistake.span.clone()).is_some(), "{mistake:?} in {text:?}");
            }
            assert!(!mistakes.render(false).is_empty());
        }
    }
}
