//! The machine's clock.

use throng_base::Instant;

/// CLOCK_MONOTONIC; it is the same for every thread and process of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Returns the time. It takes about 25 ns and no system call.
    pub fn now(self) -> Instant {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}
