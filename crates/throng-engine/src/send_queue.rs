//! The send queue of a slow peer: the connection's own bytes, bytes shared with other connections,
//! and byte sources.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use throng_base::Instant;
use throng_pubsub::{Frames, Lane, Policy};

use crate::CloseReason;
use crate::record_layer::RecordLayer;

/// Bytes that the kernel has not taken yet, in the order in which they were sent. A shared frame
/// costs a pointer. A frame that the kernel has taken in part is always finished, whatever the
/// policy. A source costs only itself until its turn comes.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    segments: VecDeque<Segment>,
    bytes: usize,
    /// Sealed bytes in front of the segments. They have their place in the stream of records, so
    /// they are sent whatever a policy says, and count towards no limit.
    pub(crate) sealed: Vec<u8>,
    pub(crate) layer: RecordLayer,
    /// Bytes at the front that count towards no limit: those that one callback or one frame added
    /// to an empty queue, if they alone exceed the limit. This process chose their size, so a peer
    /// that reads them is not closed for it. For a callback, whose bytes this connection alone
    /// holds, at most [`EXEMPT_FACTOR`] times the limit.
    exempt_bytes: usize,
    /// Queued bytes of each topic. There are one or two, so a list.
    lanes: Vec<LaneBytes>,
    pub(crate) after_flush: AfterFlush,
    /// Time at which the kernel last took some of the queue.
    pub(crate) taken_at: Instant,
    /// Time since which bytes have waited here.
    pub(crate) since: Instant,
}

/// What follows when the kernel has taken the whole queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum AfterFlush {
    /// The connection goes on.
    #[default]
    GoOn,
    /// The sending direction is shut down.
    Finish,
    /// The connection is closed, for this reason.
    Close(CloseReason),
    /// The sending direction is shut down, and up to so many bytes of the peer are discarded before
    /// the connection is closed, for this reason.
    Linger { reason: CloseReason, bytes_left: usize },
}

impl AfterFlush {
    pub(crate) const fn is_linger(self) -> bool {
        matches!(self, Self::Linger { .. })
    }
}

/// Outcome of queueing frames that the kernel did not take at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOutcome {
    /// Frames that the kernel has taken completely.
    pub sent: usize,
    /// Frames that are queued now, in whole or in part.
    pub queued: usize,
    /// New frames that were dropped.
    pub dropped_newest: usize,
    /// Queued frames that were dropped to make room.
    pub dropped_oldest: usize,
    /// Queued frames that newer ones replaced.
    pub replaced: usize,
    /// The policy closes the connection.
    pub closes: bool,
}

/// Part of the queue.
#[derive(Debug)]
struct Segment {
    bytes: Bytes,
    /// Lane of the segment; [`OWN`] for the connection's own bytes.
    lane: u32,
    /// The kernel has taken a part of it.
    is_begun: bool,
}

#[derive(Debug)]
enum Bytes {
    Own { bytes: Vec<u8>, taken: usize },
    Shared { bytes: Arc<[u8]>, start: usize, end: usize },
    Source(QueuedSource),
}

/// Source that makes bytes when the kernel has room for them, so that bytes for a slow peer take no
/// memory.
pub trait ByteSource {
    /// Appends the next piece, of about `bytes` bytes. Returns false for the last piece.
    fn fill(&mut self, bytes: usize, out: &mut Vec<u8>) -> bool;
}

/// Source with a `Debug` implementation.
struct QueuedSource(Box<dyn ByteSource>);

/// Part of a message that [`Conn::send_parts`](crate::Conn::send_parts) sends.
#[derive(Clone, Copy, Debug)]
pub enum SendPart<'a> {
    /// Bytes for this connection alone; a copy of them is queued.
    Own(&'a [u8]),
    /// Bytes that many connections share; a pointer to them is queued.
    Shared(&'a Arc<[u8]>),
}

/// Queued bytes of one lane.
#[derive(Debug)]
struct LaneBytes {
    lane: u32,
    bytes: usize,
}

impl SendPart<'_> {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }

    /// Reports whether the part has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl SendQueue {
    /// Creates the queue of a connection, with sealed bytes that the kernel did not take.
    pub(crate) fn behind(sealed: Vec<u8>) -> Box<Self> {
        Box::new(Self { sealed, ..Self::default() })
    }

    /// Returns how many bytes wait until the kernel takes them.
    pub(crate) const fn pending_bytes(&self) -> usize {
        self.bytes + self.sealed.len()
    }

    /// Reports whether the queue is empty, of sources too.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.sealed.is_empty()
    }

    /// Reports whether more is queued than `bytes_max` and the exempt bytes.
    pub(crate) const fn overflows(&self, bytes_max: usize) -> bool {
        self.bytes - self.exempt_bytes > bytes_max
    }

    /// Exempts the queued bytes from the limit: one callback added all of them to an empty queue.
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

    /// Adds the parts of a message.
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

    /// Makes bytes if a source is at the front. Returns how many. Call it before [`Self::chunk`].
    ///
    /// # Errors
    /// The source panicked.
    pub(crate) fn fill_from_source(&mut self) -> Result<usize, SourcePanic> {
        let mut made = Vec::new();
        while let Some(Segment { bytes: Bytes::Source(QueuedSource(source)), .. }) =
            self.segments.front_mut()
        {
            let fill = || source.fill(COPIED_BYTES_MAX, &mut made);
            let is_last = !catch_unwind(AssertUnwindSafe(fill)).map_err(|_| SourcePanic)?;
            if is_last {
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

    /// Adds the frames of `range` as far as the policy of their lane allows. The kernel has taken
    /// the first `taken` of their bytes already, or they are sealed. `bytes_max` is the limit of
    /// the whole queue.
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
                // The end of the last frame that is sealed waits.
                let waits = taken == 0 && !self.sealed.is_empty();
                result.queued += usize::from(waits);
                result.sent += usize::from(!waits);
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
            let is_first = self.segments.is_empty();
            self.push_shared(frames.bytes(), rest, lane.id, is_begun > 0);
            if is_first && self.bytes > bytes_max {
                self.exempt_bytes = self.bytes;
            }
        }
        result
    }

    /// Returns the bytes to send next: the first segment, or several small ones that are copied
    /// together into `scratch`.
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
                // A source: its turn comes after everything before it is sent.
                break;
            }
            scratch.extend_from_slice(&rest[..rest.len().min(room)]);
            if rest.len() >= room {
                break;
            }
        }
        scratch
    }

    /// Removes the first `count` bytes, which the kernel has taken.
    pub(crate) fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        self.exempt_bytes = self.exempt_bytes.saturating_sub(count);
        while count > 0 {
            let Some(first) = self.segments.front_mut() else { break };
            let here = count.min(first.rest().len());
            first.took(here);
            count -= here;
            let (lane, is_empty) = (first.lane, first.rest().is_empty());
            self.subtract(lane, here);
            if is_empty {
                self.segments.pop_front();
            }
        }
    }

    /// Removes frames as the policy demands, and reports whether a frame of `bytes` may be queued.
    /// Removes nothing if that would not make enough room.
    fn make_room(
        &mut self,
        bytes: usize,
        lane: &Lane,
        bytes_max: usize,
        result: &mut QueueOutcome,
    ) -> bool {
        let removable = match lane.policy {
            Policy::DropOldest | Policy::KeepLatest => self.removable_bytes(lane.id),
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

    /// Reports whether a frame of `bytes` fits after `removed` bytes of its lane are removed. One
    /// frame always fits into an empty queue. A lane's own limit does not apply to the first frame
    /// of the lane, nor to the latest frame behind one that the kernel has taken in part. Lanes
    /// leave a quarter of the connection's limit to its own answers.
    fn fits(&self, bytes: usize, removed: usize, lane: &Lane, bytes_max: usize) -> bool {
        let (of_lane, of_all) = (self.lane_bytes(lane.id) - removed, self.bytes - removed);
        if of_all == 0 && self.sealed.is_empty() {
            return true;
        }
        let fits_lane = of_lane == 0
            || lane.policy == Policy::KeepLatest
            || of_lane + bytes <= lane.queue_bytes_max;
        // The exempt bytes are at the front. If they are a frame that would be removed, none
        // remain.
        let is_removed =
            removed > 0 && self.segments.front().is_some_and(|first| first.is_removable(lane.id));
        let exempt = if is_removed { 0 } else { self.exempt_bytes };
        fits_lane && of_all - exempt + bytes <= bytes_max - bytes_max / 4
    }

    /// Returns how many bytes of `lane` are queued.
    fn lane_bytes(&self, lane: u32) -> usize {
        let queued = self.lanes.iter().find(|queued| queued.lane == lane);
        queued.map_or(0, |queued| queued.bytes)
    }

    /// Returns how many bytes of `lane` a policy may remove: all, except those of a first segment
    /// that the kernel has taken in part.
    fn removable_bytes(&self, lane: u32) -> usize {
        let begun = self.segments.front().filter(|first| first.lane == lane && first.is_begun);
        self.lane_bytes(lane) - begun.map_or(0, |first| first.rest().len())
    }

    fn push_shared(&mut self, bytes: &Arc<[u8]>, rest: Range<usize>, lane: u32, is_begun: bool) {
        let Range { start, end } = rest;
        self.bytes += end - start;
        match self.lanes.iter_mut().find(|queued| queued.lane == lane) {
            Some(queued) => queued.bytes += end - start,
            None => self.lanes.push(LaneBytes { lane, bytes: end - start }),
        }
        let bytes = Bytes::Shared { bytes: Arc::clone(bytes), start, end };
        self.segments.push_back(Segment { bytes, lane, is_begun });
    }

    /// Removes the oldest frame of `lane` of which the kernel has taken nothing. Returns false if
    /// there is none.
    fn remove_oldest(&mut self, lane: u32) -> bool {
        let is_removable = |segment: &Segment| segment.is_removable(lane);
        let Some(at) = self.segments.iter().position(is_removable) else { return false };
        if let Some(segment) = self.segments.remove(at) {
            self.bytes -= segment.rest().len();
            // If the first frame is removed, it was all of the exempt bytes.
            self.exempt_bytes = if at == 0 { 0 } else { self.exempt_bytes };
            self.subtract(lane, segment.rest().len());
        }
        true
    }

    fn subtract(&mut self, lane: u32, bytes: usize) {
        if let Some(at) = self.lanes.iter().position(|queued| queued.lane == lane) {
            self.lanes[at].bytes -= bytes;
            if self.lanes[at].bytes == 0 {
                self.lanes.swap_remove(at);
            }
        }
    }
}

impl Segment {
    /// Reports whether a policy of `lane` may remove the segment.
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
            Bytes::Source(_) => {
                debug_assert!(count == 0, "the kernel took bytes that were not made")
            }
        }
    }
}

impl fmt::Debug for QueuedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// Error: a source panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourcePanic;

/// Lane of the connection's own bytes.
const OWN: u32 = 0;
/// Multiple of `pending_bytes_max` that one callback may add to an empty queue: an answer of 8 MiB
/// at the default.
const EXEMPT_FACTOR: usize = 8;
/// Segments smaller than this are sent together; a source makes this many bytes at a time.
const COPIED_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests;
