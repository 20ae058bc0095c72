//! Locks and atomics: the standard library's, or loom's when `make loom` checks the interleavings
//! of the code that uses them (`models.rs`).

#[cfg(all(loom, test))]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, fence},
};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize},
};

/// Adds the order that loom lacks: loom treats `SeqCst` accesses as `AcqRel`, and orders all
/// threads only at fences. Outside loom the accesses are `SeqCst` themselves and need no fence.
#[inline]
pub(crate) fn seq_cst_for_loom() {
    #[cfg(all(loom, test))]
    fence(std::sync::atomic::Ordering::SeqCst);
}
