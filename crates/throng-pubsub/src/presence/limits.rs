//! The limits of presence.

/// The limits of presence. A member beyond one of them is not tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceLimits {
    /// The maximum of members of a topic, as its cores know them. Cores that track at the same time
    /// may exceed it by the members in flight between them. Every member is sent to all others.
    /// Default 10,000.
    pub members_max: usize,
    /// The maximum length of a key in bytes. Every core keeps it while its member is present.
    /// Default 1 KiB.
    pub key_bytes_max: usize,
    /// The maximum length of a meta in bytes, which is kept and sent like its key. Default 1 KiB.
    pub meta_bytes_max: usize,
}

impl Default for PresenceLimits {
    fn default() -> Self {
        Self { members_max: 10_000, key_bytes_max: 1 << 10, meta_bytes_max: 1 << 10 }
    }
}
