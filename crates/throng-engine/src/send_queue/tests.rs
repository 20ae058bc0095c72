use super::*;

const BYTES_MAX: usize = 1_000;

fn lane(policy: Policy, queue_bytes_max: usize) -> Lane {
    Lane { id: 1, policy, queue_bytes_max }
}

/// Queues each frame separately. Returns the sums of the outcomes.
fn push(queue: &mut SendQueue, frames: &[&str], lane: &Lane) -> QueueOutcome {
    let mut sums = QueueOutcome::default();
    for frame in frames {
        let frames = Frames::one(frame.as_bytes().into());
        let queued = queue.push_frames(&frames, 0..1, 0, lane, BYTES_MAX);
        sums.queued += queued.queued;
        sums.dropped_newest += queued.dropped_newest;
        sums.dropped_oldest += queued.dropped_oldest;
        sums.replaced += queued.replaced;
        sums.closes |= queued.closes;
    }
    sums
}

fn content(queue: &SendQueue) -> String {
    let text = queue.chunk(&mut Vec::new()).to_vec();
    assert_eq!(text.len(), queue.pending_bytes());
    assert_eq!(queue.pending_bytes() == 0, queue.is_empty());
    String::from_utf8(text).unwrap()
}

#[test]
fn own_bytes_and_frames_leave_in_the_order_in_which_they_were_sent() {
    let mut queue = SendQueue::default();
    let lane = lane(Policy::Close, 100);
    queue.push(b"ab");
    push(&mut queue, &["cd", "ef"], &lane);
    queue.push(b"gh");
    queue.push(b"ij");
    assert_eq!(content(&queue), "abcdefghij");
    queue.advance(3);
    assert_eq!(content(&queue), "defghij");
    queue.advance(4);
    queue.push(b"k");
    assert_eq!(content(&queue), "hijk");
    queue.advance(4);
    assert!(queue.is_empty() && queue.lanes.is_empty() && queue.segments.is_empty());
}

#[test]
fn a_full_lane_refuses_what_is_new() {
    let mut queue = SendQueue::default();
    let queued = push(&mut queue, &["aa", "bb", "cc", "d"], &lane(Policy::DropNewest, 5));
    assert_eq!((queued.queued, queued.dropped_newest), (3, 1));
    assert_eq!(content(&queue), "aabbd");
}

#[test]
fn a_full_lane_forgets_what_is_old_but_finishes_what_is_begun() {
    let mut queue = SendQueue::default();
    let lane = lane(Policy::DropOldest, 5);
    push(&mut queue, &["aa", "bb"], &lane);
    queue.advance(1);
    let queued = push(&mut queue, &["cc", "dd"], &lane);
    assert_eq!((queued.queued, queued.dropped_oldest, queued.dropped_newest), (2, 1, 0));
    assert_eq!(content(&queue), "accdd");
}

#[test]
fn the_latest_takes_the_place_of_the_one_that_waits() {
    let mut queue = SendQueue::default();
    let lane = lane(Policy::KeepLatest, 100);
    push(&mut queue, &["aa"], &lane);
    queue.advance(1);
    queue.push(b"-");
    let queued = push(&mut queue, &["bb", "cc", "dd"], &lane);
    assert_eq!((queued.queued, queued.replaced), (3, 2));
    assert_eq!(content(&queue), "a-dd");
}

#[test]
fn the_latest_waits_however_large_the_one_is_that_is_begun() {
    let mut queue = SendQueue::default();
    let lane = lane(Policy::KeepLatest, 5);
    push(&mut queue, &["aaaa"], &lane);
    queue.advance(1);
    let queued = push(&mut queue, &["bb", "cccc"], &lane);
    assert_eq!((queued.replaced, queued.dropped_newest), (1, 0));
    assert_eq!(content(&queue), "aaacccc");
}

#[test]
fn no_old_frame_is_dropped_for_one_that_would_still_not_fit() {
    for policy in [Policy::DropOldest, Policy::KeepLatest] {
        let mut queue = SendQueue::default();
        queue.push(&[b'-'; 740]);
        let mut lane = lane(policy, 500);
        lane.id = 2;
        push(&mut queue, &["old"], &lane);
        let queued = push(&mut queue, &["too large"; 2], &lane);
        let dropped = (queued.dropped_newest, queued.dropped_oldest + queued.replaced);
        assert_eq!(dropped, (0, 2), "the first nine bytes fit in place of three: {policy}");
        let queued = push(&mut queue, &["eleven byte"], &lane);
        let dropped = (queued.dropped_newest, queued.dropped_oldest + queued.replaced);
        assert_eq!(dropped, (1, 0), "{policy}");
        assert!(content(&queue).ends_with("too large"));
    }
}

#[test]
fn a_full_lane_closes_and_one_frame_always_fits() {
    let mut queue = SendQueue::default();
    let lane = lane(Policy::Close, 1);
    assert!(!push(&mut queue, &["aaaa"], &lane).closes);
    assert!(push(&mut queue, &["b"], &lane).closes);
    assert_eq!(content(&queue), "aaaa");
}

#[test]
fn lanes_have_their_own_limits_and_leave_room_for_answers() {
    let mut queue = SendQueue::default();
    let (one, mut other) = (lane(Policy::DropNewest, 500), lane(Policy::DropOldest, 500));
    other.id = 2;
    let frame = "x".repeat(240);
    assert_eq!(push(&mut queue, &[&frame, &frame, &frame], &one).dropped_newest, 1);
    let queued = push(&mut queue, &[&frame, &frame], &other);
    assert_eq!((queued.queued, queued.dropped_oldest, queued.dropped_newest), (2, 1, 0));
    assert_eq!(queue.pending_bytes(), 720);
    let queued = push(&mut queue, &["y".repeat(31).as_str()], &one);
    assert_eq!(queued.dropped_newest, 1, "three quarters are full");
}

#[test]
fn one_frame_of_any_size_fits_into_an_empty_queue() {
    let large = "x".repeat(3 * BYTES_MAX);
    for policy in [Policy::DropNewest, Policy::DropOldest, Policy::KeepLatest, Policy::Close] {
        let mut queue = SendQueue::default();
        let mut lane = lane(policy, 10);
        let queued = push(&mut queue, &[&large], &lane);
        assert_eq!((queued.queued, queued.closes), (1, false), "{policy}");
        assert!(!queue.overflows(BYTES_MAX), "{policy}");
        queue.advance(1);
        // The limit for bytes behind it is the usual one.
        lane.id = 2;
        push(&mut queue, &["a"], &lane);
        queue.push(&[b'b'; 999]);
        assert!(!queue.overflows(BYTES_MAX), "{policy}");
        queue.push(b"c");
        assert!(queue.overflows(BYTES_MAX), "{policy}");
        queue.advance(large.len() - 2);
        assert_eq!((queue.pending_bytes(), queue.overflows(BYTES_MAX)), (1_002, true));
        queue.advance(2);
        assert!(!queue.overflows(BYTES_MAX), "{policy}");
    }
}

#[test]
fn a_second_frame_that_is_too_large_obeys_its_policy() {
    let large = "x".repeat(3 * BYTES_MAX);
    let check = |policy, is_begun: usize| {
        let mut queue = SendQueue::default();
        let lane = lane(policy, usize::MAX);
        push(&mut queue, &[&large], &lane);
        queue.advance(is_begun);
        let queued = push(&mut queue, &[&large], &lane);
        assert!(queue.pending_bytes() <= large.len() && !queue.overflows(BYTES_MAX), "{policy}");
        (queued.dropped_newest, queued.dropped_oldest + queued.replaced, queued.closes)
    };
    assert_eq!(check(Policy::DropNewest, 0), (1, 0, false));
    assert_eq!(check(Policy::Close, 0), (0, 0, true));
    for policy in [Policy::DropOldest, Policy::KeepLatest] {
        assert_eq!(check(policy, 0), (0, 1, false), "one replaces the other");
        assert_eq!(check(policy, 1), (1, 0, false), "a begun frame is finished");
    }
}

#[test]
fn the_begun_frame_of_several_is_finished_and_the_rest_obeys_the_policy() {
    let mut queue = SendQueue::default();
    let frames = Frames::join([&b"aaaa"[..], b"bbbb", b"cccc", b"dddd"]);
    let lane = lane(Policy::DropNewest, 7);
    let queued = queue.push_frames(&frames, 0..4, 5, &lane, BYTES_MAX);
    assert_eq!((queued.sent, queued.queued, queued.dropped_newest), (1, 2, 1));
    assert_eq!(content(&queue), "bbbcccc");
}

#[test]
fn small_segments_are_handed_over_together_and_large_ones_alone() {
    let mut queue = SendQueue::default();
    let lane = Lane { id: 1, policy: Policy::Close, queue_bytes_max: 1 << 20 };
    let large = Frames::one(vec![b'x'; COPIED_BYTES_MAX].into());
    queue.push(b"abc");
    queue.push_frames(&large, 0..1, 0, &lane, 1 << 20);
    let mut scratch = Vec::new();
    assert_eq!(queue.chunk(&mut scratch).len(), COPIED_BYTES_MAX);
    queue.advance(3);
    let chunk = queue.chunk(&mut scratch);
    assert!(std::ptr::eq(chunk.as_ptr(), large.bytes().as_ptr()), "the frame is not copied");
}

#[test]
fn bytes_of_one_callback_are_exempt_up_to_eight_times_the_limit() {
    let mut queue = SendQueue::default();
    queue.push(&[b'x'; 9 * BYTES_MAX]);
    queue.exempt(BYTES_MAX);
    assert!(!queue.overflows(BYTES_MAX));
    queue.push(b"y");
    queue.exempt(BYTES_MAX);
    assert!(queue.overflows(BYTES_MAX));
    queue.advance(8 * BYTES_MAX);
    assert!(queue.overflows(BYTES_MAX), "the exempt bytes are the first ones");
}

#[test]
fn shared_parts_are_not_copied() {
    let mut queue = SendQueue::default();
    let shared: Arc<[u8]> = vec![b's'; COPIED_BYTES_MAX].into();
    let empty: Arc<[u8]> = Vec::new().into();
    queue.push(b"own");
    queue.push_parts(&[
        SendPart::Own(b"<"),
        SendPart::Shared(&shared),
        SendPart::Shared(&empty),
        SendPart::Own(b">"),
    ]);
    assert_eq!(queue.pending_bytes(), 5 + shared.len());
    queue.advance(4);
    let chunk = queue.chunk(&mut Vec::new()).as_ptr();
    assert_eq!((chunk, Arc::strong_count(&shared)), (shared.as_ptr(), 2));
    queue.advance(shared.len());
    assert_eq!((&*content(&queue), Arc::strong_count(&shared)), (">", 1));
}

/// Source that counts from its first number to its second, one number in each piece.
struct Count(u32, u32);

impl ByteSource for Count {
    fn fill(&mut self, _bytes: usize, out: &mut Vec<u8>) -> bool {
        assert!(self.0 <= self.1, "panic of the test");
        out.extend(format!("{},", self.0).bytes());
        self.0 += 1;
        self.0 <= self.1
    }
}

#[test]
fn a_source_makes_its_bytes_in_its_turn_a_piece_at_a_time() {
    let mut queue = SendQueue::default();
    queue.push(b"a");
    queue.push_source(Box::new(Count(1, 3)));
    queue.push(b"b");
    queue.push_source(Box::new(Count(7, 7)));
    let mut sent = String::new();
    while !queue.is_empty() {
        queue.fill_from_source().unwrap();
        let chunk = queue.chunk(&mut Vec::new()).to_vec();
        assert!(queue.pending_bytes() <= 3 && !chunk.is_empty());
        sent += std::str::from_utf8(&chunk[..1]).unwrap();
        queue.advance(1);
    }
    assert_eq!(sent, "a1,2,3,b7,");
    assert_eq!(queue.pending_bytes(), 0);
}

#[test]
fn the_panic_of_a_source_is_an_error() {
    let mut queue = SendQueue::default();
    queue.push_source(Box::new(Count(2, 1)));
    assert_eq!(queue.fill_from_source(), Err(SourcePanic));
}
