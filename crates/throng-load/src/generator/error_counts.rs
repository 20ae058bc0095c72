//! Counts of errors of established connections, by their kind.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::user::ErrorKind;

/// A count for each kind of error, in the order of [`ErrorKind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCounts([u64; ErrorKind::ALL.len()]);

impl Default for ErrorCounts {
    fn default() -> Self {
        Self([0; ErrorKind::ALL.len()])
    }
}

impl Deref for ErrorCounts {
    type Target = [u64; ErrorKind::ALL.len()];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ErrorCounts {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// A list, whose length JSON does not fix.
impl Serialize for ErrorCounts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(to)
    }
}

impl<'de> Deserialize<'de> for ErrorCounts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let counts = Vec::<u64>::deserialize(from)?;
        let expected = "a count for each kind of error";
        let counts = counts.try_into();
        counts
            .map(Self)
            .map_err(|counts: Vec<u64>| de::Error::invalid_length(counts.len(), &expected))
    }
}
