//! The reader of other nodes' batches: each batch once.

use throng_base::Instant;

use super::batch::{self, SharedPublication};
use super::id::NodeId;
use super::packet::{Header, PacketKind};
use super::wire::Decoder;

/// Reads the batches of other nodes. It refuses the node's own, which the bus brings back, and
/// those that come a second time, as they may while a node passes from topics to shards.
#[derive(Debug)]
pub struct BatchFilter {
    own: NodeId,
    windows: Vec<Window>,
}

/// The reason why a batch is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRefusal {
    /// This node has published it.
    Own,
    /// It has come before.
    Duplicate,
    /// It is not a batch, or one of another version.
    Malformed,
}

/// The numbers of the batches that have come from one node.
#[derive(Debug)]
struct Window {
    from: NodeId,
    /// The largest number.
    latest: u64,
    /// A bit for each of the last [`WINDOW`] numbers.
    bits: Box<[u64; WINDOW / 64]>,
    used_at: Instant,
}

impl BatchFilter {
    /// Makes the filter of a node.
    pub fn new(own: NodeId) -> Self {
        Self { own, windows: Vec::new() }
    }

    /// Reads a batch.
    ///
    /// # Errors
    /// Returns the reason why its publications must not be delivered.
    pub fn read<'a>(
        &mut self,
        now: Instant,
        payload: &'a [u8],
    ) -> Result<Vec<SharedPublication<'a>>, BatchRefusal> {
        let mut rest = Decoder(payload);
        let header = Header::decode(&mut rest).ok_or(BatchRefusal::Malformed)?;
        if header.kind != PacketKind::Batch {
            return Err(BatchRefusal::Malformed);
        }
        if header.from == self.own {
            return Err(BatchRefusal::Own);
        }
        let (number, publications) = batch::decode(&mut rest).ok_or(BatchRefusal::Malformed)?;
        let window = self.window(now, header.from);
        if window.insert(number) { Ok(publications) } else { Err(BatchRefusal::Duplicate) }
    }

    /// Returns the window of a node.
    fn window(&mut self, now: Instant, from: NodeId) -> &mut Window {
        let place = match self.windows.iter().position(|window| window.from == from) {
            Some(place) => place,
            None => {
                if self.windows.len() == WINDOWS_MAX {
                    let oldest = self.windows.iter().enumerate().min_by_key(|(_, w)| w.used_at);
                    let oldest = oldest.map_or(0, |(place, _)| place);
                    self.windows.swap_remove(oldest);
                }
                let bits = Box::new([0; WINDOW / 64]);
                self.windows.push(Window { from, latest: 0, bits, used_at: now });
                self.windows.len() - 1
            }
        };
        self.windows[place].used_at = now;
        &mut self.windows[place]
    }
}

impl Window {
    /// Adds a number. Returns false if it was there, or is too old to tell.
    fn insert(&mut self, number: u64) -> bool {
        if number > self.latest {
            if number - self.latest >= WINDOW as u64 {
                self.bits.fill(0);
            } else {
                (self.latest + 1..number).for_each(|skipped| self.set(skipped, false));
            }
            self.latest = number;
            self.set(number, true);
            return true;
        }
        let is_new = self.latest - number < WINDOW as u64 && !self.has(number);
        if is_new {
            self.set(number, true);
        }
        is_new
    }

    fn has(&self, number: u64) -> bool {
        let place = (number % WINDOW as u64) as usize;
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }

    fn set(&mut self, number: u64, is_set: bool) {
        let place = (number % WINDOW as u64) as usize;
        let bit = 1 << (place % 64);
        let word = &mut self.bits[place / 64];
        *word = if is_set { *word | bit } else { *word & !bit };
    }
}

/// The numbers that a window tells apart. The batches of one node under two subjects may overtake
/// each other by a few; so many is out of reach.
const WINDOW: usize = 1 << 16;
/// The nodes whose batches are told apart, 8 KiB each. The one that was silent for the longest time
/// makes room.
const WINDOWS_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::nodes::{NodeSubjects, PublicationBatches};

    fn node(name: &str) -> NodeId {
        NodeId::new(name, 1)
    }

    fn batches(name: &str, said: &[(&str, &[u8])]) -> Vec<Vec<u8>> {
        let mut batches = PublicationBatches::new(node(name), NodeSubjects::new("g"));
        said.iter().for_each(|(topic, body)| batches.add(topic, |out| out.extend_from_slice(body)));
        batches.take().map(|batch| batch.payload).collect()
    }

    #[test]
    fn publications_come_as_they_were_published_and_once() {
        let said: &[(&str, &[u8])] = &[("a", b"1"), ("b", b""), ("a", b"three")];
        let batches = batches("one", said);
        assert_eq!(batches.len(), 2);
        let mut filter = BatchFilter::new(node("two"));
        let read = filter.read(Instant::ZERO, &batches[0]).unwrap();
        let expected = [("a", &b"1"[..]), ("a", b"three")];
        assert_eq!(read, expected.map(|(topic, body)| SharedPublication { topic, body }));
        assert_eq!(filter.read(Instant::ZERO, &batches[0]), Err(BatchRefusal::Duplicate));
        assert_eq!(filter.read(Instant::ZERO, &batches[1]).unwrap().len(), 1);
        let mut own = BatchFilter::new(node("one"));
        assert_eq!(own.read(Instant::ZERO, &batches[0]), Err(BatchRefusal::Own));
    }

    #[test]
    fn a_node_that_starts_again_counts_from_one_again() {
        let mut filter = BatchFilter::new(node("two"));
        for epoch in [1, 2] {
            let mut batches =
                PublicationBatches::new(NodeId::new("one", epoch), NodeSubjects::new("g"));
            batches.add("a", |_| {});
            let payload = batches.take().next().unwrap().payload;
            assert!(filter.read(Instant::ZERO, &payload).is_ok());
        }
    }

    #[test]
    fn a_long_batch_is_closed_and_the_order_stays() {
        let mut batches = PublicationBatches::new(node("one"), NodeSubjects::new("g"));
        for n in 0..10_u8 {
            batches.add("a", |out| out.resize(out.len() + 20_000, n));
        }
        let all: Vec<_> = batches.take().collect();
        assert!(all.len() > 2 && batches.is_empty());
        assert!(all.iter().all(|batch| batch.payload.len() < 100_000));
        let mut filter = BatchFilter::new(node("two"));
        let mut seen = Vec::new();
        for batch in &all {
            let read = filter.read(Instant::ZERO, &batch.payload).unwrap();
            assert_eq!(read.len(), batch.publications as usize);
            seen.extend(read.iter().map(|publication| publication.body[0]));
        }
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn a_number_is_new_once(numbers in prop::collection::vec(1_u64..200_000, 0..400)) {
            let mut filter = BatchFilter::new(node("two"));
            let window = filter.window(Instant::ZERO, node("one"));
            let mut seen = BTreeSet::new();
            for number in numbers {
                let latest = seen.last().copied().unwrap_or(0);
                let is_too_old = number + WINDOW as u64 <= latest;
                prop_assert_eq!(window.insert(number), !is_too_old && seen.insert(number));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in 0_usize..100,
            place in 0_usize..100,
        ) {
            let mut filter = BatchFilter::new(node("two"));
            _ = filter.read(Instant::ZERO, &bytes);
            let mut real = batches("one", &[("topic", b"body"), ("topic", b"more")]).remove(0);
            real.truncate(cut);
            if let Some(byte) = real.get_mut(place) {
                *byte ^= bytes.first().copied().unwrap_or(1);
            }
            _ = filter.read(Instant::ZERO, &real);
        }
    }
}
