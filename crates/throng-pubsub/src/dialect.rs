//! Dialects: the forms in which one publication may have to be written.

/// The form in which a subscriber receives its frames: the version of a protocol, compressed or
/// not. The renderer defines the meaning of the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dialect(u8);

impl Dialect {
    /// The number of dialects.
    pub const COUNT: usize = 8;

    /// Returns the dialect with this number.
    ///
    /// # Panics
    /// If `number` is not below [`Self::COUNT`].
    pub const fn new(number: u8) -> Self {
        assert!((number as usize) < Self::COUNT, "the number of a dialect is below 8");
        Self(number)
    }

    /// Returns the dialect's number.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}
