//! A file of another load generator, of any tool.

use throng_import::{ImportOptions, import};
use throng_load::scenario::Scenario;

/// Checks that every mistake has a position in the text and a rendering, and that throng accepts
/// every scenario that an importer writes, but for data files, which are not here.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match import(text, "fuzz", &ImportOptions::default()) {
        Ok(import) => {
            if let Err(mistakes) = Scenario::parse(&import.scenario, "fuzz.yaml") {
                let is_of_file = |title: &str| title.starts_with("cannot use");
                let of_file = mistakes.iter().any(|mistake| is_of_file(&mistake.title));
                assert!(of_file, "{mistakes}\n{}", import.scenario);
            }
            assert!(!import.fidelity.to_string().is_empty());
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
