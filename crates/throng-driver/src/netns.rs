//! Network namespaces of single threads.
//!
//! The kernel keeps a namespace per thread, and a child process starts in the namespace of the
//! thread that started it. So a process that needs a namespace each for the server and the
//! generator needs a thread for each, and no helper program. A namespace ends with its last thread,
//! process or open `/proc/…/ns/net`, even if these ended by a crash.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::Errno;

/// Moves the calling thread into a new network namespace. Its loopback interface is down, and its
/// sysctls have their defaults.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN; `EINVAL` where the kernel has no network namespaces; `ENOSPC`
/// when `user.max_net_namespaces` is reached.
pub fn unshare() -> Result<(), Errno> {
    // SAFETY: the fd table stays shared, and open sockets stay in the namespace in which they were
    // opened.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(Errno::from)
}

/// Moves the calling thread into the network namespace of the process `pid`. Returns true if that
/// differs from the thread's own.
///
/// # Errors
/// `ENOENT` if the process does not exist; `EACCES` or `EPERM` if it belongs to another user.
pub fn enter(pid: u32) -> Result<bool, Errno> {
    if is_current(pid)? {
        return Ok(false);
    }
    let file = File::open(format!("/proc/{pid}/ns/net")).map_err(errno)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(true)
}

/// Reports whether the process `pid` is in the network namespace of the calling thread.
///
/// # Errors
/// The errors of [`enter`].
pub fn is_current(pid: u32) -> Result<bool, Errno> {
    Ok(name(&format!("/proc/{pid}/ns/net"))? == current()?)
}

/// Returns the kernel's name of the calling thread's network namespace, such as `net:[4026531840]`.
///
/// # Errors
/// `ENOENT` without `/proc`.
pub fn current() -> Result<PathBuf, Errno> {
    name("/proc/thread-self/ns/net")
}

fn name(path: &str) -> Result<PathBuf, Errno> {
    std::fs::read_link(path).map_err(errno)
}

fn errno(error: std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_its_own_process_s_namespace_need_not_move() {
        assert_eq!(is_current(std::process::id()), Ok(true));
        assert_eq!(enter(std::process::id()), Ok(false));
    }

    #[test]
    fn the_namespace_of_a_missing_process_cannot_be_entered() {
        assert_eq!(enter(u32::MAX), Err(Errno(libc::ENOENT)));
    }

    #[test]
    fn only_the_thread_that_asks_moves() {
        let here = std::fs::read_link("/proc/self/ns/net").unwrap();
        let there = std::thread::spawn(|| {
            unshare()?;
            Ok::<_, Errno>(std::fs::read_link("/proc/thread-self/ns/net").unwrap())
        });
        match there.join().unwrap() {
            Ok(there) => assert_ne!(here, there),
            Err(errno) => println!("skipped: {errno}"),
        }
        assert_eq!(std::fs::read_link("/proc/self/ns/net").unwrap(), here);
    }
}
