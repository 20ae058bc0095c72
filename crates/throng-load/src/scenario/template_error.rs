//! A mistake in a template.

use std::ops::Range;

/// Error in a template, with the bytes at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Bytes at fault.
    pub span: Range<usize>,
    /// Description of the error.
    pub title: String,
    /// Expected text or suggestion.
    pub label: String,
}
