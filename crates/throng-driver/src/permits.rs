//! One permit for every connection: the only counter that cores share.
//!
//! A permit is taken before accept and given back by the close, so `connections_max` is exact over all
//! cores. A core that found none is remembered; each permit that comes back wakes one such core. A core
//! that was woken and finds nobody in its queue gives its permit back, which wakes the next:
//! so no queue waits while a permit is free.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;

use crate::CoreId;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, seq_cst_for_loom};

/// How many connections there may be, and how many there are.
#[derive(Debug)]
pub struct Permits {
    max: usize,
    taken: AtomicUsize,
    /// Whether `waiting` holds anybody; spares the lock on every close.
    anyone_waits: AtomicBool,
    waiting: Mutex<Vec<CoreId>>,
}

impl Permits {
    /// `max` permits, none taken.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            taken: AtomicUsize::new(0),
            anyone_waits: AtomicBool::new(false),
            waiting: Mutex::new(Vec::new()),
        }
    }

    /// Takes a permit. Without one, `core` is remembered and will be named by a [`Self::give`].
    pub fn take(&self, core: CoreId) -> bool {
        if self.try_take() {
            return true;
        }
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiting.contains(&core) {
                waiting.push(core);
            }
            self.anyone_waits.store(true, SeqCst);
        }
        seq_cst_for_loom();
        // A permit that came back between the two looks has woken nobody.
        self.try_take()
    }

    /// Gives a permit back; returns the core to wake, if one waits.
    #[must_use = "the core that waits must be woken"]
    pub fn give(&self) -> Option<CoreId> {
        let before = self.taken.fetch_sub(1, SeqCst);
        debug_assert!(before > 0, "a permit was given back that nobody took");
        seq_cst_for_loom();
        if !self.anyone_waits.load(SeqCst) {
            return None;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let core = if waiting.is_empty() { None } else { Some(waiting.remove(0)) };
        self.anyone_waits.store(!waiting.is_empty(), SeqCst);
        core
    }

    /// Whether a core that found no permit waits to be named.
    pub fn anyone_waits(&self) -> bool {
        self.anyone_waits.load(SeqCst)
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(SeqCst)
    }

    /// Takes a permit; without one, nobody is remembered.
    pub fn try_take(&self) -> bool {
        let mut taken = self.taken.load(SeqCst);
        while taken < self.max {
            match self.taken.compare_exchange_weak(taken, taken + 1, SeqCst, SeqCst) {
                Ok(_) => return true,
                Err(now) => taken = now,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_max_are_out() {
        let permits = Permits::new(100);
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for core in 0..4 {
                let (permits, most) = (&permits, &most);
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        if permits.take(core) {
                            most.fetch_max(permits.taken(), SeqCst);
                            let _ = permits.give();
                        }
                    }
                });
            }
        });
        assert_eq!(permits.taken(), 0);
        assert!(most.load(SeqCst) <= 100);
    }

    #[test]
    fn each_permit_that_comes_back_wakes_one_waiter() {
        let permits = Permits::new(1);
        assert!(permits.take(0));
        assert!(!permits.take(1));
        assert!(!permits.take(2));
        assert!(!permits.take(2));
        assert_eq!(permits.give(), Some(1));
        // Core 1 found nobody in its queue and gives back what it took.
        assert!(permits.take(1));
        assert_eq!(permits.give(), Some(2));
        assert!(permits.take(2));
        assert_eq!(permits.give(), None);
    }
}
