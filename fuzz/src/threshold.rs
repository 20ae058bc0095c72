//! A threshold.

use throng_report::{Summary, Threshold};

/// Checks that a threshold round-trips with the same grade, and that an error has a position in the
/// text.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Threshold>() {
        Ok(threshold) => {
            assert_eq!(threshold.to_string(), text.trim());
            let again: Threshold = threshold.to_string().parse().unwrap();
            let summary = Summary::default();
            let (one, other) = (threshold.judge(&summary), again.judge(&summary));
            assert_eq!((one.met, &one.measured), (other.met, &other.measured));
        }
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "{error:?} in {text:?}");
            assert!(!error.to_string().is_empty());
        }
    }
}
