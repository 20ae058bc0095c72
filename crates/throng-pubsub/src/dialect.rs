//! In how many ways one publication may have to be written.

/// How a member wants its frames: which version of a protocol, compressed or not. What the numbers mean is up to
/// whoever renders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dialect(u8);

impl Dialect {
    /// How many there can be.
    pub const COUNT: usize = 8;

    /// The dialect with this number.
    ///
    /// # Panics
    /// When `number` is not below [`Self::COUNT`].
    pub const fn new(number: u8) -> Self {
        assert!((number as usize) < Self::COUNT, "there are not so many dialects");
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}
