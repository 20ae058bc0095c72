//! The names of errors that a threshold may compare.

use throng_measure::error_kind::NO_CODE;
use throng_measure::{ErrorKey, ErrorKind};

/// Returns the kinds of errors of a summary by name. Close codes are not among them.
pub(super) fn error_kinds() -> impl Iterator<Item = &'static str> {
    [ErrorKind::Connect].into_iter().chain(ErrorKind::OF_USERS).map(ErrorKind::name)
}

/// Reports whether a summary may count errors by this name: that of a kind, or of a close frame
/// with its code.
pub(super) fn is_error_kind(name: &str) -> bool {
    let code = ErrorKey::parse(name).value_of(ErrorKind::CloseFrame);
    let is_code = |code: &str| code == NO_CODE || code.len() == 4;
    code.is_some_and(is_code) || error_kinds().any(|kind| kind == name)
}
