//! The choices of an import.

use throng_load::scenario::Target;

/// What the caller of an import may choose.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The scenario's target, in place of the one that the source names.
    pub target: Option<Target>,
}
