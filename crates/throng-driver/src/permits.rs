//! Permits, one for every connection: the counter that all cores share.
//!
//! A core acquires a permit before it accepts, and releases it at the close, so `connections_max`
//! is exact over all cores. A core that finds no free permit registers as a waiter; each release
//! wakes one waiter. A woken core whose accept queue is empty releases its permit, which wakes the
//! next waiter. So no accept queue waits while a permit is free.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::SeqCst;

use crate::CoreId;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, seq_cst_for_loom};

/// Counter of connections, with a limit.
#[derive(Debug)]
pub struct Permits {
    max: usize,
    in_use: AtomicUsize,
    /// `waiters` is not empty. It saves the lock on every close.
    has_waiters: AtomicBool,
    waiters: Mutex<Vec<CoreId>>,
}

impl Permits {
    /// Creates `max` permits, all of them free.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            in_use: AtomicUsize::new(0),
            has_waiters: AtomicBool::new(false),
            waiters: Mutex::new(Vec::new()),
        }
    }

    /// Acquires a permit. If none is free, returns false and registers `core` as a waiter, which a
    /// later [`Self::release`] returns.
    pub fn acquire_or_register(&self, core: CoreId) -> bool {
        if self.try_acquire() {
            return true;
        }
        {
            let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiters.contains(&core) {
                waiters.push(core);
            }
            self.has_waiters.store(true, SeqCst);
        }
        seq_cst_for_loom();
        // A permit that was released between the two attempts has woken no waiter.
        self.try_acquire()
    }

    /// Releases a permit. Returns the core to wake, if one waits.
    #[must_use = "the core that waits must be woken"]
    pub fn release(&self) -> Option<CoreId> {
        let before = self.in_use.fetch_sub(1, SeqCst);
        debug_assert!(before > 0, "a permit was released that was not acquired");
        seq_cst_for_loom();
        if !self.has_waiters.load(SeqCst) {
            return None;
        }
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        let core = if waiters.is_empty() { None } else { Some(waiters.remove(0)) };
        self.has_waiters.store(!waiters.is_empty(), SeqCst);
        core
    }

    /// Reports whether a core waits for a permit.
    pub fn has_waiters(&self) -> bool {
        self.has_waiters.load(SeqCst)
    }

    /// Returns how many permits are in use.
    pub fn in_use(&self) -> usize {
        self.in_use.load(SeqCst)
    }

    /// Acquires a permit. If none is free, returns false and registers no waiter.
    pub fn try_acquire(&self) -> bool {
        let mut in_use = self.in_use.load(SeqCst);
        while in_use < self.max {
            match self.in_use.compare_exchange_weak(in_use, in_use + 1, SeqCst, SeqCst) {
                Ok(_) => return true,
                Err(now) => in_use = now,
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
        // Core 1 found its accept queue empty and releases its permit.
        assert!(permits.acquire_or_register(1));
        assert_eq!(permits.release(), Some(2));
        assert!(permits.acquire_or_register(2));
        assert_eq!(permits.release(), None);
    }
}
