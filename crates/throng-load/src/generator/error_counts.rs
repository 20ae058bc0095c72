//! The number of errors of each kind.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::user::ErrorKind;

type Counts = [u64; ErrorKind::OF_USERS.len()];

/// Numbers of errors, in the order of [`ErrorKind::OF_USERS`]. JSON has them as a list, whose
/// length it does not fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCounts(Counts);

impl Default for ErrorCounts {
    fn default() -> Self {
        Self([0; ErrorKind::OF_USERS.len()])
    }
}

impl Deref for ErrorCounts {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.0
    }
}

impl DerefMut for ErrorCounts {
    fn deref_mut(&mut self) -> &mut Counts {
        &mut self.0
    }
}

impl Serialize for ErrorCounts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(to)
    }
}

impl<'de> Deserialize<'de> for ErrorCounts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let counts = Vec::<u64>::deserialize(from)?;
        let expected = "a count for each kind of error";
        counts
            .try_into()
            .map(Self)
            .map_err(|counts: Vec<u64>| de::Error::invalid_length(counts.len(), &expected))
    }
}
