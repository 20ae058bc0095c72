//! `/proc/slabinfo`: the real sizes of the kernel's objects on this machine. Only root may read it.

use std::collections::BTreeMap;

use crate::fact::ParseFailure;
use crate::text::next;

/// File with the caches.
pub const PATH: &str = "proc/slabinfo";

/// The caches, by name.
pub type SlabCaches = BTreeMap<String, SlabCache>;

/// A cache of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabCache {
    /// Objects in use, as far as the kernel counts them: objects in a CPU's own list count as used.
    pub active: u64,
    /// Bytes of an object.
    pub object_bytes: u64,
    /// Objects in a slab.
    pub objects_per_slab: u64,
    /// Pages of a slab.
    pub pages_per_slab: u64,
}

impl SlabCache {
    /// Returns the bytes of an object with its share of the slab's rest.
    pub fn cost_bytes(&self, page_bytes: u64) -> u64 {
        let slab_bytes = self.pages_per_slab.saturating_mul(page_bytes);
        slab_bytes.div_ceil(self.objects_per_slab.max(1)).max(self.object_bytes)
    }
}

/// Parses version 2 of the format, which every kernel since 2.6.10 writes.
pub fn parse(text: &str) -> Result<SlabCaches, ParseFailure> {
    if !text.starts_with("slabinfo - version: 2") {
        return Err(ParseFailure("version 2 of the format"));
    }
    let mut slabs = SlabCaches::new();
    for line in text.lines().skip(1).filter(|line| !line.starts_with('#')) {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let active = next(&mut words)?;
        let _all = next(&mut words)?;
        let slab = SlabCache {
            active,
            object_bytes: next(&mut words)?,
            objects_per_slab: next(&mut words)?,
            pages_per_slab: next(&mut words)?,
        };
        slabs.insert(name.to_owned(), slab);
    }
    Ok(slabs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn an_object_costs_its_share_of_a_slab() {
        let slabs = parse(&recorded("linux-6.18", PATH)).unwrap();
        let tcp = slabs["TCP"];
        assert_eq!((tcp.object_bytes, tcp.objects_per_slab, tcp.pages_per_slab), (2368, 13, 8));
        assert_eq!(tcp.cost_bytes(4096), 8 * 4096 / 13 + 1);
        assert_eq!(slabs["eventpoll_epi"].cost_bytes(4096), 128, "32 of them fill a page");
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "slabinfo - version: 1.1\n", "slabinfo - version: 2.1\nTCP 1 2\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
