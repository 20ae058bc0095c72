//! What waits for a peer that does not read: its own bytes, and frames that it shares with others.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use throng_base::Instant;
use throng_pubsub::{Frames, Lane, Policy};

use crate::CloseReason;

/// Everything that the kernel has not taken yet, in the order in which it was sent. A shared frame costs a pointer; one that
/// has been begun is finished, whatever a policy says.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    segments: VecDeque<Segment>,
    bytes: usize,
    /// The first so many of them count towards no limit: what one callback or one frame has added while nothing waited, if that
    /// alone was more than may wait. It is this end that chose its size, so a peer that reads is not to be closed for it.
    excused: usize,
    /// What waits of each topic. One or two, so a list.
    lanes: Vec<Waiting>,
    pub(crate) then: Then,
    /// When the kernel last took some of it.
    pub(crate) taken_at: Instant,
}

/// What happens once everything that waits has left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Then {
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
pub struct Queued {
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
}

#[derive(Debug)]
struct Waiting {
    lane: u32,
    bytes: usize,
}

impl Pending {
    /// How many bytes wait.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether more waits than may: `bytes_max`, and what is excused.
    pub(crate) const fn overflows(&self, bytes_max: usize) -> bool {
        self.bytes - self.excused > bytes_max
    }

    /// All that waits was added together, while nothing waited.
    pub(crate) const fn excuse(&mut self, bytes_max: usize) {
        if self.bytes > bytes_max {
            self.excused = self.bytes;
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

    /// Adds the frames of `range`, of whose bytes the kernel has taken `taken` already, as far as the policy of
    /// their lane allows. `bytes_max` is what may wait in all.
    pub(crate) fn push_frames(
        &mut self,
        frames: &Frames,
        range: Range<usize>,
        mut taken: usize,
        lane: &Lane,
        bytes_max: usize,
    ) -> Queued {
        let mut result = Queued::default();
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
            if is_first {
                self.excuse(bytes_max);
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
            scratch.extend_from_slice(&rest[..rest.len().min(room)]);
            if rest.len() >= room {
                break;
            }
        }
        scratch
    }

    /// The kernel has taken `count` bytes.
    pub(crate) fn took(&mut self, mut count: usize) {
        self.bytes -= count;
        self.excused = self.excused.saturating_sub(count);
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
        result: &mut Queued,
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
        let excused = if is_removed { 0 } else { self.excused };
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
            None => self.lanes.push(Waiting { lane, bytes: end - start }),
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
            self.excused = if at == 0 { 0 } else { self.excused };
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
        }
    }

    fn took(&mut self, count: usize) {
        self.is_begun = true;
        match &mut self.bytes {
            Bytes::Own { taken, .. } => *taken += count,
            Bytes::Shared { start, .. } => *start += count,
        }
    }
}

/// The lane of the connection's own bytes.
const OWN: u32 = 0;
/// Segments smaller than this are handed to the kernel together.
const COPIED_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 1_000;

    fn lane(policy: Policy, queue_bytes_max: usize) -> Lane {
        Lane { id: 1, policy, queue_bytes_max }
    }

    /// Queues each frame by itself; returns what was counted in all.
    fn push(pending: &mut Pending, frames: &[&str], lane: &Lane) -> Queued {
        let mut all = Queued::default();
        for frame in frames {
            let frames = Frames::one(frame.as_bytes().into());
            let queued = pending.push_frames(&frames, 0..1, 0, lane, BYTES_MAX);
            all.queued += queued.queued;
            all.dropped_newest += queued.dropped_newest;
            all.dropped_oldest += queued.dropped_oldest;
            all.replaced += queued.replaced;
            all.closes |= queued.closes;
        }
        all
    }

    fn content(pending: &Pending) -> String {
        let text = pending.chunk(&mut Vec::new()).to_vec();
        assert_eq!(text.len(), pending.bytes());
        assert_eq!(pending.bytes() == 0, pending.is_empty());
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn own_bytes_and_frames_leave_in_the_order_in_which_they_were_sent() {
        let mut pending = Pending::default();
        let lane = lane(Policy::Close, 100);
        pending.push(b"ab");
        push(&mut pending, &["cd", "ef"], &lane);
        pending.push(b"gh");
        pending.push(b"ij");
        assert_eq!(content(&pending), "abcdefghij");
        pending.took(3);
        assert_eq!(content(&pending), "defghij");
        pending.took(4);
        pending.push(b"k");
        assert_eq!(content(&pending), "hijk");
        pending.took(4);
        assert!(pending.is_empty() && pending.lanes.is_empty() && pending.segments.is_empty());
    }

    #[test]
    fn a_full_lane_refuses_what_is_new() {
        let mut pending = Pending::default();
        let queued = push(&mut pending, &["aa", "bb", "cc", "d"], &lane(Policy::DropNewest, 5));
        assert_eq!((queued.queued, queued.dropped_newest), (3, 1));
        assert_eq!(content(&pending), "aabbd");
    }

    #[test]
    fn a_full_lane_forgets_what_is_old_but_finishes_what_is_begun() {
        let mut pending = Pending::default();
        let lane = lane(Policy::DropOldest, 5);
        push(&mut pending, &["aa", "bb"], &lane);
        pending.took(1);
        let queued = push(&mut pending, &["cc", "dd"], &lane);
        assert_eq!((queued.queued, queued.dropped_oldest, queued.dropped_newest), (2, 1, 0));
        assert_eq!(content(&pending), "accdd");
    }

    #[test]
    fn the_latest_takes_the_place_of_the_one_that_waits() {
        let mut pending = Pending::default();
        let lane = lane(Policy::KeepLatest, 100);
        push(&mut pending, &["aa"], &lane);
        pending.took(1);
        pending.push(b"-");
        let queued = push(&mut pending, &["bb", "cc", "dd"], &lane);
        assert_eq!((queued.queued, queued.replaced), (3, 2));
        assert_eq!(content(&pending), "a-dd");
    }

    #[test]
    fn the_latest_waits_however_large_the_one_is_that_is_begun() {
        let mut pending = Pending::default();
        let lane = lane(Policy::KeepLatest, 5);
        push(&mut pending, &["aaaa"], &lane);
        pending.took(1);
        let queued = push(&mut pending, &["bb", "cccc"], &lane);
        assert_eq!((queued.replaced, queued.dropped_newest), (1, 0));
        assert_eq!(content(&pending), "aaacccc");
    }

    #[test]
    fn nothing_old_is_forgotten_for_what_does_not_fit_all_the_same() {
        for policy in [Policy::DropOldest, Policy::KeepLatest] {
            let mut pending = Pending::default();
            pending.push(&[b'-'; 740]);
            let mut lane = lane(policy, 500);
            lane.id = 2;
            push(&mut pending, &["old"], &lane);
            let queued = push(&mut pending, &["too large"; 2], &lane);
            let dropped = (queued.dropped_newest, queued.dropped_oldest + queued.replaced);
            assert_eq!(dropped, (0, 2), "the first nine bytes fit in place of three: {policy}");
            let queued = push(&mut pending, &["eleven byte"], &lane);
            let dropped = (queued.dropped_newest, queued.dropped_oldest + queued.replaced);
            assert_eq!(dropped, (1, 0), "{policy}");
            assert!(content(&pending).ends_with("too large"));
        }
    }

    #[test]
    fn a_full_lane_closes_and_one_frame_always_fits() {
        let mut pending = Pending::default();
        let lane = lane(Policy::Close, 1);
        assert!(!push(&mut pending, &["aaaa"], &lane).closes);
        assert!(push(&mut pending, &["b"], &lane).closes);
        assert_eq!(content(&pending), "aaaa");
    }

    #[test]
    fn lanes_have_their_own_limits_and_leave_room_for_answers() {
        let mut pending = Pending::default();
        let (one, mut other) = (lane(Policy::DropNewest, 500), lane(Policy::DropOldest, 500));
        other.id = 2;
        let frame = "x".repeat(240);
        assert_eq!(push(&mut pending, &[&frame, &frame, &frame], &one).dropped_newest, 1);
        let queued = push(&mut pending, &[&frame, &frame], &other);
        assert_eq!((queued.queued, queued.dropped_oldest, queued.dropped_newest), (2, 1, 0));
        assert_eq!(pending.bytes(), 720);
        let queued = push(&mut pending, &["y".repeat(31).as_str()], &one);
        assert_eq!(queued.dropped_newest, 1, "three quarters are full");
    }

    #[test]
    fn one_frame_fits_where_nothing_waits_however_large_it_is() {
        let large = "x".repeat(3 * BYTES_MAX);
        for policy in [Policy::DropNewest, Policy::DropOldest, Policy::KeepLatest, Policy::Close] {
            let mut pending = Pending::default();
            let mut lane = lane(policy, 10);
            let queued = push(&mut pending, &[&large], &lane);
            assert_eq!((queued.queued, queued.closes), (1, false), "{policy}");
            assert!(!pending.overflows(BYTES_MAX), "{policy}");
            pending.took(1);
            // Behind it there is as much room as ever, and no more.
            lane.id = 2;
            push(&mut pending, &["a"], &lane);
            pending.push(&[b'b'; 999]);
            assert!(!pending.overflows(BYTES_MAX), "{policy}");
            pending.push(b"c");
            assert!(pending.overflows(BYTES_MAX), "{policy}");
            pending.took(large.len() - 2);
            assert_eq!((pending.bytes(), pending.overflows(BYTES_MAX)), (1_002, true));
            pending.took(2);
            assert!(!pending.overflows(BYTES_MAX), "{policy}");
        }
    }

    #[test]
    fn a_second_frame_that_is_too_large_obeys_its_policy() {
        let large = "x".repeat(3 * BYTES_MAX);
        let check = |policy, is_begun: usize| {
            let mut pending = Pending::default();
            let lane = lane(policy, usize::MAX);
            push(&mut pending, &[&large], &lane);
            pending.took(is_begun);
            let queued = push(&mut pending, &[&large], &lane);
            assert!(pending.bytes() <= large.len() && !pending.overflows(BYTES_MAX), "{policy}");
            (queued.dropped_newest, queued.dropped_oldest + queued.replaced, queued.closes)
        };
        assert_eq!(check(Policy::DropNewest, 0), (1, 0, false));
        assert_eq!(check(Policy::Close, 0), (0, 0, true));
        for policy in [Policy::DropOldest, Policy::KeepLatest] {
            assert_eq!(check(policy, 0), (0, 1, false), "one takes the place of the other");
            assert_eq!(check(policy, 1), (1, 0, false), "one that is begun is finished");
        }
    }

    #[test]
    fn of_several_frames_the_begun_one_is_finished_and_the_rest_obeys() {
        let mut pending = Pending::default();
        let frames = Frames::join([&b"aaaa"[..], b"bbbb", b"cccc", b"dddd"]);
        let lane = lane(Policy::DropNewest, 7);
        let queued = pending.push_frames(&frames, 0..4, 5, &lane, BYTES_MAX);
        assert_eq!((queued.sent, queued.queued, queued.dropped_newest), (1, 2, 1));
        assert_eq!(content(&pending), "bbbcccc");
    }

    #[test]
    fn small_segments_are_handed_over_together_and_large_ones_alone() {
        let mut pending = Pending::default();
        let lane = Lane { id: 1, policy: Policy::Close, queue_bytes_max: 1 << 20 };
        let large = Frames::one(vec![b'x'; COPIED_BYTES_MAX].into());
        pending.push(b"abc");
        pending.push_frames(&large, 0..1, 0, &lane, 1 << 20);
        let mut scratch = Vec::new();
        assert_eq!(pending.chunk(&mut scratch).len(), COPIED_BYTES_MAX);
        pending.took(3);
        let chunk = pending.chunk(&mut scratch);
        assert!(std::ptr::eq(chunk.as_ptr(), large.bytes().as_ptr()), "it is not copied");
    }
}
