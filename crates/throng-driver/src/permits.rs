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
    in_use: AtomicUsize,
    /// Whether `waiting` holds anybody; spares the lock on every close.
    has_waiters: AtomicBool,
    waiters: Mutex<Vec<CoreId>>,
}

impl Permits {
    /// `max` permits, none taken.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            in_use: AtomicUsize::new(0),
            has_waiters: AtomicBool::new(false),
            waiters: Mutex::new(Vec::new()),
        }
    }

    /// Takes a permit. Without one, `core` is remembered and will be named by a [`Self::give`].
    pub fn acquire_or_register(&self, core: CoreId) -> bool {
        if self.try_acquire() {
            return true;
        }
        {
            let mut waiting = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiting.contains(&core) {
                waiting.push(core);
            }
            self.has_waiters.store(true, SeqCst);
        }
        seq_cst_for_loom();
        // A permit that came back between the two looks has woken nobody.
        self.try_acquire()
    }

    /// Gives a permit back; returns the core to wake, if one waits.
    #[must_use = "the core that waits must be woken"]
    pub fn release(&self) -> Option<CoreId> {
        let before = self.in_use.fetch_sub(1, SeqCst);
        debug_assert!(before > 0, "a permit was given back that nobody took");
        seq_cst_for_loom();
        if !self.has_waiters.load(SeqCst) {
            return None;
        }
        let mut waiting = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        let core = if waiting.is_empty() { None } else { Some(waiting.remove(0)) };
        self.has_waiters.store(!waiting.is_empty(), SeqCst);
        core
    }

    /// Whether a core that found no permit waits to be named.
    pub fn has_waiters(&self) -> bool {
        self.has_waiters.load(SeqCst)
    }

    /// How many are taken.
    pub fn in_use(&self) -> usize {
        self.in_use.load(SeqCst)
    }

    /// Takes a permit; without one, nobody is remembered.
    pub fn try_acquire(&self) -> bool {
        let mut taken = self.in_use.load(SeqCst);
        while taken < self.max {
            match self.in_use.compare_exchange_weak(taken, taken + 1, SeqCst, SeqCst) {
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
                        if permits.acquire_or_register(core) {
                            most.fetch_max(permits.in_use(), SeqCst);
                            let _ = permits.release();
                        }
                    }
                });
            }
        });
        assert_eq!(permits.in_use(), 0);
        assert!(most.load(SeqCst) <= 100);
    }

    #[test]
    fn each_permit_that_comes_back_wakes_one_waiter() {
        let permits = Permits::new(1);
        assert!(permits.acquire_or_register(0));
        assert!(!permits.acquire_or_register(1));
        assert!(!permits.acquire_or_register(2));
        assert!(!permits.acquire_or_register(2));
        assert_eq!(permits.release(), Some(1));
        // Core 1 found nobody in its queue and gives back what it took.
        assert!(permits.acquire_or_register(1));
        assert_eq!(permits.release(), Some(2));
        assert!(permits.acquire_or_register(2));
        assert_eq!(permits.release(), None);
    }
}
