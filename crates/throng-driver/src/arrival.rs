//! Arrival times of bytes, by the kernel's clock.
//!
//! A program that reads late sees answers late. The kernel knows when they arrived: with
//! SO_TIMESTAMPING it records the arrival of each segment, and `recvmsg` returns that of the last
//! byte. These stamps are of CLOCK_REALTIME, which an administrator may set at any time.
//! [`ArrivalClock`] converts them to moments of CLOCK_MONOTONIC, and rejects stamps from before
//! such a step.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::time::{ClockId, clock_gettime};
use throng_base::Instant;

use crate::socket::last_errno;
use crate::{Clock, Errno};

/// Lets the kernel record when segments arrive at `fd`. Without support in the kernel, receives
/// return no stamps.
pub(crate) fn request_stamps(fd: BorrowedFd<'_>) {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the option takes an int of this size, which lives during the call.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            std::ptr::from_ref(&flags).cast(),
            size_of_val(&flags) as libc::socklen_t,
        );
    }
}

/// Receives into `buffer`. Returns the count, and the arrival of the last byte since the epoch.
pub(crate) fn recv(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Result<(usize, Option<Duration>), Errno> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: zero is valid for all fields.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // Not libc's `recvmsg`: it is a cancellation point of threads, and costs more. SAFETY: the
    // message names a buffer and a control buffer of these lengths, which live during the call.
    let received = unsafe { libc::syscall(libc::SYS_recvmsg, fd.as_raw_fd(), &raw mut message, 0) };
    let Ok(received) = usize::try_from(received) else { return Err(last_errno()) };
    let control_bytes: usize = message.msg_controllen as _;
    let length = (control_bytes / size_of::<u64>()).min(CONTROL_WORDS);
    Ok((received, stamp_in(&control[..length])))
}

/// Returns how long the handshake of a connect took that has just succeeded.
pub(crate) fn handshake_rtt(fd: BorrowedFd<'_>) -> Option<Duration> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, the size of `info`.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    // SAFETY: all fields are numbers, for which zero and every value of the kernel are valid.
    let info = unsafe { info.assume_init() };
    let is_known = done == 0 && info.tcpi_rtt > 0;
    let is_clean = info.tcpi_total_retrans == 0 && info.tcpi_retransmits == 0;
    (is_known && is_clean).then(|| Duration::from_micros(info.tcpi_rtt.into()))
}

/// Reads the first control message if it is a stamp: a header of length, level and type, then the
/// seconds and nanoseconds of the software stamp.
fn stamp_in(control: &[u64]) -> Option<Duration> {
    let &[_, header, seconds, nanos, ..] = control else { return None };
    let [level, kind] = halves(header);
    let is_stamp = (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    (is_stamp && seconds > 0).then(|| Duration::new(seconds, nanos))
}

/// Splits a word into its two ints.
fn halves(word: u64) -> [i32; 2] {
    let bytes = word.to_ne_bytes();
    let int =
        |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [int(0), int(4)]
}

/// Time of the wall clock at a moment of the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    at: Instant,
    wall: Duration,
}

impl ClockReading {
    /// Reads both clocks. Repeats the reading if it was interrupted.
    fn now() -> Self {
        let read = |_| {
            let before = Clock.now();
            let wall = clock_gettime(ClockId::Realtime);
            let after = Clock.now();
            let wall = Duration::new(wall.tv_sec as u64, wall.tv_nsec as u32);
            let took = after.since(before);
            (took, Self { at: before + took / 2, wall })
        };
        let mut readings = (0..READINGS_MAX).map(read);
        let first = readings.next().expect("READINGS_MAX is not zero");
        if first.0 <= READING_TIME_MAX {
            return first.1;
        }
        let shortest = readings.fold(first, |best, next| if next.0 < best.0 { next } else { best });
        shortest.1
    }
}

/// Converter of wall clock stamps to moments.
#[derive(Debug, Default)]
pub(crate) struct ArrivalClock {
    last: Option<ClockReading>,
    /// `last` was read since the last wait.
    is_fresh: bool,
    /// Stamps before this time of the wall clock are rejected: the clock was set then.
    trusted_from: Duration,
    /// Socket that requests stamps as long as this core does. When the first socket of a machine
    /// requests stamps, and when the last one closes, the kernel patches its own code on all CPUs.
    /// That must not happen with each short connection.
    keeper: Option<OwnedFd>,
}

impl ArrivalClock {
    /// Keeps the kernel's stamps on while no connection requests them. Without a free fd for the
    /// keeper, they are on only while a connection requests them.
    pub(crate) fn keep_stamps_on(&mut self) {
        if self.keeper.is_none() {
            let flags = SocketFlags::CLOEXEC;
            let keeper = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
            self.keeper = keeper.ok().inspect(|fd| request_stamps(fd.as_fd()));
        }
    }

    /// Requests a new comparison of the clocks at the next stamp.
    pub(crate) const fn expire(&mut self) {
        self.is_fresh = false;
    }

    /// Returns the moment of a stamp, or `None` if the wall clock was set after it.
    pub(crate) fn moment_of(&mut self, stamp: Duration) -> Option<Instant> {
        if !self.is_fresh {
            self.compare(ClockReading::now());
        }
        self.convert(stamp)
    }

    /// Records a new reading of both clocks. Detects whether the wall clock was set since the last
    /// one.
    fn compare(&mut self, now: ClockReading) {
        if let Some(last) = self.last {
            let passed = now.at.since(last.at);
            let shown = now.wall.as_nanos() as i128 - last.wall.as_nanos() as i128;
            let off = (shown - passed.as_nanos() as i128).unsigned_abs();
            if off > (STEP_MIN + passed / SLEW_SHARE).as_nanos() {
                self.trusted_from = now.wall;
            }
        }
        self.last = Some(now);
        self.is_fresh = true;
    }

    fn convert(&self, stamp: Duration) -> Option<Instant> {
        let ClockReading { at, wall } = self.last?;
        if stamp < self.trusted_from {
            return None;
        }
        match wall.checked_sub(stamp) {
            Some(age) => Some(at.saturating_sub(age)),
            // The stamp is later than the comparison, in the same turn.
            None => {
                let later = stamp - wall;
                (later < LATER_MAX).then(|| at + later)
            }
        }
    }
}

/// Size of a stamp, 64 bytes: a header of 16, and three times of 16 each.
const CONTROL_WORDS: usize = 8;
/// Longest time that a reading of both clocks may take.
const READING_TIME_MAX: Duration = Duration::from_micros(5);
/// Attempts to read both clocks within that time.
const READINGS_MAX: usize = 4;
/// Smallest difference that counts as a step of the wall clock.
const STEP_MIN: Duration = Duration::from_micros(500);
/// Daemons that correct a clock let it run faster or slower by up to a tenth; this is not a step.
const SLEW_SHARE: u32 = 10;
/// No turn takes this long. A stamp further ahead is from before the clock was set back.
const LATER_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn reading(at_ms: u64, wall_ms: u64) -> ClockReading {
        ClockReading {
            at: Instant::from_nanos(at_ms * 1_000_000),
            wall: Duration::from_millis(wall_ms),
        }
    }

    fn clock(readings: &[ClockReading]) -> ArrivalClock {
        let mut clock = ArrivalClock::default();
        for reading in readings {
            clock.compare(*reading);
        }
        clock
    }

    #[track_caller]
    fn check(readings: &[ClockReading], stamp_ms: u64, moment_ms: Option<u64>) {
        let moment = clock(readings).convert(Duration::from_millis(stamp_ms));
        assert_eq!(moment, moment_ms.map(|ms| Instant::from_nanos(ms * 1_000_000)));
    }

    #[test]
    fn a_stamp_is_as_old_as_the_wall_clock_says() {
        check(&[reading(5_000, 1_000_000)], 999_990, Some(4_990));
        check(&[reading(5_000, 1_000_000)], 1_000_003, Some(5_003));
    }

    #[test]
    fn stamps_from_before_a_step_of_the_wall_clock_are_not_trusted() {
        let forward = [reading(5_000, 1_000_000), reading(5_010, 1_060_010)];
        check(&forward, 1_000_005, None);
        check(&forward, 1_060_009, None);
        check(&forward, 1_060_011, Some(5_011));
        let backward = [reading(5_000, 1_000_000), reading(5_010, 940_010)];
        check(&backward, 1_000_005, None);
        check(&backward, 940_011, Some(5_011));
        let again = [forward[0], forward[1], reading(5_020, 1_060_020)];
        check(&again, 1_060_015, Some(5_015));
    }

    #[test]
    fn a_clock_that_is_corrected_slowly_has_no_step() {
        let slewed = [reading(5_000, 1_000_000), reading(6_000, 1_001_080)];
        check(&slewed, 1_001_070, Some(5_990));
    }

    #[test]
    fn what_is_no_stamp_says_nothing() {
        assert_eq!(stamp_in(&[]), None);
        assert_eq!(stamp_in(&[64, 0, 17, 5]), None);
        let header = u64::from_ne_bytes({
            let [a, b, c, d] = libc::SOL_SOCKET.to_ne_bytes();
            let [e, f, g, h] = libc::SCM_TIMESTAMPING.to_ne_bytes();
            [a, b, c, d, e, f, g, h]
        });
        assert_eq!(stamp_in(&[64, header, 17, 5]), Some(Duration::new(17, 5)));
        assert_eq!(stamp_in(&[64, header, 0, 0]), None);
        assert_eq!(stamp_in(&[64, header, 17, u64::MAX]), None);
    }
}
