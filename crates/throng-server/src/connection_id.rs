//! The names of connections.

use std::fmt;

use throng_base::Key;
use throng_driver::CoreId;

/// The name of one connection. It is valid on every core and thread, even after the connection has
/// ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    core: u32,
    key: Key,
}

impl ConnectionId {
    pub(crate) fn new(core: CoreId, key: Key) -> Self {
        Self { core: core as u32, key }
    }

    /// Returns the core of the connection.
    pub const fn core(self) -> CoreId {
        self.core as CoreId
    }

    /// Returns the name as two numbers, for a token that leaves the process.
    pub const fn to_bits(self) -> (u32, u64) {
        (self.core, (self.key.generation() as u64) << 32 | self.key.index() as u64)
    }

    /// Returns the name that [`Self::to_bits`] wrote, or `None` if the server has no such core.
    pub fn from_bits(core: u32, key: u64, cores: usize) -> Option<Self> {
        let is_known = (core as usize) < cores;
        is_known.then_some(Self { core, key: Key::new(key as u32, (key >> 32) as u32) })
    }

    pub(crate) const fn key(self) -> Key {
        self.key
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.core, self.key)
    }
}
