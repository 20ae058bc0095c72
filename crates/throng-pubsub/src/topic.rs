//! A topic of one core: its members, its queue, and the pass in progress.

use std::collections::VecDeque;
use std::sync::Arc;

use throng_base::Key;

use crate::members::List;
use crate::{Dialect, Frames, Policy, Publication, TopicRules};

/// A topic that has members on this core. Its publications are numbered, and every member stores
/// the number of its next one. So none is missed, doubled or delivered out of order when members
/// join or leave.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    pub(crate) rules: TopicRules,
    pub(crate) lane: u32,
    pub(crate) list: List,
    /// Publications that are in no pass yet.
    queue: VecDeque<QueuedPublication>,
    /// The weight of the queue.
    queue_bytes: usize,
    /// The number of the first publication in the queue, or of the next one.
    first: u32,
    pub(crate) pass: Option<Box<Pass>>,
    /// True while it is among the topics that have deliveries to make.
    pub(crate) is_ready: bool,
}

/// A publication, and the connection that does not receive it.
#[derive(Clone, Debug)]
pub(crate) struct QueuedPublication {
    pub(crate) publication: Arc<Publication>,
    pub(crate) except: Option<Key>,
}

/// One walk over the members, with all publications that were queued when it began.
#[derive(Debug)]
pub(crate) struct Pass {
    /// The member whose turn it is, or [`NONE`](crate::members::NONE) at the end.
    pub(crate) cursor: u32,
    /// The number of the first publication.
    first: u32,
    pub(crate) publications: Vec<QueuedPublication>,
    /// The connections with the index of a publication that they do not receive, in order.
    excepted: Vec<(Key, usize)>,
    frames: [Option<Frames>; Dialect::COUNT],
}

/// The function that makes the bytes of a publication.
pub(crate) type Render<'a> = dyn FnMut(&Publication, Dialect) -> Arc<[u8]> + 'a;

impl Topic {
    pub(crate) fn new(name: Arc<str>, rules: TopicRules, lane: u32) -> Self {
        Self {
            name,
            rules,
            lane,
            list: List::default(),
            queue: VecDeque::new(),
            queue_bytes: 0,
            first: 0,
            pass: None,
            is_ready: false,
        }
    }

    /// Returns the number of the next publication.
    pub(crate) fn next_number(&self) -> u32 {
        self.first.wrapping_add(self.queue.len() as u32)
    }

    /// Returns how many publications some members have not received yet.
    pub(crate) fn waiting(&self) -> u32 {
        let of_pass = self.pass.as_ref().map_or(0, |pass| pass.publications.len());
        (self.queue.len() + of_pass) as u32
    }

    /// Queues a publication. Returns how many the policy has dropped, which may include this one.
    pub(crate) fn queue(&mut self, queued: QueuedPublication) -> usize {
        let weight = queued.publication.weight();
        let mut dropped = 0;
        loop {
            let fits = self.queue_bytes + weight <= self.rules.backlog_bytes_max;
            match self.rules.policy {
                // A single publication always fits.
                _ if self.queue.is_empty() => break,
                Policy::KeepLatest => {}
                _ if fits => break,
                Policy::DropOldest => {}
                Policy::DropNewest | Policy::Close => return 1,
            }
            // The number of the dropped publication is not used again.
            self.take_first();
            dropped += 1;
        }
        self.queue_bytes += weight;
        self.queue.push_back(queued);
        dropped
    }

    /// Begins a pass with the queued publications that are written together. Returns false if
    /// nothing is queued.
    pub(crate) fn begin_pass(&mut self) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        let count = self.count_of_pass();
        let first = self.first;
        let publications: Vec<QueuedPublication> =
            (0..count).filter_map(|_| self.take_first()).collect();
        let mut excepted: Vec<(Key, usize)> = publications
            .iter()
            .enumerate()
            .filter_map(|(number, queued)| queued.except.map(|key| (key, number)))
            .collect();
        excepted.sort_unstable();
        self.pass = Some(Box::new(Pass {
            cursor: self.list.first,
            first,
            publications,
            excepted,
            frames: Default::default(),
        }));
        true
    }

    fn take_first(&mut self) -> Option<QueuedPublication> {
        let queued = self.queue.pop_front()?;
        self.queue_bytes -= queued.publication.weight();
        self.first = self.first.wrapping_add(1);
        Some(queued)
    }

    #[cfg(test)]
    pub(crate) fn set_first(&mut self, first: u32) {
        self.first = first;
    }

    /// Returns the number of publications that are written to a member together.
    fn count_of_pass(&self) -> usize {
        let mut bytes = 0;
        let fits = |queued: &&QueuedPublication| {
            bytes += queued.publication.weight();
            bytes <= BYTES_OF_PASS_MAX
        };
        self.queue.iter().take_while(fits).count().max(1)
    }
}

impl Pass {
    /// Returns the index in the pass of the first publication for a member whose next number is
    /// `due`. `None` if the member joined after all of them.
    pub(crate) fn first_for(&self, due: u32) -> Option<usize> {
        // The difference is small in both directions: every pass brings every member up to date.
        let behind = due.wrapping_sub(self.first).cast_signed();
        let from = behind.max(0) as usize;
        (from < self.publications.len()).then_some(from)
    }

    /// Returns the end of the run of publications from `from`: the next one that excepts the
    /// member.
    pub(crate) fn end_for(&self, key: Key, from: usize) -> usize {
        if self.excepted.is_empty() {
            return self.publications.len();
        }
        let after = self.excepted.partition_point(|excepted| *excepted < (key, from));
        match self.excepted.get(after) {
            Some((excepted, number)) if *excepted == key => *number,
            _ => self.publications.len(),
        }
    }

    /// Returns the number of the publication at index `at` of the pass.
    pub(crate) fn number(&self, at: usize) -> u32 {
        self.first.wrapping_add(at as u32)
    }

    /// Returns the frames of the pass in `dialect`.
    pub(crate) fn frames(&mut self, dialect: Dialect, render: &mut Render<'_>) -> &Frames {
        let publications = &self.publications;
        self.frames[dialect.number()].get_or_insert_with(|| match &publications[..] {
            [only] => Frames::one(render(&only.publication, dialect)),
            several => {
                let frames: Vec<_> =
                    several.iter().map(|queued| render(&queued.publication, dialect)).collect();
                Frames::join(frames.iter().map(|frame| &frame[..]))
            }
        })
    }
}

/// The maximum weight of the publications of one pass: some hundreds of short ones, or a long one.
const BYTES_OF_PASS_MAX: usize = 128 << 10;
