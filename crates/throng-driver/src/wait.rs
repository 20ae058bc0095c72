//! Waiting for an event or a moment, with a precision of 20 microseconds.
//!
//! `epoll_wait` counts in milliseconds and is late by 0.67 ms at the median; `epoll_pwait2` with a
//! timer slack of one nanosecond is late by 0.02 ms. Kernels before 5.11 lack it: there a timerfd
//! in the same set wakes the plain call.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use crate::Errno;
use crate::socket::last_errno;

/// Longest time to wait for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitTimeout {
    /// Return at once.
    Zero,
    /// Wait at most this long.
    For(Duration),
    /// Wait until an event.
    Unlimited,
}

/// Method of waiting that this kernel supports.
pub(crate) enum Waiter {
    Pwait2,
    TimerFd(OwnedFd),
}

impl Waiter {
    /// Chooses the method, and adds a timerfd under `token` to `set` if the method needs one.
    pub(crate) fn new(set: BorrowedFd<'_>, token: u64) -> Result<Self, Errno> {
        // Only a hint: without it, waits are late by another 50 us.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut none = [const { MaybeUninit::uninit() }; 1];
        if pwait2(set, &mut none, WaitTimeout::Zero).is_ok() {
            return Ok(Self::Pwait2);
        }
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let data = epoll::EventData::new_u64(token);
        epoll::add(set, &timer, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        Ok(Self::TimerFd(timer))
    }

    /// Waits, and fills `events` from the front. Returns how many events there are.
    pub(crate) fn wait(
        &self,
        set: BorrowedFd<'_>,
        events: &mut [MaybeUninit<libc::epoll_event>],
        timeout: WaitTimeout,
    ) -> Result<usize, Errno> {
        match self {
            Self::Pwait2 => pwait2(set, events, timeout),
            Self::TimerFd(timer) => {
                if let WaitTimeout::For(span) = timeout {
                    arm(timer, span)?;
                }
                plain(set, events, if timeout == WaitTimeout::Zero { 0 } else { -1 })
            }
        }
    }
}

fn arm(timer: &OwnedFd, span: Duration) -> Result<(), Errno> {
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let value = timespec(span.max(Duration::from_nanos(1)));
    rustix::time::timerfd_settime(
        timer.as_fd(),
        TimerfdTimerFlags::empty(),
        &Itimerspec { it_interval: zero, it_value: value },
    )?;
    Ok(())
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}

fn pwait2(
    set: BorrowedFd<'_>,
    events: &mut [MaybeUninit<libc::epoll_event>],
    timeout: WaitTimeout,
) -> Result<usize, Errno> {
    let span = match timeout {
        WaitTimeout::Zero => Some(timespec(Duration::ZERO)),
        WaitTimeout::For(span) => Some(timespec(span)),
        WaitTimeout::Unlimited => None,
    };
    let timeout = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `events` is writable for its length, `timeout` is null or a valid timespec in the
    // kernel's 64-bit layout, and there is no signal mask.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            set.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as libc::c_int,
            timeout,
            std::ptr::null::<libc::sigset_t>(),
            size_of::<u64>(),
        )
    };
    usize::try_from(count).map_err(|_| last_errno())
}

fn plain(
    set: BorrowedFd<'_>,
    events: &mut [MaybeUninit<libc::epoll_event>],
    timeout_ms: libc::c_int,
) -> Result<usize, Errno> {
    // SAFETY: `events` is writable for its length.
    let count = unsafe {
        libc::epoll_wait(
            set.as_raw_fd(),
            events.as_mut_ptr().cast(),
            events.len() as libc::c_int,
            timeout_ms,
        )
    };
    usize::try_from(count).map_err(|_| last_errno())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Longer than a busy machine delays a thread.
    const FOREVER: Duration = Duration::from_secs(20);

    fn waits_for_the_span(waiter: &Waiter, set: &OwnedFd) {
        let mut events = [const { MaybeUninit::uninit() }; 4];
        let begun = Instant::now();
        waiter.wait(set.as_fd(), &mut events, WaitTimeout::For(Duration::from_millis(5))).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(5));
        assert!(begun.elapsed() < FOREVER);
        let begun = Instant::now();
        waiter.wait(set.as_fd(), &mut events, WaitTimeout::Zero).unwrap();
        assert!(begun.elapsed() < FOREVER);
    }

    #[test]
    fn waits_as_long_as_asked() {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let waiter = Waiter::new(set.as_fd(), 0).unwrap();
        waits_for_the_span(&waiter, &set);
    }

    #[test]
    fn a_timerfd_waits_as_long_as_asked_too() {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags).unwrap();
        let data = epoll::EventData::new_u64(0);
        epoll::add(&set, &timer, data, epoll::EventFlags::IN | epoll::EventFlags::ET).unwrap();
        waits_for_the_span(&Waiter::TimerFd(timer), &set);
    }
}
