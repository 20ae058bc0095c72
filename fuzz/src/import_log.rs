//! A log of another load generator, of any tool.

use throng_import::{LogImport, import_log};
use throng_measure::runfile::read;
use throng_report::Summary;

/// Checks that every mistake has a position in the text and a rendering, and that every run file
/// that an importer writes is whole and is not called valid.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match import_log(text, "fuzz", None) {
        Ok(LogImport { run_file, fidelity }) => {
            let run = read(&mut run_file.as_slice()).expect("an importer writes a run file");
            assert_eq!(run.lines_torn, 0);
            assert!(!Summary::of(&run).validity.reasons.is_empty());
            assert!(!fidelity.to_string().is_empty());
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
