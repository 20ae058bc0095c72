//! Waiting: until an event or a moment, to within 20 microseconds.
//!
//! `epoll_wait` counts in milliseconds and is late by 0.67 ms at the median; `epoll_pwait2` with a timer
//! slack of one nanosecond by 0.02 ms. Either starts a timer of the kernel and stops it again at every wait, which
//! costs a quarter of a connection at low rates. So a moment that is not near waits in a timerfd of the same set, which is
//! set only when it would come too late; kernels before 5.11, which lack `epoll_pwait2`, have it for near moments too.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use throng_base::Instant;

use crate::Errno;
use crate::socket::last_errno;

/// How long to wait for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// Only look.
    None,
    /// This long.
    For(Duration),
    /// Until something happens.
    Endless,
}

/// Waits for the events of a set.
pub(crate) struct Waiter {
    alarm: OwnedFd,
    /// When the alarm goes off; [`Instant::FAR`] when it does not.
    alarm_at: Instant,
    has_pwait2: bool,
}

impl Waiter {
    /// Adds its alarm to `set` under `token`: an event that says no more than that a wait is over.
    pub(crate) fn new(set: BorrowedFd<'_>, token: u64) -> Result<Self, Errno> {
        // Only a hint: without it waits are late by 50 us more.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let alarm = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let data = epoll::EventData::new_u64(token);
        epoll::add(set, &alarm, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let mut none = [const { MaybeUninit::uninit() }; 1];
        let has_pwait2 = pwait2(set, &mut none, Patience::None).is_ok();
        Ok(Self { alarm, alarm_at: Instant::FAR, has_pwait2 })
    }

    /// Waits until there are events, or at least until `deadline`, or for a moment less; fills `events` from the front
    /// and returns how many. [`Instant::FAR`] waits for events alone, the past only looks.
    pub(crate) fn wait(
        &mut self,
        set: BorrowedFd<'_>,
        events: &mut [MaybeUninit<libc::epoll_event>],
        deadline: Instant,
        now: Instant,
    ) -> Result<usize, Errno> {
        let patience = match deadline.since(now) {
            _ if deadline == Instant::FAR => Patience::Endless,
            span if span.is_zero() => Patience::None,
            span if span < NEAR && self.has_pwait2 => Patience::For(span),
            span => {
                self.set_alarm(deadline, span, now)?;
                Patience::Endless
            }
        };
        match self.has_pwait2 {
            true => pwait2(set, events, patience),
            false => plain(set, events, if patience == Patience::None { 0 } else { -1 }),
        }
    }

    /// Sees to it that the alarm goes off by `deadline`, which is `span` from now. One that goes off before is left: the
    /// loop comes back.
    fn set_alarm(&mut self, deadline: Instant, span: Duration, now: Instant) -> Result<(), Errno> {
        let goes_off_before = self.alarm_at > now && self.alarm_at <= deadline;
        if !goes_off_before {
            arm(&self.alarm, span)?;
            self.alarm_at = deadline;
        }
        Ok(())
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
    patience: Patience,
) -> Result<usize, Errno> {
    let span = match patience {
        Patience::None => Some(timespec(Duration::ZERO)),
        Patience::For(span) => Some(timespec(span)),
        Patience::Endless => None,
    };
    let timeout = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `events` is writable for its length, `timeout` is null or a valid timespec of the kernel's
    // 64-bit layout, and no signal mask is given.
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

/// Moments nearer than this are waited for by `epoll_pwait2`: they change with every wait.
const NEAR: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    /// Longer than a busy machine keeps a thread waiting.
    const FOREVER: Duration = Duration::from_secs(20);
    const ALARM: u64 = 7;

    fn check(has_pwait2: bool) {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let mut waiter = Waiter::new(set.as_fd(), ALARM).unwrap();
        waiter.has_pwait2 &= has_pwait2;
        let mut events = [const { MaybeUninit::uninit() }; 4];
        let mut wait_until = |deadline: Instant| {
            let mut waits = 0;
            while Clock.now() < deadline {
                waiter.wait(set.as_fd(), &mut events, deadline, Clock.now()).unwrap();
                waits += 1;
            }
            assert!(Clock.now().since(deadline) < FOREVER);
            waits
        };
        for span in [Duration::from_micros(300), NEAR, 3 * NEAR] {
            assert!(wait_until(Clock.now() + span) <= 2);
        }
        // An alarm that was set for later does not keep a nearer moment waiting, and one that was set for before costs
        // one wait at most.
        let now = Clock.now();
        waiter.set_alarm(now + FOREVER, FOREVER, now).unwrap();
        let begun = Clock.now();
        let mut waits = 0;
        while Clock.now() < begun + 5 * NEAR {
            waiter.wait(set.as_fd(), &mut events, begun + 5 * NEAR, Clock.now()).unwrap();
            waits += 1;
        }
        assert!(Clock.now().since(begun) < FOREVER && waits <= 2);
        waiter.wait(set.as_fd(), &mut events, Instant::ZERO, Clock.now()).unwrap();
    }

    #[test]
    fn waits_as_long_as_asked() {
        check(true);
    }

    #[test]
    fn without_epoll_pwait2_it_waits_as_long_as_asked_too() {
        check(false);
    }
}
