//! How many may be present, and what may be told of each.

/// The bounds of presence. Beyond each of them nothing is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceLimits {
    /// Members of a topic, as its cores know them: cores that track at the same moment may exceed
    /// it by what is on its way between them. Every member is told to all others. Default 10,000.
    pub members_max: usize,
    /// Bytes of a key. Every core keeps it for as long as its member is present. Default 1 KiB.
    pub key_bytes_max: usize,
    /// Bytes of a meta, which is kept and told as its key is. Default 1 KiB.
    pub meta_bytes_max: usize,
}

impl Default for PresenceLimits {
    fn default() -> Self {
        Self { members_max: 10_000, key_bytes_max: 1 << 10, meta_bytes_max: 1 << 10 }
    }
}
