//! Another node: the members that it owns, and how far its changes are known.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;

use super::members::{Changes, wire_bytes};
use super::packet::StatePart;
use crate::presence::{PresenceMember, PresenceRef};

/// What a node knows of another one.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) epoch: u64,
    pub(super) address: Option<Arc<str>>,
    pub(super) is_draining: bool,
    /// The time of its latest packet.
    pub(super) heard_at: Instant,
    members: HashMap<PresenceRef, Arc<PresenceMember>>,
    sync: PeerSync,
}

/// How far the changes of a peer are known.
#[derive(Debug)]
enum PeerSync {
    /// All changes up to this number have been applied.
    Current { number: u64 },
    /// Some changes are missing: the whole state is requested.
    Behind(Catchup),
}

/// The wait for the whole state of a peer.
#[derive(Debug, Default)]
struct Catchup {
    /// The number of the request; 0 if none was sent.
    transfer: u64,
    /// The time of the next request.
    request_at: Instant,
    /// The parts that have come.
    parts: u32,
    members: HashMap<PresenceRef, Arc<PresenceMember>>,
    /// Changes that came meanwhile, by number.
    later: BTreeMap<u64, Changes>,
    /// Bytes of `later`.
    later_bytes: usize,
}

/// Members of other nodes that this node has learned of, or no longer knows.
#[derive(Debug, Default)]
pub(super) struct Delta {
    pub(super) joins: Vec<Arc<PresenceMember>>,
    pub(super) leaves: Vec<Arc<PresenceMember>>,
}

impl Peer {
    /// Makes a peer that has said nothing of its members: as long as it has made no changes, it
    /// has none.
    pub(super) fn new(epoch: u64, now: Instant) -> Self {
        Self {
            epoch,
            address: None,
            is_draining: false,
            heard_at: now,
            members: HashMap::new(),
            sync: PeerSync::Current { number: 0 },
        }
    }

    /// Learns the number of the latest changes. They have been said before, so that a larger
    /// number than the known one means that some are lost.
    pub(super) fn hear_number(&mut self, latest: u64) {
        if let PeerSync::Current { number } = self.sync
            && latest > number
        {
            self.sync = PeerSync::Behind(Catchup::default());
        }
    }

    /// Applies changes, or keeps them until those before them are known.
    pub(super) fn change(&mut self, number: u64, changes: Changes, delta: &mut Delta) {
        match &mut self.sync {
            PeerSync::Current { number: known } if Some(number) == known.checked_add(1) => {
                *known = number;
                self.apply(changes, delta);
            }
            PeerSync::Current { number: known } if number <= *known => {}
            PeerSync::Current { .. } => {
                let mut catchup = Catchup::default();
                catchup.keep(number, changes);
                self.sync = PeerSync::Behind(catchup);
            }
            PeerSync::Behind(catchup) => catchup.keep(number, changes),
        }
    }

    /// Takes a part of the whole state.
    pub(super) fn take_part(&mut self, now: Instant, part: StatePart, delta: &mut Delta) {
        let PeerSync::Behind(catchup) = &mut self.sync else { return };
        if part.transfer != catchup.transfer || part.part != catchup.parts {
            return;
        }
        catchup.parts += 1;
        catchup.request_at = now + REQUEST_TIMEOUT;
        catchup.members.extend(part.members.into_iter().map(|member| (member.r#ref(), member)));
        if !part.is_last {
            return;
        }
        let Catchup { members, mut later, .. } = std::mem::take(catchup);
        let old = std::mem::replace(&mut self.members, members);
        for (r#ref, member) in &mut self.members {
            match old.get(r#ref) {
                // The cores have this one.
                Some(known) => *member = Arc::clone(known),
                None => delta.joins.push(Arc::clone(member)),
            }
        }
        let has_left = |member: &&Arc<PresenceMember>| !self.members.contains_key(&member.r#ref());
        delta.leaves.extend(old.values().filter(has_left).cloned());
        let mut number = part.number;
        while let Some(next) = number.checked_add(1)
            && let Some(changes) = later.remove(&next)
        {
            number = next;
            self.apply(changes, delta);
        }
        let latest = later.last_key_value().map_or(0, |(latest, _)| *latest);
        self.sync = PeerSync::Current { number };
        self.hear_number(latest);
    }

    /// Returns the time of the next request for the whole state.
    pub(super) fn request_at(&self) -> Instant {
        match &self.sync {
            PeerSync::Current { .. } => Instant::FAR,
            PeerSync::Behind(catchup) => catchup.request_at,
        }
    }

    /// Begins a request for the whole state. Parts of earlier ones are ignored.
    pub(super) fn request(&mut self, now: Instant, transfer: u64) {
        if let PeerSync::Behind(catchup) = &mut self.sync {
            let request_at = now + REQUEST_TIMEOUT;
            *catchup = Catchup {
                transfer,
                request_at,
                parts: 0,
                members: HashMap::new(),
                ..std::mem::take(catchup)
            };
        }
    }

    /// Ends the peer: all its members leave.
    pub(super) fn end(self, delta: &mut Delta) {
        delta.leaves.extend(self.members.into_values());
    }

    fn apply(&mut self, changes: Changes, delta: &mut Delta) {
        for member in changes.joins {
            if let Entry::Vacant(place) = self.members.entry(member.r#ref()) {
                place.insert(Arc::clone(&member));
                delta.joins.push(member);
            }
        }
        for left in changes.leaves {
            delta.leaves.extend(self.members.remove(&left));
        }
    }
}

impl Catchup {
    /// Keeps changes for later. If they become too many, the state is requested anew.
    fn keep(&mut self, number: u64, changes: Changes) {
        let bytes = |changes: &Changes| {
            let joins: usize = changes.joins.iter().map(|member| wire_bytes(member)).sum();
            AROUND_CHANGES_BYTES + joins + changes.leaves.len() * size_of::<PresenceRef>()
        };
        self.later_bytes += bytes(&changes);
        if let Some(before) = self.later.insert(number, changes) {
            self.later_bytes -= bytes(&before);
        }
        if self.later_bytes > LATER_BYTES_MAX {
            *self = Self { request_at: self.request_at, ..Self::default() };
        }
    }
}

/// The time after which a request without an answer is repeated.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of changes that are kept while the state before them is on its way.
const LATER_BYTES_MAX: usize = 64 << 20;
/// Bytes that changes take beside what they say.
const AROUND_CHANGES_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_are_kept_for_later_are_bounded_in_bytes() {
        let mut catchup = Catchup::default();
        let most = LATER_BYTES_MAX / AROUND_CHANGES_BYTES;
        for number in 0..most as u64 {
            catchup.keep(number, Changes::default());
        }
        assert_eq!((catchup.later.len(), catchup.later_bytes), (most, LATER_BYTES_MAX));
        // What comes twice counts once.
        catchup.keep(1, Changes::default());
        assert_eq!(catchup.later.len(), most);
        catchup.keep(u64::MAX, Changes::default());
        assert_eq!((catchup.later.len(), catchup.later_bytes), (0, 0));
    }
}
