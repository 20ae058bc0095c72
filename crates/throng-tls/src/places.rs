//! Places of values that never move: a slab without generations.
//!
//! A place costs no byte beside its value where the value has a niche. The engine's table has the
//! generations: a key of this crate is used by one connection, which gives it back once.

/// Chunked table of values by index.
pub(crate) struct Places<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
    len: u32,
}

impl<T> Places<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), len: 0 }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// Puts a value into the place that was freed last, or into a new one.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(index) = self.free.pop() {
            *self.place(index).expect("a free place exists") = Some(value);
            return index;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("a chunk was pushed");
        chunk.push(Some(value));
        (before + chunk.len() - 1) as u32
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.place(index)?.as_mut()
    }

    pub(crate) fn take(&mut self, index: u32) -> Option<T> {
        let value = self.place(index)?.take()?;
        self.len -= 1;
        self.free.push(index);
        Some(value)
    }

    /// Drops the value where it stands. Keys are overwritten there, and leave no copy behind.
    pub(crate) fn clear(&mut self, index: u32) {
        if let Some(place @ Some(_)) = self.place(index) {
            *place = None;
            self.len -= 1;
            self.free.push(index);
        }
    }

    fn place(&mut self, index: u32) -> Option<&mut Option<T>> {
        let index = index as usize;
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }
}

/// Places in a chunk: 144 KiB of keys.
const CHUNK: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_values_stay_where_they_are() {
        let mut places = Places::new();
        let all: Vec<u32> = (0..3_000).map(|value| places.insert(value)).collect();
        assert_eq!(all, (0..3_000).collect::<Vec<_>>());
        assert_eq!(places.take(1_024), Some(1_024));
        places.clear(7);
        places.clear(7);
        assert_eq!((places.take(1_024), places.get(7), places.len()), (None, None, 2_998));
        assert_eq!([places.insert(1), places.insert(2)], [7, 1_024]);
        assert_eq!((places.get(7), places.get(2_999)), (Some(&1), Some(&2_999)));
    }
}
