//! The members of all topics of a core. Every member is in two lists, its topic's and its
//! connection's, so that the cost of joining and leaving does not depend on their length.

use std::num::NonZeroU32;

use throng_base::Key;

use crate::Dialect;

/// The handle by which a connection leaves a topic.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Membership(NonZeroU32);

/// The memberships of a connection: the head of a list. The connection keeps it and passes it to
/// every call.
#[derive(Debug)]
pub struct Memberships {
    first: u32,
}

/// The options of a membership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// The dialect in which frames are rendered for it.
    pub dialect: Dialect,
    /// True to receive publications themselves instead of frames.
    pub intercepts: bool,
    /// The subscriber's own tag of this membership, passed with every delivery.
    pub tag: u16,
}

/// A member: 36 bytes.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) key: Key,
    /// The index of its topic, or [`NONE`] if this place is free.
    pub(crate) topic: u32,
    /// The number of the publication that it receives next.
    pub(crate) due: u32,
    pub(crate) previous: u32,
    pub(crate) next: u32,
    previous_of_key: u32,
    next_of_key: u32,
    pub(crate) tag: u16,
    pub(crate) dialect: Dialect,
    pub(crate) intercepts: bool,
}

/// All members of a core, in chunks, so that a growing hub copies nothing.
#[derive(Debug)]
pub(crate) struct Members {
    chunks: Vec<Vec<Member>>,
    free: u32,
    taken: u32,
}

/// The head of a topic's list of members.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) len: u32,
}

impl Membership {
    pub(crate) fn new(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    pub(crate) const fn index(&self) -> u32 {
        self.0.get() - 1
    }
}

impl Memberships {
    /// Reports whether the connection is in no topic.
    pub const fn is_empty(&self) -> bool {
        self.first == NONE
    }

    pub(crate) const fn first(&self) -> Option<u32> {
        if self.is_empty() { None } else { Some(self.first) }
    }
}

impl Default for Memberships {
    fn default() -> Self {
        Self { first: NONE }
    }
}

impl Default for List {
    fn default() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }
}

impl Members {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, taken: 0 }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.taken
    }

    /// Returns the member at `index`, which [`Self::add`] has returned.
    pub(crate) fn at(&mut self, index: u32) -> &mut Member {
        &mut self.chunks[(index / CHUNK) as usize][(index % CHUNK) as usize]
    }

    /// Reports whether `index` is a membership of `key`.
    pub(crate) fn belongs_to(&self, index: u32, key: Key) -> bool {
        let chunk = self.chunks.get((index / CHUNK) as usize);
        chunk
            .and_then(|chunk| chunk.get((index % CHUNK) as usize))
            .is_some_and(|member| member.topic != NONE && member.key == key)
    }

    /// Adds a member at the end of its topic's list and at the head of its connection's.
    pub(crate) fn add(
        &mut self,
        list: &mut List,
        of: &mut Memberships,
        key: Key,
        topic: u32,
        due: u32,
        subscription: Subscription,
    ) -> u32 {
        let Subscription { dialect, intercepts, tag } = subscription;
        let index = self.place(Member {
            key,
            topic,
            due,
            previous: list.last,
            next: NONE,
            previous_of_key: NONE,
            next_of_key: of.first,
            tag,
            dialect,
            intercepts,
        });
        match list.last {
            NONE => list.first = index,
            last => self.at(last).next = index,
        }
        list.last = index;
        list.len += 1;
        if of.first != NONE {
            self.at(of.first).previous_of_key = index;
        }
        of.first = index;
        self.taken += 1;
        index
    }

    /// Removes a member from both lists. Returns the next member of its topic.
    pub(crate) fn remove(&mut self, list: &mut List, of: &mut Memberships, index: u32) -> u32 {
        let free = self.free;
        let member = self.at(index);
        let (previous, next) = (member.previous, member.next);
        let (previous_of_key, next_of_key) = (member.previous_of_key, member.next_of_key);
        member.topic = NONE;
        member.next = free;
        self.free = index;
        self.taken -= 1;
        match previous {
            NONE => list.first = next,
            previous => self.at(previous).next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.at(next).previous = previous,
        }
        list.len -= 1;
        match previous_of_key {
            NONE => of.first = next_of_key,
            previous => self.at(previous).next_of_key = next_of_key,
        }
        if next_of_key != NONE {
            self.at(next_of_key).previous_of_key = previous_of_key;
        }
        next
    }

    fn place(&mut self, member: Member) -> u32 {
        if self.free != NONE {
            let index = self.free;
            let place = self.at(index);
            let next_free = place.next;
            *place = member;
            self.free = next_free;
            return index;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK as usize) {
            self.chunks.push(Vec::with_capacity(CHUNK as usize));
        }
        let full = (self.chunks.len() as u32 - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("a chunk was pushed");
        chunk.push(member);
        full + chunk.len() as u32 - 1
    }
}

/// The index that stands for no member.
pub(crate) const NONE: u32 = u32::MAX;
/// The number of members in a chunk.
const CHUNK: u32 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_costs_36_bytes_and_a_handle_4() {
        assert_eq!(size_of::<Member>(), 36);
        assert_eq!(size_of::<Option<Membership>>(), 4);
        assert_eq!(size_of::<Memberships>(), 4);
    }

    #[test]
    fn a_place_is_used_again() {
        let (mut members, mut list) = (Members::new(), List::default());
        let mut of = Memberships::default();
        let key = Key::new(1, 1);
        let add = |members: &mut Members, list: &mut List, of: &mut Memberships| {
            members.add(list, of, key, 0, 0, Subscription::default())
        };
        let [one, two, three] = std::array::from_fn(|_| add(&mut members, &mut list, &mut of));
        members.remove(&mut list, &mut of, two);
        assert!(!members.belongs_to(two, key) && members.belongs_to(three, key));
        assert_eq!(add(&mut members, &mut list, &mut of), two);
        assert_eq!((members.at(one).next, members.at(three).next), (three, two));
        assert_eq!((list.first, list.last, list.len, members.len()), (one, two, 3, 3));
        for index in [three, one, two] {
            members.remove(&mut list, &mut of, index);
        }
        assert!(of.is_empty() && list.first == NONE && list.last == NONE);
    }
}
