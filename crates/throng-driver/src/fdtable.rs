//! File descriptors: limits, and private fd tables of cores.

use std::os::fd::{AsRawFd, RawFd};

use rustix::fs::{Mode, OFlags};

use crate::Errno;
use crate::socket::last_errno;

/// Fds of a core's table that are not connections: standard streams, epoll, listeners, sockets in
/// transit between cores, and the numbers of up to [`PROGRAM_FDS`] fds of the program.
pub const RESERVED: usize = 64;

/// Fd numbers that a private table keeps out of use, because the rest of the program had them open
/// when the core started. Further fds of the program leave less room for connections.
pub const PROGRAM_FDS: usize = 16;

/// Most cores of one process: each has an eventfd and a handoff socket in the tables of all others.
pub const CORES_MAX: usize = 1_024;

/// Raises the soft limit of fds to the hard one. Returns the limit in force.
pub fn raise_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let effective =
        if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    effective.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Raises the limit as [`raise_limit`] does. Returns it, less the program's own fds beyond
/// [`PROGRAM_FDS`] if the table is private.
pub fn limit_of_a_table(private: bool) -> usize {
    let beyond = |fds: Vec<RawFd>| fds.len().saturating_sub(STANDARD_STREAMS + PROGRAM_FDS);
    let taken = if private { open_fds().map_or(0, beyond) } else { 0 };
    raise_limit().saturating_sub(taken)
}

/// Returns how many connections fit into one private table with the limit `limit`, when `cores`
/// cores run.
pub const fn usable(limit: usize, cores: usize) -> usize {
    limit.saturating_sub(RESERVED + SHARED_FDS_PER_CORE * cores)
}

/// Returns how many connections fit into one table that all cores share with the rest of the
/// program.
pub const fn usable_shared(limit: usize, cores: usize) -> usize {
    limit.saturating_sub(RESERVED + RECORDER_FDS + (SHARED_FDS_PER_CORE + OWN_FDS_PER_CORE) * cores)
}

/// Fd tables of the cores of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdTables {
    /// Fds that fit into one table.
    pub limit: usize,
    /// True if each core has a table of its own; false if the whole program has one.
    pub private: bool,
}

impl FdTables {
    /// Raises the limit of this process as [`raise_limit`] does, and tries whether a thread can
    /// have its own table.
    pub fn of_this_process() -> Self {
        Self { limit: raise_limit(), private: can_be_private().is_ok() }
    }

    /// Returns how many connections the tables of so many cores hold.
    pub const fn connections(self, cores: usize) -> u64 {
        if self.private {
            (usable(self.limit, cores) as u64).saturating_mul(cores as u64)
        } else {
            usable_shared(self.limit, cores) as u64
        }
    }
}

/// Fds that every table holds for each core: its eventfd and both ends of its handoff socket.
const SHARED_FDS_PER_CORE: usize = 3;
/// Further fds of each core: its epoll instance and its listener.
const OWN_FDS_PER_CORE: usize = 2;
/// Files of a recorder, which it keeps open to read them even if no fd is free: about 70, and more
/// in nested control groups.
const RECORDER_FDS: usize = 128;

/// Checks whether a thread of this machine can have its own fd table. Tries it on a thread that
/// ends at once.
pub fn can_be_private() -> Result<(), Errno> {
    std::thread::spawn(make_private).join().unwrap_or(Err(Errno::PERMISSION))
}

/// Fds 0, 1 and 2, which every table keeps.
const STANDARD_STREAMS: usize = 3;

/// Gives the calling thread its own fd table, a copy of the present one.
pub(crate) fn make_private() -> Result<(), Errno> {
    // SAFETY: the same numbers stay open, so no object loses its fd. A close in one table does not
    // affect the other; `revoke_all_except` relies on that.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }
        .map_err(Errno::from)
}

/// Closes every fd of the calling thread's private table, except the standard streams and those in
/// `keep`, and keeps the closed numbers out of use.
///
/// A file that stayed open here would stay open after its owner closed it: a listener would swallow
/// connections. A free number would go to the next connection, while objects of this thread that
/// own an fd may still write to that number. So a placeholder takes each number; every operation on
/// it except close fails with EBADF.
///
/// # Errors
/// EMFILE, ENFILE: no fd is free for the placeholder.
pub(crate) fn revoke_all_except(mut keep: Vec<RawFd>) -> Result<(), Errno> {
    keep.sort_unstable();
    let is_foreign =
        |fd: &RawFd| *fd >= STANDARD_STREAMS as RawFd && keep.binary_search(fd).is_err();
    let Some(open) = open_fds() else {
        // Without `/proc` the open numbers are unknown.
        close_all_except(&keep);
        return Ok(());
    };
    let placeholder = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    for fd in open.into_iter().filter(is_foreign) {
        // SAFETY: the table is private, and the owners of its other fds are in other tables. The
        // placeholder is open.
        let done = unsafe { libc::dup3(placeholder.as_raw_fd(), fd, libc::O_CLOEXEC) };
        match done {
            0.. => {}
            // The limit was lowered after the fd was opened, so no file can get its number.
            _ if last_errno() == Errno::BAD_FD => close_range(fd, fd),
            _ => return Err(last_errno()),
        }
    }
    Ok(())
}

/// Returns the fds that are open in the calling thread's table; `None` without `/proc`.
fn open_fds() -> Option<Vec<RawFd>> {
    let folder = "/proc/thread-self/fd";
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let listed: Vec<RawFd> = std::fs::read_dir(folder).ok()?.flatten().filter_map(number).collect();
    // The listing itself had one fd open, which is closed now.
    let is_open = |fd: &RawFd| std::fs::read_link(format!("{folder}/{fd}")).is_ok();
    Some(listed.into_iter().filter(is_open).collect())
}

/// Closes all fds except the standard streams and `keep`, which is sorted.
fn close_all_except(keep: &[RawFd]) {
    let mut from = STANDARD_STREAMS as RawFd;
    for &fd in keep.iter().filter(|&&fd| fd >= STANDARD_STREAMS as RawFd) {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: as in `revoke_all_except`.
        let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        // Kernels before 5.9 lack the call. Then the copies stay open, which costs fds.
        let is_fine = done == 0 || last_errno() == Errno(libc::ENOSYS);
        debug_assert!(is_fine, "close_range({first}, {last}) failed");
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;

    use super::*;

    /// Runs `look` on a thread with a private table in which no fd was kept.
    fn in_a_private_table<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> T {
        let body = || {
            make_private().unwrap();
            revoke_all_except(Vec::new()).unwrap();
            look()
        };
        std::thread::spawn(body).join().unwrap()
    }

    #[test]
    fn what_a_private_table_closes_stays_open_elsewhere() {
        let (mut read, write) = std::io::pipe().unwrap();
        let (mut write, error) = in_a_private_table(move || {
            let mut write = write;
            let error = write.write(b"x").unwrap_err();
            (write, error)
        });
        assert_eq!(error.raw_os_error(), Some(libc::EBADF), "the thread's own copy is closed");
        assert_eq!(write.write(b"y").unwrap(), 1);
        drop(write);
        let mut rest = Vec::new();
        read.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"y");
    }

    #[test]
    fn the_number_of_an_fd_from_elsewhere_is_never_given_to_another_file() {
        let file = File::open("/dev/zero").unwrap();
        let number = file.as_raw_fd();
        let opened = in_a_private_table(move || {
            let opened: Vec<OwnedFd> =
                (0..200).map(|_| std::io::pipe().unwrap().0.into()).collect();
            let copy = file.try_clone().unwrap();
            let error = (&copy).read(&mut [0]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF), "a copy of it is closed too");
            opened.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>()
        });
        assert!(!opened.contains(&number), "{number} in {opened:?}");
    }

    #[test]
    fn a_kept_fd_works_in_a_private_table() {
        let (kept, mut read) = {
            let (read, write) = std::io::pipe().unwrap();
            (write, read)
        };
        let body = move || {
            make_private().unwrap();
            revoke_all_except(vec![kept.as_raw_fd()]).unwrap();
            let mut kept = kept;
            kept.write_all(b"kept").unwrap();
        };
        std::thread::spawn(body).join().unwrap();
        let mut bytes = [0; 4];
        read.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"kept");
    }

    #[test]
    fn each_core_costs_fds_in_every_table() {
        assert_eq!(usable(20_000, 2), 20_000 - 64 - 6);
        assert_eq!(usable(10, 2), 0);
        assert_eq!(usable_shared(20_000, 2), 20_000 - 64 - 128 - 10);
    }
}
