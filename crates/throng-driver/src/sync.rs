//! Locks and atomics: the standard library's, or loom's where `make loom` checks every interleaving
//! of what uses them (`models.rs`).

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

/// Puts back what loom leaves out: it takes `SeqCst` for `AcqRel`, and orders all threads at fences
/// alone. Between accesses that are `SeqCst` themselves the product needs no fence.
#[inline]
pub(crate) fn seq_cst_for_loom() {
    #[cfg(all(loom, test))]
    fence(std::sync::atomic::Ordering::SeqCst);
}
