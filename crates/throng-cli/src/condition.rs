//! Conditions as flags: thresholds and regressions, whose mistakes are shown in the text.

use std::str::FromStr;

use throng_load::scenario::{Diagnostic, Diagnostics};
use throng_report::threshold::ThresholdError;

use crate::Failure;

/// Parses the value of `flag`.
///
/// # Errors
/// The text is no condition; the failure shows the place.
pub(crate) fn parse<T: FromStr<Err = ThresholdError>>(
    flag: &str,
    text: &str,
) -> Result<T, Failure> {
    text.parse().map_err(|error: ThresholdError| {
        let hint = error.hint();
        mistaken(flag, text, Diagnostic::new(error.span, error.problem, hint))
    })
}

/// Returns the failure that shows a mistake in the value of `flag`.
pub(crate) fn mistaken(flag: &str, text: &str, mistake: Diagnostic) -> Failure {
    let mistakes = Diagnostics::new(flag, text, vec![mistake]);
    Failure::mistakes(mistakes)
}
