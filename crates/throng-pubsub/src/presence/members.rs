//! The members of one topic, and walks over them that may pause.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use super::member::{ByKey, GroupWriter, PresenceMember};

/// The members of one topic. A [`Listing`] keeps them alive while it walks.
#[derive(Debug, Default)]
pub(super) struct Members {
    by_key: RefCell<BTreeSet<ByKey>>,
    /// About the length of a list of all members, as text.
    bytes: Cell<usize>,
}

impl Members {
    pub(super) fn insert(&self, member: &Arc<PresenceMember>) {
        if self.by_key.borrow_mut().insert(ByKey(Arc::clone(member))) {
            self.bytes.set(self.bytes.get() + member.weight());
        }
    }

    /// Removes a member. Returns true if none is left.
    pub(super) fn remove(&self, member: &Arc<PresenceMember>) -> bool {
        let mut by_key = self.by_key.borrow_mut();
        if by_key.remove(&ByKey(Arc::clone(member))) {
            self.bytes.set(self.bytes.get() - member.weight());
        }
        by_key.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.borrow().len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes.get()
    }
}

/// A walk over the members of a topic, by key and then by age, each once.
///
/// Members may join and leave while it pauses: a new member is included if its place is still
/// ahead, and a member that has left is not. A client that receives the list, and behind it all
/// diffs since the beginning of the walk, knows the members: a diff that is in the list already
/// changes nothing.
#[derive(Debug)]
pub struct Listing {
    members: Rc<Members>,
    /// The last member of the walk so far.
    last: Option<Arc<PresenceMember>>,
    /// The state of the object that [`Self::part`] writes.
    writer: GroupWriter,
}

impl Listing {
    pub(super) fn new(members: Rc<Members>) -> Self {
        Self { members, last: None, writer: GroupWriter::default() }
    }

    /// Appends the next part of one object of all members, the payload of `presence_state`: about
    /// `bytes` bytes of members, at least one member. Returns true while there is more of it.
    pub fn part(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool {
        let mut writer = std::mem::take(&mut self.writer);
        let is_more = self.walk(bytes, out, |member, out| writer.member(member, out));
        if !is_more {
            writer.end(out);
        }
        self.writer = writer;
        is_more
    }

    /// Appends an object of the next members: about `bytes` bytes, at least one member. Returns
    /// true while there are more.
    pub fn object(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool {
        let mut writer = GroupWriter::default();
        let is_more = self.walk(bytes, out, |member, out| writer.member(member, out));
        writer.end(out);
        is_more
    }

    fn walk(
        &mut self,
        bytes: usize,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&Arc<PresenceMember>, &mut Vec<u8>),
    ) -> bool {
        let end = out.len().saturating_add(bytes);
        let members = Rc::clone(&self.members);
        let by_key = members.by_key.borrow();
        let last = self.last.take().map(ByKey);
        let after = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        for ByKey(member) in by_key.range::<ByKey, _>((after, Bound::Unbounded)) {
            if self.last.is_some() && out.len() >= end {
                return true;
            }
            write(member, out);
            self.last = Some(Arc::clone(member));
        }
        self.last = self.last.take().or(last.map(|ByKey(member)| member));
        false
    }
}

/// Yields each member in its turn.
impl Iterator for Listing {
    type Item = Arc<PresenceMember>;

    fn next(&mut self) -> Option<Arc<PresenceMember>> {
        let members = self.members.by_key.borrow();
        let last = self.last.take().map(ByKey);
        let after = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next = members.range::<ByKey, _>((after, Bound::Unbounded)).next();
        let next = next.map(|ByKey(member)| Arc::clone(member));
        self.last = next.clone().or(last.map(|ByKey(member)| member));
        next
    }
}
