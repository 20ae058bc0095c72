//! The table in which a core keeps its connections: chunked, so that it grows without copying, and
//! generational, so that a name that outlived its connection finds nothing.

use std::fmt;

/// The name of an occupant: where it lives, and the how-many-eth to live there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The key with these parts; what the table never handed out finds nothing.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// The place in the table.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The how-many-eth occupant of that place.
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}v{}", self.index, self.generation)
    }
}

/// A chunked generational slab. An entry costs eight bytes beside its value, and memory is touched
/// only as far as the table was ever filled.
pub struct Slab<T> {
    /// Every chunk has room for `CHUNK` entries from the start, so entries never move.
    chunks: Vec<Vec<Entry<T>>>,
    free: u32,
    len: u32,
}

struct Entry<T> {
    generation: u32,
    /// The next free place while this one is free; meaningless otherwise.
    next_free: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    /// An empty table; it owns no memory yet.
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, len: 0 }
    }

    /// How many values it holds.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether it holds nothing.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts `value` into the place that was left last, or into a new one.
    ///
    /// # Panics
    /// When 2^32 - 1 places are taken; fd limits end a core long before.
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        if self.free != NONE {
            let index = self.free;
            let entry = self.entry(index);
            entry.value = Some(value);
            let (generation, next_free) = (entry.generation, entry.next_free);
            self.free = next_free;
            return Key { index, generation };
        }
        let index = self.places();
        assert!(index != NONE, "the table is full");
        if index.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK as usize));
        }
        let chunk = self.chunks.last_mut().expect("a chunk was pushed");
        chunk.push(Entry { generation: 0, next_free: NONE, value: Some(value) });
        Key { index, generation: 0 }
    }

    /// Takes the value out; its key finds nothing from now on.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let free = self.free;
        let entry = self.entry(key.index);
        let value = entry.value.take();
        entry.generation = entry.generation.wrapping_add(1);
        entry.next_free = free;
        self.free = key.index;
        self.len -= 1;
        value
    }

    /// Gives the occupant a new key; the old one finds nothing from now on.
    pub fn renew(&mut self, key: Key) -> Option<Key> {
        self.get(key)?;
        let entry = self.entry(key.index);
        entry.generation = entry.generation.wrapping_add(1);
        Some(Key { index: key.index, generation: entry.generation })
    }

    /// The value named `key`, if it is still there.
    pub fn get(&self, key: Key) -> Option<&T> {
        let entry = self.chunks.get(chunk_of(key.index))?.get(place_in_chunk(key.index))?;
        if entry.generation == key.generation { entry.value.as_ref() } else { None }
    }

    /// The value named `key`, if it is still there.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.chunks.get_mut(chunk_of(key.index))?.get_mut(place_in_chunk(key.index))?;
        if entry.generation == key.generation { entry.value.as_mut() } else { None }
    }

    /// Whoever lives at `index` now.
    pub fn at(&mut self, index: u32) -> Option<&mut T> {
        self.chunks.get_mut(chunk_of(index))?.get_mut(place_in_chunk(index))?.value.as_mut()
    }

    /// The key of whoever lives at `index` now.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let entry = self.chunks.get(chunk_of(index))?.get(place_in_chunk(index))?;
        entry.value.as_ref().map(|_| Key { index, generation: entry.generation })
    }

    /// The keys of all occupants, in the order of their places.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        (0..self.places()).filter_map(|index| self.key_at(index))
    }

    /// How many places were ever taken.
    fn places(&self) -> u32 {
        match self.chunks.last() {
            Some(last) => (self.chunks.len() as u32 - 1) * CHUNK + last.len() as u32,
            None => 0,
        }
    }

    fn entry(&mut self, index: u32) -> &mut Entry<T> {
        &mut self.chunks[chunk_of(index)][place_in_chunk(index)]
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

const fn chunk_of(index: u32) -> usize {
    (index / CHUNK) as usize
}

const fn place_in_chunk(index: u32) -> usize {
    (index % CHUNK) as usize
}

/// Entries a chunk: at 100 bytes each a chunk is 100 KB, which wastes little on 50 cores.
const CHUNK: u32 = 1024;
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::Prng;

    #[test]
    fn a_key_that_outlived_its_value_finds_nothing() {
        let mut slab = Slab::new();
        let old = slab.insert("old");
        assert_eq!(slab.remove(old), Some("old"));
        let new = slab.insert("new");
        assert_eq!(new.index(), old.index());
        assert_eq!(slab.get(old), None);
        assert_eq!(slab.remove(old), None);
        assert_eq!(slab.get(new), Some(&"new"));
    }

    #[test]
    fn a_renewed_value_answers_to_its_new_key_alone() {
        let mut slab = Slab::new();
        let old = slab.insert(1);
        let new = slab.renew(old).unwrap();
        assert_eq!((slab.get(old), slab.get(new)), (None, Some(&1)));
    }

    #[test]
    fn behaves_as_a_map_under_random_use() {
        let (mut slab, mut model, mut prng) = (Slab::new(), HashMap::new(), Prng::new(3));
        let mut keys: Vec<Key> = Vec::new();
        // An interpreter has hours of work with as many as a compiled program does.
        let steps: u64 = if cfg!(miri) { 500 } else { 50_000 };
        for step in 0..steps {
            if prng.below(5) < 3 || keys.is_empty() {
                let key = slab.insert(step);
                assert!(model.insert(key, step).is_none(), "a key was handed out twice");
                keys.push(key);
            } else {
                let key = keys.swap_remove(prng.below(keys.len() as u64) as usize);
                assert_eq!(slab.remove(key), model.remove(&key));
            }
            assert_eq!(slab.len() as usize, model.len());
        }
        assert!(slab.keys().all(|key| slab.get(key) == model.get(&key)));
        assert_eq!(slab.keys().count(), model.len());
    }
}
