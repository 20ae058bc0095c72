//! What waits for a peer that does not read: its own bytes, bytes that it shares with others, and
//! sources of bytes.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use throng_base::Instant;
use throng_pubsub::{Frames, Lane, Policy};

use crate::CloseReason;

/// Everything that the kernel has not taken yet, in the order in which it was sent. A shared frame costs a pointer; one that
/// has been begun is finished, whatever a policy says. A source costs itself until its turn comes.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    segments: VecDeque<Segment>,
    bytes: usize,
    /// The first so many of them count towards no limit: what one callback or one frame has added while nothing waited, if that
    /// alone was more than may wait. It is this end that chose its size, so a peer that reads is not to be closed for it.
    /// Of a callback's bytes, which this connection alone holds, it is at most [`EXCUSED_TIMES`] the limit.
    exempt_bytes: usize,
    /// What waits of each topic. One or two, so a list.
    lanes: Vec<LaneBytes>,
    pub(crate) after_flush: AfterFlush,
    /// When the kernel last took some of it.
    pub(crate) taken_at: Instant,
}

/// What happens once everything that waits has left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum AfterFlush {
    /// The connection goes on.
    #[default]
    GoOn,
    /// Nothing more is sent.
    Finish,
    /// The connection is closed, for this reason.
    Close(CloseReason),
}

/// What became of frames that could not be sent at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOutcome {
    /// Frames that the kernel has taken whole.
    pub sent: usize,
    /// Frames that wait now, in whole or in part.
    pub queued: usize,
    /// Frames that were not queued.
    pub dropped_newest: usize,
    /// Frames that had waited and made room.
    pub dropped_oldest: usize,
    /// Frames that had waited and that newer ones took the place of.
    pub replaced: usize,
    /// The policy closes the connection.
    pub closes: bool,
}

#[derive(Debug)]
struct Segment {
    bytes: Bytes,
    /// The lane; 0 for the connection's own.
    lane: u32,
    /// The kernel has taken some of it.
    is_begun: bool,
}

#[derive(Debug)]
enum Bytes {
    Own { bytes: Vec<u8>, taken: usize },
    Shared { bytes: Arc<[u8]>, start: usize, end: usize },
    Source(QueuedSource),
}

/// Makes bytes when the kernel has room for them, so that what a slow peer does not read takes no
/// memory.
pub trait ByteSource {
    /// Appends the next piece, of about `bytes` bytes. False when it was the last one.
    fn fill(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool;
}

/// A source, with a `Debug` of its own.
struct QueuedSource(Box<dyn ByteSource>);

/// A piece of what is sent together.
#[derive(Clone, Copy, Debug)]
pub enum SendPart<'a> {
    /// Bytes for this connection alone: copied where they have to wait.
    Own(&'a [u8]),
    /// Bytes that many connections share: a pointer where they have to wait.
    Shared(&'a Arc<[u8]>),
}

#[derive(Debug)]
struct LaneBytes {
    lane: u32,
    bytes: usize,
}

impl SendPart<'_> {
    /// How many bytes it is.
    pub fn len(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl SendQueue {
    /// How many bytes wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits, no source either.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether more waits than may: `bytes_max`, and what is excused.
    pub(crate) const fn overflows(&self, bytes_max: usize) -> bool {
        self.bytes - self.exempt_bytes > bytes_max
    }

    /// All that waits was added by one callback, while nothing waited.
    pub(crate) fn exempt(&mut self, bytes_max: usize) {
        if self.bytes > bytes_max {
            self.exempt_bytes = self.bytes.min(bytes_max.saturating_mul(EXEMPT_FACTOR));
        }
    }

    /// Adds the connection's own bytes.
    pub(crate) fn push(&mut self, new: &[u8]) {
        if new.is_empty() {
            return;
        }
        self.bytes += new.len();
        if let Some(Segment { bytes: Bytes::Own { bytes, taken }, .. }) = self.segments.back_mut() {
            if *taken > 0 && *taken >= bytes.len() / 2 {
                bytes.drain(..*taken);
                *taken = 0;
            }
            bytes.extend_from_slice(new);
        } else {
            let bytes = Bytes::Own { bytes: new.to_vec(), taken: 0 };
            self.segments.push_back(Segment { bytes, lane: OWN, is_begun: false });
        }
    }

    /// Adds what is sent together.
    pub(crate) fn push_parts(&mut self, parts: &[SendPart<'_>]) {
        for part in parts {
            match part {
                SendPart::Own(bytes) => self.push(bytes),
                SendPart::Shared(bytes) if bytes.is_empty() => {}
                SendPart::Shared(shared) => {
                    self.bytes += shared.len();
                    let bytes =
                        Bytes::Shared { bytes: Arc::clone(shared), start: 0, end: shared.len() };
                    self.segments.push_back(Segment { bytes, lane: OWN, is_begun: false });
                }
            }
        }
    }

    /// Adds a source.
    pub(crate) fn push_source(&mut self, source: Box<dyn ByteSource>) {
        let bytes = Bytes::Source(QueuedSource(source));
        self.segments.push_back(Segment { bytes, lane: OWN, is_begun: false });
    }

    /// Has bytes made if it is a source's turn, and says how many: to be called before
    /// [`Self::chunk`].
    ///
    /// # Errors
    /// The source has panicked.
    pub(crate) fn fill_from_source(&mut self) -> Result<usize, SourcePanic> {
        let mut made = Vec::new();
        while let Some(Segment { bytes: Bytes::Source(QueuedSource(source)), .. }) =
            self.segments.front_mut()
        {
            let fill = || source.fill(COPIED_BYTES_MAX, &mut made);
            let is_over = !catch_unwind(AssertUnwindSafe(fill)).map_err(|_| SourcePanic)?;
            if is_over {
                self.segments.pop_front();
            }
            if !made.is_empty() {
                let count = made.len();
                self.bytes += count;
                let bytes = Bytes::Own { bytes: made, taken: 0 };
                self.segments.push_front(Segment { bytes, lane: OWN, is_begun: false });
                return Ok(count);
            }
        }
        Ok(0)
    }

    /// Adds the frames of `range`, of whose bytes the kernel has taken `taken` already, as far as the policy of
    /// their lane allows. `bytes_max` is what may wait in all.
    pub(crate) fn push_frames(
        &mut self,
        frames: &Frames,
        range: Range<usize>,
        mut taken: usize,
        lane: &Lane,
        bytes_max: usize,
    ) -> QueueOutcome {
        let mut result = QueueOutcome::default();
        for number in range {
            let span = frames.span(number..number + 1);
            if taken >= span.len() {
                taken -= span.len();
                result.sent += 1;
                continue;
            }
            let is_begun = std::mem::take(&mut taken);
            let rest = span.start + is_begun..span.end;
            if is_begun == 0 && !self.make_room(rest.len(), lane, bytes_max, &mut result) {
                continue;
            }
            if result.closes {
                break;
            }
            result.queued += 1;
            let is_first = self.is_empty();
            self.push_shared(frames.bytes(), rest, lane.id, is_begun > 0);
            if is_first && self.bytes > bytes_max {
                self.exempt_bytes = self.bytes;
            }
        }
        result
    }

    /// What is to be handed to the kernel next: the first segment, or several small ones, copied together in `scratch`.
    pub(crate) fn chunk<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(first) = self.segments.front() else { return &[] };
        if self.segments.len() == 1 || first.rest().len() >= COPIED_BYTES_MAX {
            return first.rest();
        }
        scratch.clear();
        for segment in &self.segments {
            let room = COPIED_BYTES_MAX - scratch.len();
            let rest = segment.rest();
            if rest.is_empty() {
                // A source: its turn comes once everything before it is taken.
                break;
            }
            scratch.extend_from_slice(&rest[..rest.len().min(room)]);
            if rest.len() >= room {
                break;
            }
        }
        scratch
    }

    /// The kernel has taken `count` bytes.
    pub(crate) fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        self.exempt_bytes = self.exempt_bytes.saturating_sub(count);
        while count > 0 {
            let Some(first) = self.segments.front_mut() else { break };
            let here = count.min(first.rest().len());
            first.took(here);
            count -= here;
            let (lane, is_over) = (first.lane, first.rest().is_empty());
            self.forget(lane, here);
            if is_over {
                self.segments.pop_front();
            }
        }
    }

    /// Whether a frame of `bytes` may be queued, after what its policy removes for it. Nothing is removed where that would
    /// not make room.
    fn make_room(
        &mut self,
        bytes: usize,
        lane: &Lane,
        bytes_max: usize,
        result: &mut QueueOutcome,
    ) -> bool {
        let removable = match lane.policy {
            Policy::DropOldest | Policy::KeepLatest => self.removable(lane.id),
            Policy::DropNewest | Policy::Close => 0,
        };
        if !self.fits(bytes, removable, lane, bytes_max) {
            result.closes = lane.policy == Policy::Close;
            result.dropped_newest += usize::from(!result.closes);
            return result.closes;
        }
        match lane.policy {
            Policy::KeepLatest => {
                while self.remove_oldest(lane.id) {
                    result.replaced += 1;
                }
            }
            Policy::DropOldest => {
                while !self.fits(bytes, 0, lane, bytes_max) && self.remove_oldest(lane.id) {
                    result.dropped_oldest += 1;
                }
            }
            Policy::DropNewest | Policy::Close => {}
        }
        true
    }

    /// Whether a frame of `bytes` fits once so many bytes of its lane are `removed`. One frame always fits where nothing
    /// else waits; into an empty lane, whatever the lane's own limit; and the latest behind one that is begun. Lanes
    /// leave a quarter of the connection's room to its own answers.
    fn fits(&self, bytes: usize, removed: usize, lane: &Lane, bytes_max: usize) -> bool {
        let (of_lane, of_all) = (self.bytes_of(lane.id) - removed, self.bytes - removed);
        if of_all == 0 {
            return true;
        }
        let fits_lane = of_lane == 0
            || lane.policy == Policy::KeepLatest
            || of_lane + bytes <= lane.queue_bytes_max;
        // What is excused stands first. Where that is a frame which would be removed, nothing of the rest is.
        let is_removed =
            removed > 0 && self.segments.front().is_some_and(|first| first.is_removable(lane.id));
        let excused = if is_removed { 0 } else { self.exempt_bytes };
        fits_lane && of_all - excused + bytes <= bytes_max - bytes_max / 4
    }

    /// Bytes of `lane` that wait.
    fn bytes_of(&self, lane: u32) -> usize {
        let waiting = self.lanes.iter().find(|waiting| waiting.lane == lane);
        waiting.map_or(0, |waiting| waiting.bytes)
    }

    /// Those of them that belong to frames which have not been begun: all, unless the first segment is of the lane.
    fn removable(&self, lane: u32) -> usize {
        let begun = self.segments.front().filter(|first| first.lane == lane && first.is_begun);
        self.bytes_of(lane) - begun.map_or(0, |first| first.rest().len())
    }

    fn push_shared(&mut self, bytes: &Arc<[u8]>, rest: Range<usize>, lane: u32, is_begun: bool) {
        let Range { start, end } = rest;
        self.bytes += end - start;
        match self.lanes.iter_mut().find(|waiting| waiting.lane == lane) {
            Some(waiting) => waiting.bytes += end - start,
            None => self.lanes.push(LaneBytes { lane, bytes: end - start }),
        }
        let bytes = Bytes::Shared { bytes: Arc::clone(bytes), start, end };
        self.segments.push_back(Segment { bytes, lane, is_begun });
    }

    /// Removes the oldest frame of `lane` that has not been begun. False when there is none.
    fn remove_oldest(&mut self, lane: u32) -> bool {
        let is_it = |segment: &Segment| segment.is_removable(lane);
        let Some(at) = self.segments.iter().position(is_it) else { return false };
        if let Some(segment) = self.segments.remove(at) {
            self.bytes -= segment.rest().len();
            // A frame that stands first is all that may have been excused.
            self.exempt_bytes = if at == 0 { 0 } else { self.exempt_bytes };
            self.forget(lane, segment.rest().len());
        }
        true
    }

    fn forget(&mut self, lane: u32, bytes: usize) {
        if let Some(at) = self.lanes.iter().position(|waiting| waiting.lane == lane) {
            self.lanes[at].bytes -= bytes;
            if self.lanes[at].bytes == 0 {
                self.lanes.swap_remove(at);
            }
        }
    }
}

impl Segment {
    /// Whether a policy of `lane` may remove it.
    fn is_removable(&self, lane: u32) -> bool {
        self.lane == lane && !self.is_begun
    }

    fn rest(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Own { bytes, taken } => &bytes[*taken..],
            Bytes::Shared { bytes, start, end } => &bytes[*start..*end],
            Bytes::Source(_) => &[],
        }
    }

    fn took(&mut self, count: usize) {
        self.is_begun = true;
        match &mut self.bytes {
            Bytes::Own { taken, .. } => *taken += count,
            Bytes::Shared { start, .. } => *start += count,
            Bytes::Source(_) => debug_assert!(count == 0, "what was not made was taken"),
        }
    }
}

impl fmt::Debug for QueuedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// A source has panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourcePanic;

/// The lane of the connection's own bytes.
const OWN: u32 = 0;
/// How many times `pending_bytes_max` one callback may add for one connection while nothing waits
/// for it: an answer of 8 MiB at the default.
const EXEMPT_FACTOR: usize = 8;
/// Segments smaller than this are handed to the kernel together; sources make so much at a time.
const COPIED_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests;
