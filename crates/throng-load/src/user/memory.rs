//! What few users need: inner loops, transactions, the values that steps have stored, cookies.

use std::borrow::Cow;

use throng_base::Instant;

use super::loop_counter::LoopCounter;
use super::nested::Nested;
use crate::program::LimitedAction;
use crate::protocols::http::exchange::HttpMemory;
use crate::scenario::STORED_BYTES_MAX;

/// Memory of a user beside its fields. A user without any of them owns none.
#[derive(Debug, Default)]
pub(crate) struct UserMemory(Option<Box<MemoryParts>>);

/// What a user with stored values has. Each value is in a place of 24 bytes, which counts as a part
/// of it.
#[derive(Debug, Default)]
struct MemoryParts {
    stored: Box<[Vec<u8>]>,
    /// Memory of the stored values and their places: it is asked for at each input.
    stored_bytes: usize,
    rare: Option<Box<RareParts>>,
}

/// What even fewer users have.
#[derive(Debug, Default)]
struct RareParts {
    nested: Nested,
    /// The next turns that the limits of each user allow this one, by their action.
    turns: [Instant; LimitedAction::ALL.len()],
    http: Option<Box<HttpMemory>>,
    /// Pieces of an answer on a stream, of which the user will keep a part.
    answer: Vec<u8>,
}

impl UserMemory {
    /// Returns the counter of the inner loop with this index.
    pub(crate) fn inner_loop(&mut self, index: usize) -> &mut LoopCounter {
        &mut self.rare().nested.loops[index]
    }

    /// Returns the beginning of the transaction at this depth.
    pub(crate) fn transaction_begun(&mut self, depth: usize) -> &mut Instant {
        &mut self.rare().nested.transactions[depth]
    }

    /// Returns the user's next turn by the limit of each user for this action.
    pub(crate) fn next_turn(&mut self, action: LimitedAction) -> &mut Instant {
        &mut self.rare().turns[action as usize]
    }

    /// Returns the stored values. Places behind the last one are empty.
    pub(crate) fn stored(&self) -> &[Vec<u8>] {
        self.0.as_ref().map_or(&[], |parts| &parts.stored)
    }

    /// Replaces the stored value at `slot`. A value that is too long is empty.
    pub(crate) fn store(&mut self, slot: u16, value: &[u8]) {
        let MemoryParts { stored, stored_bytes, .. } = &mut **self.0.get_or_insert_default();
        let slot = usize::from(slot);
        if stored.len() <= slot {
            let added = slot + 1 - stored.len();
            let places = std::mem::take(stored).into_iter();
            *stored = places.chain(std::iter::repeat_with(Vec::new).take(added)).collect();
            *stored_bytes += added * size_of::<Vec<u8>>();
        }
        let place = &mut stored[slot];
        *stored_bytes -= place.capacity();
        place.clear();
        if value.len() <= STORED_BYTES_MAX {
            // An exact size: most values are stored once and stay.
            place.reserve_exact(value.len());
            place.extend_from_slice(value);
        }
        *stored_bytes += place.capacity();
    }

    /// Returns the memory of what the user stores and keeps: values, pieces of an answer, cookies.
    pub(crate) fn held_bytes(&self) -> usize {
        let Some(parts) = &self.0 else { return 0 };
        let rare = parts.rare.as_ref().map_or(0, |rare| {
            rare.answer.capacity() + rare.http.as_ref().map_or(0, |http| http.cookies.held_bytes())
        });
        parts.stored_bytes + rare
    }

    /// Returns what the user remembers of its HTTP requests.
    pub(crate) fn http(&mut self) -> &mut HttpMemory {
        self.rare().http.get_or_insert_default()
    }

    /// Returns what the user remembers of its HTTP requests, if that is anything.
    pub(crate) fn known_http(&mut self) -> Option<&mut HttpMemory> {
        self.0.as_mut()?.rare.as_mut()?.http.as_deref_mut()
    }

    /// Appends the value of the `cookie` field for a request to `target`; nothing without a cookie.
    pub(crate) fn write_cookies(&self, target: &str, now: Instant, out: &mut Vec<u8>) {
        let rare = self.0.as_ref().and_then(|parts| parts.rare.as_ref());
        if let Some(http) = rare.and_then(|rare| rare.http.as_ref()) {
            http.cookies.write(target, now, out);
        }
    }

    /// Keeps a piece of an answer that is not whole yet: of its first [`ANSWER_BYTES_MAX`] bytes.
    pub(crate) fn keep_answer(&mut self, piece: &[u8]) {
        let answer = &mut self.rare().answer;
        let room = ANSWER_BYTES_MAX.saturating_sub(answer.len());
        answer.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Returns the first [`ANSWER_BYTES_MAX`] bytes of an answer, whose last piece is `last`.
    /// Forgets the pieces that were kept.
    pub(crate) fn whole_answer<'a>(&mut self, last: &'a [u8]) -> Cow<'a, [u8]> {
        let mut kept = self.take_answer();
        let room = ANSWER_BYTES_MAX.saturating_sub(kept.len());
        let last = &last[..last.len().min(room)];
        if kept.is_empty() {
            return Cow::Borrowed(last);
        }
        kept.extend_from_slice(last);
        Cow::Owned(kept)
    }

    /// Forgets the pieces of an answer that never became whole.
    pub(crate) fn forget_answer(&mut self) {
        drop(self.take_answer());
    }

    fn take_answer(&mut self) -> Vec<u8> {
        let rare = self.0.as_mut().and_then(|parts| parts.rare.as_mut());
        rare.map(|rare| std::mem::take(&mut rare.answer)).unwrap_or_default()
    }

    fn rare(&mut self) -> &mut RareParts {
        self.0.get_or_insert_default().rare.get_or_insert_default()
    }

    /// Forgets the stored values and the cookies.
    pub(crate) fn clear_stored(&mut self) {
        if let Some(parts) = &mut self.0 {
            (parts.stored, parts.stored_bytes) = (Box::default(), 0);
            if let Some(rare) = &mut parts.rare {
                rare.http = None;
                rare.answer = Vec::new();
            }
        }
    }
}

/// Bytes of a user with stored values beside its fields and these values.
pub(crate) const MEMORY_BYTES: usize = size_of::<MemoryParts>();

const _: () = assert!(
    size_of::<RareParts>() + size_of::<HttpMemory>() <= 256,
    "what few users remember is small"
);

/// Bytes of an answer that are searched for the parts to keep.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_until_another_replaces_it() {
        let mut memory = UserMemory::default();
        assert!(memory.stored().is_empty());
        memory.store(2, b"abc");
        memory.store(0, b"");
        assert_eq!(memory.stored(), [&b""[..], b"", b"abc"]);
        memory.store(2, &vec![0; STORED_BYTES_MAX + 1]);
        assert_eq!(memory.stored()[2], b"", "too long");
        memory.clear_stored();
        assert!(memory.stored().is_empty());
    }

    #[test]
    fn what_is_held_is_the_memory_of_the_values_and_their_places() {
        let mut memory = UserMemory::default();
        assert_eq!(memory.held_bytes(), 0);
        for (slot, value) in [(2, "abc"), (0, ""), (2, "a longer one"), (1, "b"), (2, "c")] {
            memory.store(slot, value.as_bytes());
            let stored = &memory.0.as_ref().unwrap().stored;
            let places = stored.len() * size_of::<Vec<u8>>();
            let values = stored.iter().map(Vec::capacity).sum::<usize>();
            assert_eq!(memory.held_bytes(), places + values, "{slot} {value}");
        }
        memory.clear_stored();
        assert_eq!(memory.held_bytes(), 0);
    }

    #[test]
    fn only_the_first_bytes_of_an_answer_are_searched_in_their_order() {
        let answer: Vec<_> = (0..ANSWER_BYTES_MAX * 2).map(|at| (at % 251) as u8).collect();
        let first = &answer[..ANSWER_BYTES_MAX];
        for piece_bytes in [1_000, ANSWER_BYTES_MAX - 1, ANSWER_BYTES_MAX, answer.len()] {
            let mut memory = UserMemory::default();
            let mut pieces: Vec<_> = answer.chunks(piece_bytes).collect();
            let last = pieces.pop().unwrap();
            pieces.iter().for_each(|piece| memory.keep_answer(piece));
            assert!(*memory.whole_answer(last) == *first, "pieces of {piece_bytes} bytes");
            assert_eq!(*memory.whole_answer(b"next"), *b"next");
        }
    }
}
