//! Coarse timers: millions of time-outs, each set, moved and cancelled in a few steps.
//!
//! A hierarchical timing wheel (Varghese and Lauck 1987) of three levels of 256 buckets. Its lists
//! link the entries of a table (16 bytes each), so a timer allocates nothing. A timer never fires
//! early, and at most one [`TICK`] late.

use std::time::Duration;

use crate::Instant;

/// Resolution of the wheel: 2^23 ns, about 8.4 ms.
pub const TICK: Duration = Duration::from_nanos(1 << TICK_BITS);

/// A timer's place in the wheel; a field of the timer's entry.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// Time at which the timer is due; [`Instant::FAR`] if it is not set.
    due: Instant,
    next: u32,
    /// Previous entry of the list, or the list's bucket (with the `BUCKET` bit set) for its first
    /// entry.
    before: u32,
}

impl Timer {
    /// Returns when the timer is due; [`Instant::FAR`] if it is not set.
    pub const fn due(&self) -> Instant {
        self.due
    }

    const fn is_linked(&self) -> bool {
        self.before != NONE
    }
}

impl Default for Timer {
    fn default() -> Self {
        Self { due: Instant::FAR, next: NONE, before: NONE }
    }
}

/// Table whose entries contain a [`Timer`].
pub trait Timers {
    /// Returns the timer of the entry at `index`, which exists.
    fn timer(&mut self, index: u32) -> &mut Timer;
}

/// Timing wheel: the heads of the lists, and a bit for each list that is not empty.
pub struct Wheel {
    /// Tick up to which all timers have fired.
    tick: u64,
    heads: Box<[u32; LEVELS * BUCKETS]>,
    occupied: [[u64; BUCKETS / 64]; LEVELS],
}

impl Wheel {
    /// Creates an empty wheel at the time `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            tick: now.as_nanos() >> TICK_BITS,
            heads: Box::new([NONE; LEVELS * BUCKETS]),
            occupied: Default::default(),
        }
    }

    /// Sets the timer of entry `index` to `due`. Replaces its previous time.
    pub fn set(&mut self, timers: &mut impl Timers, index: u32, due: Instant) {
        self.cancel(timers, index);
        if due == Instant::FAR {
            return;
        }
        timers.timer(index).due = due;
        // The bucket of the present tick is already processed.
        self.link(timers, index, due, self.tick + 1);
    }

    /// Cancels the timer of entry `index`, if it is set.
    pub fn cancel(&mut self, timers: &mut impl Timers, index: u32) {
        let timer = timers.timer(index);
        if !timer.is_linked() {
            return;
        }
        let Timer { next, before, .. } = std::mem::take(timer);
        if next != NONE {
            timers.timer(next).before = before;
        }
        if before & BUCKET == 0 {
            timers.timer(before).next = next;
        } else {
            self.set_head((before & !BUCKET) as usize, next);
        }
    }

    /// Moves the wheel to `now`. Appends the entries whose timers are due to `due`, and unsets
    /// these timers.
    pub fn advance(&mut self, timers: &mut impl Timers, now: Instant, due: &mut Vec<u32>) {
        let target = now.as_nanos() >> TICK_BITS;
        while self.tick < target {
            let block_end = self.tick | (BUCKETS as u64 - 1);
            let next = self.next_in_block().min(block_end + 1).min(target);
            self.tick = next;
            if next > block_end {
                self.cascade(timers);
            }
            let bucket = (next % BUCKETS as u64) as usize;
            while let Some(index) = self.pop(timers, bucket) {
                due.push(index);
            }
        }
    }

    /// Returns a moment before which no timer fires. A wait until then and a call of
    /// [`Self::advance`] makes progress. Returns [`Instant::FAR`] if no timer is set.
    pub fn next_due(&self) -> Instant {
        let block = self.tick >> LEVEL_BITS;
        let next = if self.occupied[0] != [0; BUCKETS / 64] {
            self.next_in_block().min((block + 1) << LEVEL_BITS)
        } else {
            // A timer that was far when it was set may now be nearer than one that was set as near,
            // so check both levels.
            let near = self.distance(1, block).map(|places| (block + places) << LEVEL_BITS);
            let block = block >> LEVEL_BITS;
            let far = self.distance(2, block).map(|places| (block + places) << (2 * LEVEL_BITS));
            match near.into_iter().chain(far).min() {
                Some(next) => next,
                None => return Instant::FAR,
            }
        };
        Instant::from_nanos(next << TICK_BITS)
    }

    /// Returns the next tick of this block of 256 whose bucket of the lowest level is not empty;
    /// `u64::MAX` if there is none.
    fn next_in_block(&self) -> u64 {
        let position = (self.tick % BUCKETS as u64) as usize;
        let block_start = self.tick - position as u64;
        let mut mask = !0 << (position % 64);
        mask &= mask - 1;
        for word in position / 64..BUCKETS / 64 {
            let bits = self.occupied[0][word] & mask;
            if bits != 0 {
                return block_start + word as u64 * 64 + u64::from(bits.trailing_zeros());
            }
            mask = !0;
        }
        u64::MAX
    }

    /// Returns how many places after `position` the first bucket of `level` is that is not empty: 1
    /// to 256.
    fn distance(&self, level: usize, position: u64) -> Option<u64> {
        // One word at a time, because the loop calls this twice a turn: from the place after
        // `position`, and around the ring. The first word comes again at the end, for its bits
        // before that place.
        let start = ((position + 1) % BUCKETS as u64) as usize;
        let words = &self.occupied[level];
        let after = !0 << (start % 64);
        (0..=words.len()).find_map(|step| {
            let word = (start / 64 + step) % words.len();
            let mask = match step {
                0 => after,
                step if step == words.len() => !after,
                _ => !0,
            };
            let bits = words[word] & mask;
            let bucket = word * 64 + bits.trailing_zeros() as usize;
            (bits != 0).then(|| ((bucket + BUCKETS - start) % BUCKETS) as u64 + 1)
        })
    }

    /// Begins a block of the lowest level: spreads the timers of its bucket one level up.
    fn cascade(&mut self, timers: &mut impl Timers) {
        let block = self.tick >> LEVEL_BITS;
        if block.is_multiple_of(BUCKETS as u64) {
            self.spread(timers, 2, block >> LEVEL_BITS);
        }
        self.spread(timers, 1, block);
    }

    fn spread(&mut self, timers: &mut impl Timers, level: usize, position: u64) {
        let bucket = level * BUCKETS + (position % BUCKETS as u64) as usize;
        let mut index = self.heads[bucket];
        self.set_head(bucket, NONE);
        while index != NONE {
            let timer = timers.timer(index);
            let (due, next) = (timer.due, timer.next);
            // `advance` processes the bucket of the present tick directly after this.
            self.link(timers, index, due, self.tick);
            index = next;
        }
    }

    fn link(&mut self, timers: &mut impl Timers, index: u32, due: Instant, earliest: u64) {
        // Round up, so that no timer fires early.
        let tick = due.as_nanos().div_ceil(1 << TICK_BITS).max(earliest);
        let distance = tick - self.tick;
        let bucket = if distance < 1 << LEVEL_BITS {
            tick % BUCKETS as u64
        } else if distance < 1 << (2 * LEVEL_BITS) {
            BUCKETS as u64 + (tick >> LEVEL_BITS) % BUCKETS as u64
        } else {
            // Beyond the wheel's range (39 hours): the timer comes round and is linked again.
            let tick = tick.min(self.tick + (1 << (3 * LEVEL_BITS)) - 1);
            2 * BUCKETS as u64 + (tick >> (2 * LEVEL_BITS)) % BUCKETS as u64
        } as usize;
        let head = self.heads[bucket];
        if head != NONE {
            timers.timer(head).before = index;
        }
        let timer = timers.timer(index);
        timer.next = head;
        timer.before = BUCKET | bucket as u32;
        self.set_head(bucket, index);
    }

    fn pop(&mut self, timers: &mut impl Timers, bucket: usize) -> Option<u32> {
        let index = self.heads[bucket];
        if index == NONE {
            return None;
        }
        self.cancel(timers, index);
        Some(index)
    }

    fn set_head(&mut self, bucket: usize, index: u32) {
        self.heads[bucket] = index;
        let (level, bucket) = (bucket / BUCKETS, bucket % BUCKETS);
        let bit = 1 << (bucket % 64);
        if index == NONE {
            self.occupied[level][bucket / 64] &= !bit;
        } else {
            self.occupied[level][bucket / 64] |= bit;
        }
    }
}

const TICK_BITS: u32 = 23;
const LEVEL_BITS: u32 = 8;
const LEVELS: usize = 3;
const BUCKETS: usize = 1 << LEVEL_BITS;
const NONE: u32 = u32::MAX;
/// Bit that marks `Timer::before` as the number of a bucket. Tables have fewer than 2^31 entries.
const BUCKET: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    struct Table(Vec<Timer>);

    impl Timers for Table {
        fn timer(&mut self, index: u32) -> &mut Timer {
            &mut self.0[index as usize]
        }
    }

    /// Compares random timers over random steps of time with a plain list: many timers, and a few,
    /// which leave levels empty.
    fn check(seed: u64, span_nanos: u64, step_nanos: u64) {
        check_count(seed, 200, span_nanos, step_nanos);
        check_count(seed, 3, span_nanos, step_nanos);
    }

    fn check_count(seed: u64, count: usize, span_nanos: u64, step_nanos: u64) {
        let mut prng = Prng::new(seed);
        let mut now = Instant::from_nanos(prng.below(span_nanos));
        let mut table = Table(vec![Timer::default(); count]);
        let mut wheel = Wheel::new(now);
        let mut model: Vec<Option<Instant>> = vec![None; count];
        let mut due = Vec::new();
        // Miri would take hours for as many rounds as a compiled program.
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        for _ in 0..rounds {
            let index = prng.below(count as u64) as u32;
            if prng.below(4) == 0 {
                wheel.cancel(&mut table, index);
                model[index as usize] = None;
            } else {
                let at = (now + Duration::from_nanos(prng.below(span_nanos))).saturating_sub(TICK);
                wheel.set(&mut table, index, at);
                model[index as usize] = Some(at);
            }
            let next = model.iter().flatten().min().copied();
            assert!(wheel.next_due() >= Instant::ZERO);
            if let Some(next) = next {
                assert!(wheel.next_due() <= next.max(now) + TICK, "sleeps past {next:?}");
            } else {
                assert_eq!(wheel.next_due(), Instant::FAR);
            }
            now += Duration::from_nanos(prng.below(step_nanos));
            due.clear();
            wheel.advance(&mut table, now, &mut due);
            for index in &due {
                let at = model[*index as usize].take().expect("fired without being set");
                assert!(at <= now, "{at:?} fired early at {now:?}");
            }
            for at in model.iter().flatten() {
                assert!(*at + TICK + TICK > now, "{at:?} did not fire by {now:?}");
            }
        }
    }

    #[test]
    fn the_next_place_is_found_wherever_it_lies() {
        let mut wheel = Wheel::new(Instant::ZERO);
        // Miri is slow, so it gets a few of them.
        let step = if cfg!(miri) { 37 } else { 1 };
        assert_eq!(wheel.distance(1, 5), None);
        for bucket in [0, 1, 63, 64, 130, 255] {
            wheel.occupied[1] = Default::default();
            wheel.set_head(BUCKETS + bucket, 7);
            for position in (0..2 * BUCKETS as u64).step_by(step) {
                let naive = (1..=BUCKETS as u64)
                    .find(|distance| (position + distance) % BUCKETS as u64 == bucket as u64);
                assert_eq!(wheel.distance(1, position), naive, "{bucket} from {position}");
            }
        }
    }

    #[test]
    fn fires_neither_early_nor_late_within_a_block() {
        check(1, 1_000_000_000, 10_000_000);
    }

    #[test]
    fn fires_neither_early_nor_late_over_blocks() {
        check(2, 600_000_000_000, 1_000_000_000);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes hours under miri")]
    fn fires_neither_early_nor_late_over_days() {
        check(3, 200_000_000_000_000, 20_000_000_000_000);
    }

    #[test]
    fn a_far_timer_that_has_come_near_is_not_hidden_by_one_that_was_set_later() {
        let ticks = |ticks: u64| Instant::from_nanos(ticks << TICK_BITS);
        let mut table = Table(vec![Timer::default(); 2]);
        let mut wheel = Wheel::new(Instant::ZERO);
        let mut due = Vec::new();
        // Beyond the second level when it is set.
        wheel.set(&mut table, 0, ticks(66_000));
        wheel.advance(&mut table, ticks(65_000), &mut due);
        wheel.set(&mut table, 1, ticks(110_000));
        assert!(wheel.next_due() <= ticks(66_000), "sleeps until {:?}", wheel.next_due());
    }

    #[test]
    fn a_caller_that_waits_until_next_due_makes_progress() {
        let mut table = Table(vec![Timer::default(); 1]);
        let mut wheel = Wheel::new(Instant::ZERO);
        let at = Instant::ZERO + Duration::from_secs(7_000);
        wheel.set(&mut table, 0, at);
        let (mut due, mut wakes) = (Vec::new(), 0);
        while due.is_empty() {
            let next = wheel.next_due();
            wheel.advance(&mut table, next, &mut due);
            wakes += 1;
            assert!(wakes < 10, "woke {wakes} times");
        }
    }
}
