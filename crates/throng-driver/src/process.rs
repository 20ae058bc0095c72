//! Resource use of this process, and the sysctls that bound it.

use std::ops::RangeInclusive;
use std::os::unix::thread::JoinHandleExt;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use throng_measure::{Limit, ProcessUse};

/// Returns the CPU time and memory of this process. The caller fills in `rss_bytes_at_start`.
pub fn own_use() -> ProcessUse {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the struct has the kernel's layout, is writable, and is valid when all zero.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let micros = |time: libc::timeval| (time.tv_sec * 1_000_000 + time.tv_usec).unsigned_abs();
    ProcessUse {
        pid: std::process::id(),
        cpu_user_us: micros(usage.ru_utime),
        cpu_system_us: micros(usage.ru_stime),
        rss_bytes: rss_bytes(),
        rss_bytes_at_start: 0,
    }
}

/// Returns the CPU time of a thread since it began, in microseconds; `None` if it has ended.
pub(crate) fn thread_cpu_us<T>(thread: &JoinHandle<T>) -> Option<u64> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // A number in glibc, a pointer in musl.
    let id = thread.as_pthread_t() as libc::pthread_t;
    // SAFETY: the handle is neither joined nor detached, so its thread id is good, also after the
    // thread has ended: then the first call fails, or the second. Both write to live locals.
    let known = unsafe {
        libc::pthread_getcpuclockid(id, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    known.then(|| time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000)
}

/// Returns the resident memory in bytes; 0 if `/proc` cannot be read.
pub fn rss_bytes() -> u64 {
    // smaps_rollup would be exact, but takes the mmap lock for milliseconds. statm may be a few
    // pages off.
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Returns a sysctl of one number as it is now; `None` if `/proc` cannot be read.
pub fn sysctl(limit: Limit) -> Option<u64> {
    sysctl_text(&limit.path())?.trim().parse().ok()
}

/// Returns the kernel's range of source ports in this network namespace.
pub(crate) fn local_port_range() -> RangeInclusive<u16> {
    let read = || {
        let text = sysctl_text(&Limit::PORTS.path())?;
        let mut numbers = text.split_whitespace().map(str::parse);
        Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
    };
    read().unwrap_or(32_768..=60_999)
}

/// Returns the times for which the port of a closed connection cannot be reused: in general, and on
/// the loopback network.
pub(crate) fn time_waits() -> (Duration, Duration) {
    let (whole, short) = (Duration::from_secs(60), Duration::from_secs(1));
    // After one second a new connection may reuse the port: everywhere, or on loopback only.
    match sysctl_text("net/ipv4/tcp_tw_reuse").unwrap_or_default().trim() {
        "1" => (short, short),
        "2" => (whole, short),
        _ => (whole, whole),
    }
}

fn sysctl_text(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new("/proc/sys").join(path)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_thread_is_its_own_and_unknown_after_its_end() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut sum = 0_u64;
            while own_thread_us() < 20_000 {
                sum = std::hint::black_box(sum + 1);
            }
            tell.send(()).unwrap();
            let _ = may_end.recv();
        });
        told.recv().unwrap();
        assert!(thread_cpu_us(&thread).unwrap() >= 20_000);
        drop(end);
        while !thread.is_finished() {
            std::thread::yield_now();
        }
        // The kernel may still be taking the thread down.
        while thread_cpu_us(&thread).is_some() {
            std::thread::yield_now();
        }
        thread.join().unwrap();
    }

    fn own_thread_us() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000
    }

    #[test]
    fn a_process_has_used_something() {
        let before = own_use();
        let ballast = vec![1u8; 32 << 20];
        let after = own_use();
        assert!(after.rss_bytes >= before.rss_bytes + (24 << 20), "{before:?} {after:?}");
        assert!(after.cpu_user_us + after.cpu_system_us > 0);
        drop(ballast);
    }
}
