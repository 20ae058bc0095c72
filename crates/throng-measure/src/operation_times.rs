//! How long the operations of an interval took, and how long users waited without an end of them.

use std::ops::{Index, IndexMut};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::operation::OperationWaits;
use crate::{Histogram, Operation, PerOperation};

/// The times of all operations. The index is an operation, and returns its latencies until the
/// generator read the answers.
///
/// In JSON, the latencies stand by the names of their operations, beside the other fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct OperationTimes {
    /// Time from the intended moment of each operation until the generator read what ended it.
    #[serde(flatten)]
    pub seen: PerOperation<Histogram>,
    /// Time from the moment at which a message was sent until its answer was complete, on the
    /// connections that the generator follows. The latency of a message counts from when it was
    /// due.
    pub from_send: Histogram,
    /// Waits that no answer ended, each from its intended moment.
    ///
    /// A wait ends without an answer if it times out, or if its user is stopped. A turn of `every`
    /// that came due meanwhile and never began is a wait of its own, from the moment when it was
    /// due. The answer would have taken at least as long as the wait. A wait for a message may be
    /// one for the server to take the bytes sent before it.
    pub unanswered: PerOperation<Histogram>,
}

impl OperationTimes {
    /// Adds every value that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        self.seen.merge(&other.seen);
        self.from_send.merge(&other.from_send);
        self.unanswered.merge(&other.unanswered);
    }
}

impl Index<Operation> for OperationTimes {
    type Output = Histogram;

    fn index(&self, operation: Operation) -> &Histogram {
        &self.seen[operation]
    }
}

impl IndexMut<Operation> for OperationTimes {
    fn index_mut(&mut self, operation: Operation) -> &mut Histogram {
        &mut self.seen[operation]
    }
}

/// The order of the fields is that of the run file: the unanswered waits stand before the
/// operations that have none.
impl Serialize for OperationTimes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let has_waits = |operation: Operation| operation.waits() == OperationWaits::Unanswered;
        let mut map = to.serialize_map(None)?;
        for with_waits in [true, false] {
            let of_these = self.seen.iter().filter(|(of, _)| has_waits(*of) == with_waits);
            for (operation, seen) in of_these {
                if !seen.is_empty() {
                    map.serialize_entry(operation.name(), seen)?;
                }
                if operation == Operation::Message && !self.from_send.is_empty() {
                    map.serialize_entry("from_send", &self.from_send)?;
                }
            }
            if with_waits && !self.unanswered.is_empty() {
                map.serialize_entry("unanswered", &self.unanswered)?;
            }
        }
        map.end()
    }
}
