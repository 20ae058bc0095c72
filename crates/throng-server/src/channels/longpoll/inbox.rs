//! The inbox of a session: messages that wait for its next poll.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use throng_engine::SendPart;

use super::memory::{ENTRY_BYTES, Memory};
use crate::channels::defaults::POLL_SESSION_BYTES_MAX as BYTES_MAX;
use crate::channels::presence_list::Pieces;

/// A message as an answer contains it: a JSON string.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    /// For one session.
    Own(Box<[u8]>),
    /// For all sessions that speak the same version, on all cores.
    Shared(Arc<[u8]>),
}

impl Text {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }

    /// Returns the text as a part of an answer.
    pub(crate) fn part(&self) -> SendPart<'_> {
        match self {
            Self::Own(bytes) => SendPart::Own(bytes),
            Self::Shared(bytes) => SendPart::Shared(bytes),
        }
    }
}

/// The messages that wait for a poll, within the limits of the session and of its core.
pub(crate) struct Inbox {
    entries: VecDeque<Entry>,
    /// The number of entries that were pushed and not cut out again.
    count: usize,
    /// Bytes of all texts: the length of an answer with them.
    bytes: usize,
    /// Bytes that the core keeps for this session alone.
    own_bytes: usize,
    /// True if something did not fit. Later messages are dropped: the session is about to end.
    has_overflowed: bool,
    memory: Rc<Memory>,
}

/// A message or a list that waits.
pub(crate) enum Entry {
    Text(Text),
    /// A `presence_state`, written when a poll fetches it.
    List(Box<Pieces>),
}

impl Inbox {
    /// Makes an empty inbox on a core.
    pub(crate) fn new(memory: Rc<Memory>) -> Self {
        Self {
            entries: VecDeque::new(),
            count: 0,
            bytes: 0,
            own_bytes: 0,
            has_overflowed: false,
            memory,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reports whether something did not fit.
    pub(crate) const fn has_overflowed(&self) -> bool {
        self.has_overflowed
    }

    /// Drops everything, because something did not fit.
    pub(crate) fn overflow(&mut self) {
        self.has_overflowed = true;
        self.clear();
    }

    /// Keeps an entry for the next poll.
    ///
    /// # Errors
    /// Returns the entry if it does not fit. A single entry may be as long as the core has room
    /// for, so that a client receives the answer to its request.
    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), Entry> {
        if self.has_overflowed {
            return Ok(());
        }
        let cost = match &entry {
            Entry::Text(text) => self.memory.cost(text),
            Entry::List(_) => entry.own_bytes(),
        };
        if !self.fits(entry.bytes(), cost) {
            return Err(entry);
        }
        self.hold(&entry);
        self.entries.push_back(entry);
        self.count += 1;
        Ok(())
    }

    /// Puts back the texts of an answer that reached no connection, in front of all others. Without
    /// room for them the session has overflowed.
    pub(crate) fn put_back(&mut self, texts: Vec<Text>) {
        let bytes: usize = texts.iter().map(Text::len).sum();
        let cost: usize = texts.iter().map(|text| self.memory.cost(text)).sum();
        if !self.fits(bytes, cost) {
            return self.overflow();
        }
        for entry in texts.into_iter().rev().map(Entry::Text) {
            self.hold(&entry);
            self.entries.push_front(entry);
        }
    }

    /// Takes the messages of the next answer: everything, up to the first list that is longer than
    /// the part of an answer for lists.
    pub(crate) fn take(&mut self) -> Vec<Text> {
        let mut texts = Vec::new();
        let mut listed = 0;
        while listed < LISTED_BYTES_MAX
            && let Some(entry) = self.entries.pop_front()
        {
            self.release(&entry);
            match entry {
                Entry::Text(text) => texts.push(text),
                Entry::List(mut pieces) => {
                    let (text, is_more) = pieces.next(LISTED_BYTES_MAX - listed);
                    listed += text.len();
                    texts.push(Text::Own(text));
                    if is_more {
                        let rest = Entry::List(pieces);
                        self.hold(&rest);
                        self.entries.push_front(rest);
                        break;
                    }
                }
            }
        }
        texts
    }

    /// Returns a mark behind everything that waits now.
    pub(crate) const fn mark(&self) -> usize {
        self.count
    }

    /// Takes out the entries pushed since `mark` that no answer has taken.
    pub(crate) fn cut(&mut self, mark: usize) -> Vec<Entry> {
        let new = self.count.saturating_sub(mark).min(self.entries.len());
        let cut: Vec<Entry> = self.entries.drain(self.entries.len() - new..).collect();
        self.count -= new;
        cut.iter().for_each(|entry| self.release(entry));
        cut
    }

    fn clear(&mut self) {
        while let Some(entry) = self.entries.pop_front() {
            self.release(&entry);
        }
    }

    /// Reports whether there is room for `bytes` more in an answer, which cost the core `cost`
    /// bytes.
    fn fits(&self, bytes: usize, cost: usize) -> bool {
        let fits_session = self.is_empty() || self.bytes + bytes <= BYTES_MAX;
        fits_session && self.own_bytes + cost <= self.memory.room()
    }

    fn hold(&mut self, entry: &Entry) {
        match entry {
            Entry::Text(text) => self.memory.hold(text),
            Entry::List(_) => self.memory.add(entry.own_bytes()),
        }
        self.bytes += entry.bytes();
        self.own_bytes += entry.own_bytes();
    }

    fn release(&mut self, entry: &Entry) {
        match entry {
            Entry::Text(text) => self.memory.release(text),
            Entry::List(_) => self.memory.subtract(entry.own_bytes()),
        }
        self.bytes -= entry.bytes();
        self.own_bytes -= entry.own_bytes();
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(pieces) => pieces.bytes(),
        }
    }

    /// Returns the bytes that no other session shares.
    fn own_bytes(&self) -> usize {
        match self {
            Self::Text(Text::Shared(_)) => ENTRY_BYTES,
            Self::Text(Text::Own(bytes)) => ENTRY_BYTES + bytes.len(),
            Self::List(pieces) => ENTRY_BYTES + pieces.bytes(),
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Bytes of presence lists in one answer; the rest comes with the next answers.
const LISTED_BYTES_MAX: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn own(bytes: usize) -> Entry {
        Entry::Text(Text::Own(vec![b'x'; bytes].into()))
    }

    fn inbox(memory: &Rc<Memory>) -> Inbox {
        Inbox::new(Rc::clone(memory))
    }

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Entry>() <= ENTRY_BYTES, "{}", size_of::<Entry>());
    }

    #[test]
    fn a_session_keeps_a_megabyte_or_one_message() {
        let memory = Rc::new(Memory::new(64 << 20));
        let mut some = inbox(&memory);
        assert!(some.push(own(1)).is_ok() && some.push(own(BYTES_MAX - 1)).is_ok());
        assert!(some.push(own(1)).is_err() && !some.has_overflowed());
        let mut one = inbox(&memory);
        assert!(one.push(own(8 << 20)).is_ok() && one.push(own(1)).is_err());
        assert_eq!(one.take().len(), 1);
        assert!(one.push(own(1)).is_ok());
        drop((some, one));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_text_that_all_share_leaves_room_for_all() {
        let memory = Rc::new(Memory::new(4 << 20));
        let shared: Arc<[u8]> = vec![b's'; 1 << 20].into();
        let mut inboxes: Vec<Inbox> = (0..5_000).map(|_| inbox(&memory)).collect();
        for inbox in &mut inboxes {
            assert!(inbox.push(Entry::Text(Text::Shared(Arc::clone(&shared)))).is_ok());
        }
        assert_eq!(memory.used(), (1 << 20) + 5_000 * ENTRY_BYTES);
        drop(inboxes);
        assert_eq!((memory.used(), Arc::strong_count(&shared)), (0, 1));
    }

    #[test]
    fn sessions_that_hold_all_they_can_leave_something_to_one_that_holds_little() {
        let memory = Rc::new(Memory::new(16 << 20));
        let mut hogs: Vec<Inbox> = (0..100).map(|_| inbox(&memory)).collect();
        for _ in 0..1_000 {
            for hog in &mut hogs {
                let _ = hog.push(own(10_000));
            }
        }
        assert!(memory.used() < 16 << 20);
        let mut modest = inbox(&memory);
        assert!((0..5).all(|_| modest.push(own(10_000)).is_ok()));
    }

    #[test]
    fn returned_messages_are_the_first_again_if_there_is_room() {
        let memory = Rc::new(Memory::new(64 << 20));
        let mut inbox = inbox(&memory);
        assert!(inbox.push(own(3)).is_ok() && inbox.push(own(4)).is_ok());
        let texts = inbox.take();
        assert!(inbox.push(own(5)).is_ok());
        inbox.put_back(texts);
        let lengths: Vec<usize> = inbox.take().iter().map(Text::len).collect();
        assert_eq!(lengths, [3, 4, 5]);
        assert!(inbox.push(own(BYTES_MAX)).is_ok());
        inbox.put_back(vec![Text::Own([b'x'].into())]);
        assert!(inbox.has_overflowed() && inbox.is_empty() && inbox.push(own(1)).is_ok());
        assert!(inbox.is_empty());
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn entries_since_a_mark_are_cut_out_unless_an_answer_has_taken_them() {
        let memory = Rc::new(Memory::new(64 << 20));
        let mut inbox = inbox(&memory);
        assert!(inbox.push(own(3)).is_ok());
        let mark = inbox.mark();
        assert!(inbox.push(own(4)).is_ok() && inbox.push(own(5)).is_ok());
        assert_eq!((inbox.cut(mark).len(), inbox.cut(mark).len()), (2, 0));
        let mark = inbox.mark();
        assert!(inbox.push(own(4)).is_ok());
        inbox.take();
        assert!(inbox.push(own(5)).is_ok());
        assert_eq!((inbox.cut(mark).len(), inbox.cut(mark).len()), (1, 0));
    }
}
