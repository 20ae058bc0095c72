//! Resource use of this process.

use throng_report::ProcessUse;

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

/// Returns the resident memory in bytes; 0 if `/proc` cannot be read.
pub fn rss_bytes() -> u64 {
    // smaps_rollup would be exact, but takes the mmap lock for milliseconds. statm may be a few
    // pages off.
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

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
