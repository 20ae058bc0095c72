//! The table of a core's connections: chunked, so that it grows without copying, and generational,
//! so that the key of a closed connection finds nothing.

use std::fmt;

/// Key of a value: its place in the table, and the generation of that place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Creates a key from its parts. A key that no table returned finds nothing.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// Returns the place in the table.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Returns the generation, which counts the occupants of the place.
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}v{}", self.index, self.generation)
    }
}

/// Chunked generational slab. An entry costs eight bytes beside its value. Memory is touched only
/// as far as the table was ever filled.
pub struct Slab<T> {
    /// Every chunk has room for `CHUNK` entries from the start, so entries never move.
    chunks: Vec<Vec<Entry<T>>>,
    free: u32,
    len: u32,
}

struct Entry<T> {
    generation: u32,
    /// Next free place, if this one is free; meaningless otherwise.
    next_free: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    /// Bytes of memory for each value, the value's own included.
    pub const ENTRY_BYTES: usize = size_of::<Entry<T>>();

    /// Creates an empty table, which owns no memory yet.
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, len: 0 }
    }

    /// Returns the number of values.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Reports whether the table is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts `value` into the place that was freed last, or into a new one.
    ///
    /// # Panics
    /// If 2^32 - 1 places are in use. The fd limit of a core is far below.
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

    /// Removes the value. Its key finds nothing from now on.
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

    /// Gives the value a new key. The old key finds nothing from now on.
    pub fn renew(&mut self, key: Key) -> Option<Key> {
        self.get(key)?;
        let entry = self.entry(key.index);
        entry.generation = entry.generation.wrapping_add(1);
        Some(Key { index: key.index, generation: entry.generation })
    }

    /// Returns the value of `key`, if it is in the table.
    pub fn get(&self, key: Key) -> Option<&T> {
        let entry = self.chunks.get(chunk_of(key.index))?.get(place_in_chunk(key.index))?;
        if entry.generation == key.generation { entry.value.as_ref() } else { None }
    }

    /// Returns the value of `key` for changes, if it is in the table.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.chunks.get_mut(chunk_of(key.index))?.get_mut(place_in_chunk(key.index))?;
        if entry.generation == key.generation { entry.value.as_mut() } else { None }
    }

    /// Returns the present value at `index`.
    pub fn at(&mut self, index: u32) -> Option<&mut T> {
        self.chunks.get_mut(chunk_of(index))?.get_mut(place_in_chunk(index))?.value.as_mut()
    }

    /// Returns the key of the present value at `index`.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let entry = self.chunks.get(chunk_of(index))?.get(place_in_chunk(index))?;
        entry.value.as_ref().map(|_| Key { index, generation: entry.generation })
    }

    /// Returns the keys of all values, in the order of their places.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        (0..self.places()).filter_map(|index| self.key_at(index))
    }

    /// Returns how many places were ever in use.
    pub fn places(&self) -> u32 {
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

/// Entries in a chunk. At 100 bytes each, a chunk has 100 KB, so 50 cores waste little.
const CHUNK: u32 = 1024;
/// No place.
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::Prng;

    #[test]
    fn the_key_of_a_removed_value_finds_nothing() {
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
    fn only_the_new_key_finds_a_renewed_value() {
        let mut slab = Slab::new();
        let old = slab.insert(1);
        let new = slab.renew(old).unwrap();
        assert_eq!((slab.get(old), slab.get(new)), (None, Some(&1)));
    }

    #[test]
    fn behaves_as_a_map_under_random_use() {
        let (mut slab, mut model, mut prng) = (Slab::new(), HashMap::new(), Prng::new(3));
        let mut keys: Vec<Key> = Vec::new();
        // Miri would take hours for as many steps as a compiled program.
        let steps: u64 = if cfg!(miri) { 500 } else { 50_000 };
        for step in 0..steps {
            if prng.below(5) < 3 || keys.is_empty() {
                let key = slab.insert(step);
                assert!(model.insert(key, step).is_none(), "the table returned a key twice");
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
