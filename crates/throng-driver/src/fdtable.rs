//! File descriptors: how many there can be, and a table of its own for each core.

use std::os::fd::{AsRawFd, RawFd};

use rustix::fs::{Mode, OFlags};

use crate::Errno;
use crate::socket::last_errno;

/// fds of a core's table that are not connections: standard streams, epoll, listeners, sockets on
/// their way from one core to another, and the numbers of up to [`PROGRAM_FDS`] fds of the program.
pub const RESERVED: usize = 64;

/// Numbers that a private table keeps out of use, because the rest of the program had fds under them
/// when the core began. What the program has open beyond that leaves less room for connections.
pub const PROGRAM_FDS: usize = 16;

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

/// The same, less what the program's own fds take of each private table beyond [`PROGRAM_FDS`].
pub fn limit_of_a_table(private: bool) -> usize {
    let beyond = |fds: Vec<RawFd>| fds.len().saturating_sub(STANDARD_STREAMS + PROGRAM_FDS);
    let taken = if private { open_fds().map_or(0, beyond) } else { 0 };
    raise_limit().saturating_sub(taken)
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

/// 0, 1 and 2, which every table keeps.
const STANDARD_STREAMS: usize = 3;

/// Gives the calling thread an fd table of its own: a copy of the present one.
pub(crate) fn make_private() -> Result<(), Errno> {
    // SAFETY: the thread goes on with the same numbers open as before, so no object that owns an fd
    // loses it; closing in one table leaves the other alone, which `disown_all_but` relies on.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }
        .map_err(Errno::from)
}

/// Closes, in the calling thread's own table, every fd above the standard streams but those in
/// `keep`, and keeps their numbers out of use.
///
/// What stayed open here would live on after its owner closed it: a listener would swallow
/// connections. And a number that became free would be the next connection's, while whatever this
/// thread was given that owns an fd still writes to that number. So a placeholder takes it, on which
/// everything but closing fails with EBADF.
///
/// # Errors
/// EMFILE, ENFILE: there is no fd left for the placeholder.
pub(crate) fn revoke_all_except(mut keep: Vec<RawFd>) -> Result<(), Errno> {
    keep.sort_unstable();
    let is_foreign =
        |fd: &RawFd| *fd >= STANDARD_STREAMS as RawFd && keep.binary_search(fd).is_err();
    let Some(open) = open_fds() else {
        // Without `/proc` nothing says which numbers are in use.
        close_all_but(&keep);
        return Ok(());
    };
    let placeholder = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    for fd in open.into_iter().filter(is_foreign) {
        // SAFETY: only called on a private table, whose other fds belong to owners that live in other
        // tables; the placeholder is open.
        let done = unsafe { libc::dup3(placeholder.as_raw_fd(), fd, libc::O_CLOEXEC) };
        match done {
            0.. => {}
            // The limit was lowered after it was opened: no file gets such a number any more.
            _ if last_errno() == Errno::BAD_FD => close_range(fd, fd),
            _ => return Err(last_errno()),
        }
    }
    Ok(())
}

/// The numbers that are open in the calling thread's table; none where there is no `/proc`.
fn open_fds() -> Option<Vec<RawFd>> {
    let folder = "/proc/thread-self/fd";
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let listed: Vec<RawFd> = std::fs::read_dir(folder).ok()?.flatten().filter_map(number).collect();
    // The listing itself had one of them open.
    let is_open = |fd: &RawFd| std::fs::read_link(format!("{folder}/{fd}")).is_ok();
    Some(listed.into_iter().filter(is_open).collect())
}

/// `keep` is sorted.
fn close_all_but(keep: &[RawFd]) {
    let mut from = STANDARD_STREAMS as RawFd;
    for &fd in keep.iter().filter(|&&fd| fd >= STANDARD_STREAMS as RawFd) {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: as in `disown_all_but`.
        let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        // Kernels before 5.9 lack the call; the copies then stay open, which costs fds, not correctness of ours.
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

    /// What `look` finds on a thread with a table of its own that kept nothing.
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
            assert_eq!(
                error.raw_os_error(),
                Some(libc::EBADF),
                "a copy of it leads nowhere either"
            );
            opened.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>()
        });
        assert!(!opened.contains(&number), "{number} in {opened:?}");
    }

    #[test]
    fn what_is_kept_works_and_the_rest_is_told_by_its_number() {
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
