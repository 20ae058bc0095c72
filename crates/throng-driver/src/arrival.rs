//! When bytes arrived, by the kernel's clock.
//!
//! A program that reads late sees answers late. The kernel knows when they came: SO_TIMESTAMPING has it
//! note the arrival of each segment, and `recvmsg` tells that of the last byte it returns. The notes are
//! of CLOCK_REALTIME, which an administrator may set at any time; [`ArrivalClock`] turns them into moments
//! of CLOCK_MONOTONIC and distrusts those from before such a step.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::time::{ClockId, clock_gettime};
use throng_base::Instant;

use crate::socket::last_errno;
use crate::{Clock, Errno};

/// Has the kernel note when segments arrive at `fd`. Where it cannot, receives bring no stamps.
pub(crate) fn request_stamps(fd: BorrowedFd<'_>) {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the option takes an int of this size, which lives over the call.
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

/// Receives into `buffer`, and returns with the count the arrival of the last byte, since the epoch.
pub(crate) fn recv(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Result<(usize, Option<Duration>), Errno> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all of its fields may be zero.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // The system call itself: as a point at which a thread may be cancelled, libc's costs more.
    // SAFETY: the message names a buffer and a control buffer of these lengths, which live over the call.
    let received = unsafe { libc::syscall(libc::SYS_recvmsg, fd.as_raw_fd(), &raw mut message, 0) };
    let Ok(received) = usize::try_from(received) else { return Err(last_errno()) };
    let told_bytes: usize = message.msg_controllen as _;
    let length = (told_bytes / size_of::<u64>()).min(CONTROL_WORDS);
    Ok((received, stamp_in(&control[..length])))
}

/// Returns what the handshake of a connect that has just succeeded took.
pub(crate) fn handshake_rtt(fd: BorrowedFd<'_>) -> Option<Duration> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which are there.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    // SAFETY: all of its fields may be zero, and what the kernel has written are numbers.
    let info = unsafe { info.assume_init() };
    let is_known = done == 0 && info.tcpi_rtt > 0;
    let is_clean = info.tcpi_total_retrans == 0 && info.tcpi_retransmits == 0;
    (is_known && is_clean).then(|| Duration::from_micros(info.tcpi_rtt.into()))
}

/// Reads the first control message, if it is a stamp: a header of a length, a level and a type, then the
/// seconds and nanoseconds of the software's stamp.
fn stamp_in(control: &[u64]) -> Option<Duration> {
    let &[_, header, seconds, nanos, ..] = control else { return None };
    let [level, kind] = halves(header);
    let is_stamp = (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    (is_stamp && seconds > 0).then(|| Duration::new(seconds, nanos))
}

/// Splits a word into the two ints that lie in it.
fn halves(word: u64) -> [i32; 2] {
    let bytes = word.to_ne_bytes();
    let int =
        |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [int(0), int(4)]
}

/// What the wall clock says at a moment of the monotonic one.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    at: Instant,
    wall: Duration,
}

impl ClockReading {
    /// Reads both clocks, again if something came in between.
    fn now() -> Self {
        let read = |_| {
            let before = Clock.now();
            let wall = clock_gettime(ClockId::Realtime);
            let after = Clock.now();
            let wall = Duration::new(wall.tv_sec as u64, wall.tv_nsec as u32);
            let took = after.since(before);
            (took, Self { at: before + took / 2, wall })
        };
        let mut tries = (0..READINGS_MAX).map(read);
        let first = tries.next().expect("there is one at least");
        if first.0 <= READING_MAX {
            return first.1;
        }
        let shortest = tries.fold(first, |best, next| if next.0 < best.0 { next } else { best });
        shortest.1
    }
}

/// Turns stamps of the wall clock into moments.
#[derive(Debug, Default)]
pub(crate) struct ArrivalClock {
    last: Option<ClockReading>,
    is_fresh: bool,
    /// Stamps from before this time of the wall clock are not trusted: the clock was set then.
    trusted_from: Duration,
    /// A socket that asks for arrivals as long as this core does. When the first socket of a machine
    /// begins to ask, and when the last one ends, the kernel rewrites its own code on all CPUs: that
    /// must not happen with each short connection.
    keeper: Option<OwnedFd>,
}

impl ArrivalClock {
    /// Has the kernel go on noting arrivals while no connection asks for it. Without a free fd it does so
    /// as long as there is one.
    pub(crate) fn keep_noting(&mut self) {
        if self.keeper.is_none() {
            let flags = SocketFlags::CLOEXEC;
            let keeper = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
            self.keeper = keeper.ok().inspect(|fd| request_stamps(fd.as_fd()));
        }
    }

    /// Has the clocks compared again at the next stamp.
    pub(crate) const fn expire(&mut self) {
        self.is_fresh = false;
    }

    /// Returns the moment of a stamp; none if it is from before the wall clock was set.
    pub(crate) fn moment_of(&mut self, stamp: Duration) -> Option<Instant> {
        if !self.is_fresh {
            self.compare(ClockReading::now());
        }
        self.convert(stamp)
    }

    /// Takes a new reading of both clocks, and notices if the wall clock was set since the last one.
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
            // It came after the clocks were compared, in this same turn.
            None => {
                let later = stamp - wall;
                (later < LATER_MAX).then(|| at + later)
            }
        }
    }
}

/// A stamp takes 64 bytes: a header of 16, and three times of 16 each.
const CONTROL_WORDS: usize = 8;
/// How far apart two readings may be that count as one.
const READING_MAX: Duration = Duration::from_micros(5);
const READINGS_MAX: usize = 4;
/// The least difference that is a step of the wall clock.
const STEP_MIN: Duration = Duration::from_micros(500);
/// Daemons that correct a clock let it run faster or slower by up to a tenth; that is no step.
const SLEW_SHARE: u32 = 10;
/// No turn takes that long; a stamp from further ahead is from before the clock was set back.
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
