//! File descriptors: how many there can be, and a table of its own for each core.

use std::os::fd::RawFd;

use crate::Errno;
use crate::socket::last_errno;

/// fds of a core's table that are not connections: standard streams, epoll, listeners, eventfds of all
/// cores and sockets on their way from one core to another.
pub const RESERVED: usize = 64;

/// The most cores of one process: each has an eventfd and a passing socket in the tables of all others.
pub const CORES_MAX: usize = 1_024;

/// Raises the soft RLIMIT_NOFILE to the hard one and returns it.
pub fn raise_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let effective =
        if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    effective.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// How many connections fit into one table whose limit is `limit`, when `cores` cores run.
pub const fn usable(limit: usize, cores: usize) -> usize {
    limit.saturating_sub(RESERVED + EACH_CORE * cores)
}

/// The same for a table that all cores share with the rest of their program.
pub const fn usable_shared(limit: usize, cores: usize) -> usize {
    limit.saturating_sub(RESERVED + PROGRAM + (EACH_CORE + OWN_OF_CORE) * cores)
}

/// fds that every table holds for each core: its eventfd and both ends of its passing socket.
const EACH_CORE: usize = 3;
/// What of a core is otherwise in its own table: its epoll and its listener.
const OWN_OF_CORE: usize = 2;
/// The files of a recorder, which it keeps open to read them when no fd is left: some 70, and more in nested control groups.
const PROGRAM: usize = 128;

/// Whether this machine lets a thread have an fd table of its own. Tried on a thread that ends at once.
pub fn can_be_private() -> Result<(), Errno> {
    std::thread::spawn(make_private).join().unwrap_or(Err(Errno::PERMISSION))
}

/// Gives the calling thread an fd table of its own: a copy of the present one.
pub(crate) fn make_private() -> Result<(), Errno> {
    // SAFETY: the thread goes on with the same numbers open as before, so no object that owns an fd
    // loses it; closing in one table leaves the other alone, which `close_all_but` relies on.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }
        .map_err(Errno::from)
}

/// Closes, in the calling thread's own table, every fd above the standard streams but those in `keep`. What
/// stayed open here would live on after its owner closed it: a listener would swallow connections.
pub(crate) fn close_all_but(mut keep: Vec<RawFd>) {
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep.into_iter().filter(|&fd| fd >= 3) {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: only called on a private table whose other fds belong to owners that live in other tables.
        let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        // Kernels before 5.9 lack the call; the copies then stay open, which costs fds, not correctness of ours.
        let is_fine = done == 0 || last_errno() == Errno(libc::ENOSYS);
        debug_assert!(is_fine, "close_range({first}, {last}) failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_private_table_closes_stays_open_elsewhere() {
        let (read, write) = std::io::pipe().unwrap();
        let closed = std::thread::spawn(move || {
            make_private().unwrap();
            close_all_but(Vec::new());
            let gone = rustix::io::write(&write, b"x").is_err();
            (gone, write)
        });
        let (gone, write) = closed.join().unwrap();
        assert!(gone, "the thread's own copy was to be closed");
        assert_eq!(rustix::io::write(&write, b"x"), Ok(1));
        drop((read, write));
    }

    #[test]
    fn each_core_costs_fds_in_every_table() {
        assert_eq!(usable(20_000, 2), 20_000 - 64 - 6);
        assert_eq!(usable(10, 2), 0);
        assert_eq!(usable_shared(20_000, 2), 20_000 - 64 - 128 - 10);
    }
}
