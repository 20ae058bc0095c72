//! What several machines need to make one run.

mod clock_offset;

pub use clock_offset::ClockOffset;
