//! The transfer of all members of a node to one other node.

use std::sync::Arc;

use super::members::wire_bytes;
use super::packet::{PACKET_BYTES_MAX, StatePart};
use crate::presence::PresenceMember;

/// The members of a node at one moment, on their way to one other node. It shares their texts.
#[derive(Debug)]
pub(super) struct Transfer {
    /// The name of the addressee.
    pub(super) to: Arc<str>,
    number_of_request: u64,
    /// The number of the latest changes at that moment.
    number: u64,
    part: u32,
    /// Members that are still to be sent, the next one last.
    members: Vec<Arc<PresenceMember>>,
}

impl Transfer {
    pub(super) fn new(
        to: Arc<str>,
        number_of_request: u64,
        number: u64,
        mut members: Vec<Arc<PresenceMember>>,
    ) -> Self {
        // Members of one topic in a row share its name on the wire and at the receiver.
        members.sort_unstable_by(|a, b| b.topic().cmp(a.topic()));
        Self { to, number_of_request, number, part: 0, members }
    }

    /// Returns the next part. The last one says so.
    pub(super) fn next_part(&mut self) -> StatePart {
        let mut bytes = 0;
        let fits = |member: &&Arc<PresenceMember>| {
            bytes += wire_bytes(member);
            bytes <= PACKET_BYTES_MAX
        };
        let count = self.members.iter().rev().take_while(fits).count().max(1);
        let rest = self.members.len().saturating_sub(count);
        let members = self.members.drain(rest..).rev().collect();
        self.part += 1;
        StatePart {
            transfer: self.number_of_request,
            number: self.number,
            part: self.part - 1,
            is_last: self.members.is_empty(),
            members,
        }
    }
}
