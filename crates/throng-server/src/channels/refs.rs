//! Refs: short texts that a client chooses and that are kept for each channel.

/// A ref as the client wrote it. Refs are small decimal numbers in practice, which need no heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ref {
    /// `null`.
    #[default]
    Null,
    Short(u8, [u8; SHORT]),
    Long(Box<LongRef>),
}

/// A longer ref behind one thin pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LongRef(Box<str>);

impl Ref {
    pub(crate) fn new(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::Null };
        let mut bytes = [0; SHORT];
        match bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text.as_bytes());
                Self::Short(text.len() as u8, bytes)
            }
            None => Self::Long(Box::new(LongRef(text.into()))),
        }
    }

    pub(crate) fn as_deref(&self) -> Option<&str> {
        match self {
            Self::Null => None,
            Self::Short(len, bytes) => std::str::from_utf8(&bytes[..usize::from(*len)]).ok(),
            Self::Long(text) => Some(&text.0),
        }
    }
}

/// Bytes that fit into 16 bytes beside the tag and the length.
const SHORT: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_is_what_it_was() {
        for text in ["", "1", "12345678901234", "123456789012345", "äöüäöüäöü"] {
            assert_eq!(Ref::new(Some(text)).as_deref(), Some(text));
        }
        assert_eq!(Ref::new(None).as_deref(), None);
        assert_eq!(size_of::<Ref>(), 16);
    }
}
