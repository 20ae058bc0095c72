use super::*;

const BYTES_MAX: usize = 1_000;

fn lane(policy: Policy, queue_bytes_max: usize) -> Lane {
    Lane { id: 1, policy, queue_bytes_max }
}

/// Queues each frame by itself; returns what was counted in all.
fn push(pending: &mut SendQueue, frames: &[&str], lane: &Lane) -> QueueOutcome {
    let mut all = QueueOutcome::default();
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

fn content(pending: &SendQueue) -> String {
    let text = pending.chunk(&mut Vec::new()).to_vec();
    assert_eq!(text.len(), pending.bytes());
    assert_eq!(pending.bytes() == 0, pending.is_empty());
    String::from_utf8(text).unwrap()
}

#[test]
fn own_bytes_and_frames_leave_in_the_order_in_which_they_were_sent() {
    let mut pending = SendQueue::default();
    let lane = lane(Policy::Close, 100);
    pending.push(b"ab");
    push(&mut pending, &["cd", "ef"], &lane);
    pending.push(b"gh");
    pending.push(b"ij");
    assert_eq!(content(&pending), "abcdefghij");
    pending.advance(3);
    assert_eq!(content(&pending), "defghij");
    pending.advance(4);
    pending.push(b"k");
    assert_eq!(content(&pending), "hijk");
    pending.advance(4);
    assert!(pending.is_empty() && pending.lanes.is_empty() && pending.segments.is_empty());
}

#[test]
fn a_full_lane_refuses_what_is_new() {
    let mut pending = SendQueue::default();
    let queued = push(&mut pending, &["aa", "bb", "cc", "d"], &lane(Policy::DropNewest, 5));
    assert_eq!((queued.queued, queued.dropped_newest), (3, 1));
    assert_eq!(content(&pending), "aabbd");
}

#[test]
fn a_full_lane_forgets_what_is_old_but_finishes_what_is_begun() {
    let mut pending = SendQueue::default();
    let lane = lane(Policy::DropOldest, 5);
    push(&mut pending, &["aa", "bb"], &lane);
    pending.advance(1);
    let queued = push(&mut pending, &["cc", "dd"], &lane);
    assert_eq!((queued.queued, queued.dropped_oldest, queued.dropped_newest), (2, 1, 0));
    assert_eq!(content(&pending), "accdd");
}

#[test]
fn the_latest_takes_the_place_of_the_one_that_waits() {
    let mut pending = SendQueue::default();
    let lane = lane(Policy::KeepLatest, 100);
    push(&mut pending, &["aa"], &lane);
    pending.advance(1);
    pending.push(b"-");
    let queued = push(&mut pending, &["bb", "cc", "dd"], &lane);
    assert_eq!((queued.queued, queued.replaced), (3, 2));
    assert_eq!(content(&pending), "a-dd");
}

#[test]
fn the_latest_waits_however_large_the_one_is_that_is_begun() {
    let mut pending = SendQueue::default();
    let lane = lane(Policy::KeepLatest, 5);
    push(&mut pending, &["aaaa"], &lane);
    pending.advance(1);
    let queued = push(&mut pending, &["bb", "cccc"], &lane);
    assert_eq!((queued.replaced, queued.dropped_newest), (1, 0));
    assert_eq!(content(&pending), "aaacccc");
}

#[test]
fn nothing_old_is_forgotten_for_what_does_not_fit_all_the_same() {
    for policy in [Policy::DropOldest, Policy::KeepLatest] {
        let mut pending = SendQueue::default();
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
    let mut pending = SendQueue::default();
    let lane = lane(Policy::Close, 1);
    assert!(!push(&mut pending, &["aaaa"], &lane).closes);
    assert!(push(&mut pending, &["b"], &lane).closes);
    assert_eq!(content(&pending), "aaaa");
}

#[test]
fn lanes_have_their_own_limits_and_leave_room_for_answers() {
    let mut pending = SendQueue::default();
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
        let mut pending = SendQueue::default();
        let mut lane = lane(policy, 10);
        let queued = push(&mut pending, &[&large], &lane);
        assert_eq!((queued.queued, queued.closes), (1, false), "{policy}");
        assert!(!pending.overflows(BYTES_MAX), "{policy}");
        pending.advance(1);
        // Behind it there is as much room as ever, and no more.
        lane.id = 2;
        push(&mut pending, &["a"], &lane);
        pending.push(&[b'b'; 999]);
        assert!(!pending.overflows(BYTES_MAX), "{policy}");
        pending.push(b"c");
        assert!(pending.overflows(BYTES_MAX), "{policy}");
        pending.advance(large.len() - 2);
        assert_eq!((pending.bytes(), pending.overflows(BYTES_MAX)), (1_002, true));
        pending.advance(2);
        assert!(!pending.overflows(BYTES_MAX), "{policy}");
    }
}

#[test]
fn a_second_frame_that_is_too_large_obeys_its_policy() {
    let large = "x".repeat(3 * BYTES_MAX);
    let check = |policy, is_begun: usize| {
        let mut pending = SendQueue::default();
        let lane = lane(policy, usize::MAX);
        push(&mut pending, &[&large], &lane);
        pending.advance(is_begun);
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
    let mut pending = SendQueue::default();
    let frames = Frames::join([&b"aaaa"[..], b"bbbb", b"cccc", b"dddd"]);
    let lane = lane(Policy::DropNewest, 7);
    let queued = pending.push_frames(&frames, 0..4, 5, &lane, BYTES_MAX);
    assert_eq!((queued.sent, queued.queued, queued.dropped_newest), (1, 2, 1));
    assert_eq!(content(&pending), "bbbcccc");
}

#[test]
fn small_segments_are_handed_over_together_and_large_ones_alone() {
    let mut pending = SendQueue::default();
    let lane = Lane { id: 1, policy: Policy::Close, queue_bytes_max: 1 << 20 };
    let large = Frames::one(vec![b'x'; COPIED_BYTES_MAX].into());
    pending.push(b"abc");
    pending.push_frames(&large, 0..1, 0, &lane, 1 << 20);
    let mut scratch = Vec::new();
    assert_eq!(pending.chunk(&mut scratch).len(), COPIED_BYTES_MAX);
    pending.advance(3);
    let chunk = pending.chunk(&mut scratch);
    assert!(std::ptr::eq(chunk.as_ptr(), large.bytes().as_ptr()), "it is not copied");
}

#[test]
fn of_what_one_callback_adds_eight_times_the_limit_is_excused() {
    let mut pending = SendQueue::default();
    pending.push(&[b'x'; 9 * BYTES_MAX]);
    pending.exempt(BYTES_MAX);
    assert!(!pending.overflows(BYTES_MAX));
    pending.push(b"y");
    pending.exempt(BYTES_MAX);
    assert!(pending.overflows(BYTES_MAX));
    pending.advance(8 * BYTES_MAX);
    assert!(pending.overflows(BYTES_MAX), "it is the first ones that are excused");
}

#[test]
fn parts_that_are_shared_are_not_copied() {
    let mut pending = SendQueue::default();
    let shared: Arc<[u8]> = vec![b's'; COPIED_BYTES_MAX].into();
    let empty: Arc<[u8]> = Vec::new().into();
    pending.push(b"own");
    pending.push_parts(&[
        SendPart::Own(b"<"),
        SendPart::Shared(&shared),
        SendPart::Shared(&empty),
        SendPart::Own(b">"),
    ]);
    assert_eq!(pending.bytes(), 5 + shared.len());
    pending.advance(4);
    let chunk = pending.chunk(&mut Vec::new()).as_ptr();
    assert_eq!((chunk, Arc::strong_count(&shared)), (shared.as_ptr(), 2));
    pending.advance(shared.len());
    assert_eq!((&*content(&pending), Arc::strong_count(&shared)), (">", 1));
}

/// Counts from its first number to its second, a number a piece.
struct Count(u32, u32);

impl ByteSource for Count {
    fn fill(&mut self, _bytes: usize, out: &mut Vec<u8>) -> bool {
        assert!(self.0 <= self.1, "as asked (this is the test's)");
        out.extend(format!("{},", self.0).bytes());
        self.0 += 1;
        self.0 <= self.1
    }
}

#[test]
fn a_source_makes_its_bytes_in_its_turn_a_piece_at_a_time() {
    let mut pending = SendQueue::default();
    pending.push(b"a");
    pending.push_source(Box::new(Count(1, 3)));
    pending.push(b"b");
    pending.push_source(Box::new(Count(7, 7)));
    let mut sent = String::new();
    while !pending.is_empty() {
        pending.fill_from_source().unwrap();
        let chunk = pending.chunk(&mut Vec::new()).to_vec();
        assert!(pending.bytes() <= 3 && !chunk.is_empty());
        sent += std::str::from_utf8(&chunk[..1]).unwrap();
        pending.advance(1);
    }
    assert_eq!(sent, "a1,2,3,b7,");
    assert_eq!(pending.bytes(), 0);
}

#[test]
fn a_source_that_panics_is_known_for_it() {
    let mut pending = SendQueue::default();
    pending.push_source(Box::new(Count(2, 1)));
    assert_eq!(pending.fill_from_source(), Err(SourcePanic));
}
