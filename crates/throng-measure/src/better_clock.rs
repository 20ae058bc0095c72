//! The choice between latencies until answers arrived, and until the generator read them.

use crate::Histogram;

/// Returns the latencies of an operation by the better clock: until the answers arrived if all of
/// them are there, else until the generator read them.
pub(crate) fn better_clock<'a>(seen: &'a Histogram, arrived: &'a Histogram) -> &'a Histogram {
    if arrived.count() == seen.count() { arrived } else { seen }
}
