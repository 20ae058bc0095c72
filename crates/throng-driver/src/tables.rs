//! In which fd tables of this process an fd is open, and which of them the calling thread has.
//!
//! A number means another file in another table. So what cores with tables of their own share with
//! the thread that started them knows its tables, and is neither used nor closed in any other.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The fd tables of one set of cores: the table of the thread that started them and, where each core
/// has its own, those of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    starter: u64,
    cores: u64,
}

/// Which table the calling thread has.
#[derive(Clone, Copy)]
struct CurrentTable {
    table: u64,
    /// The set of cores that this thread belongs to, when its table is its own.
    cores: u64,
}

thread_local! {
    /// A thread that is no core has the table of its process.
    static CURRENT: Cell<CurrentTable> = const { Cell::new(CurrentTable { table: 0, cores: 0 }) };
}

/// Numbers tables and sets of cores; 0 is the process' table, and no set of cores.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Tables {
    /// Returns the tables of cores that the calling thread is about to start.
    pub(crate) fn for_new_cores() -> Self {
        Self { starter: CURRENT.get().table, cores: NEXT.fetch_add(1, Relaxed) }
    }

    /// Notes that the calling thread is one of the cores, with a table of its own or the starter's.
    pub(crate) fn enter(self, is_private: bool) {
        CURRENT.set(match is_private {
            true => CurrentTable { table: NEXT.fetch_add(1, Relaxed), cores: self.cores },
            false => CurrentTable { table: self.starter, cores: 0 },
        });
    }

    /// Whether the calling thread has one of these tables. A thread that a core with its own table
    /// started is taken for one of the process.
    pub(crate) fn are_current(self) -> bool {
        let here = CURRENT.get();
        here.table == self.starter || here.cores == self.cores
    }

    /// Panics when the calling thread has another table.
    pub(crate) fn assert_current(self) {
        assert!(
            self.are_current(),
            "this handle posts to cores whose fds are not open in the private fd table of this \
             core: start one of the two engines with `private_fds: false`"
        );
    }
}

/// An fd that is open under one number in several tables. Dropped in another table, it stays open:
/// its number there is somebody else's.
#[derive(Debug)]
pub(crate) struct SharedFd {
    /// Absent only while it is dropped.
    fd: Option<OwnedFd>,
    tables: Tables,
}

impl SharedFd {
    pub(crate) fn new(fd: OwnedFd, tables: Tables) -> Self {
        Self { fd: Some(fd), tables }
    }
}

impl Drop for SharedFd {
    fn drop(&mut self) {
        if !self.tables.are_current() {
            std::mem::forget(self.fd.take());
        }
    }
}

impl AsFd for SharedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is taken by drop alone").as_fd()
    }
}

impl AsRawFd for SharedFd {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Whether `tables` are those of a thread that is a core of `cores`.
    fn are_there(tables: Tables, cores: Tables, is_private: bool) -> bool {
        let look = move || {
            cores.enter(is_private);
            tables.are_current()
        };
        thread::spawn(look).join().unwrap()
    }

    #[test]
    fn tables_are_those_of_the_starter_and_of_its_own_cores() {
        let (ours, others) = (Tables::for_new_cores(), Tables::for_new_cores());
        assert!(ours.are_current() && others.are_current());
        assert!(are_there(ours, ours, true));
        assert!(are_there(ours, others, false), "one table for all");
        assert!(!are_there(ours, others, true));
    }

    #[test]
    fn cores_that_a_core_starts_belong_to_the_table_of_that_core() {
        let outer = Tables::for_new_cores();
        let inner = thread::spawn(move || {
            outer.enter(true);
            let inner = Tables::for_new_cores();
            assert!(are_there(inner, inner, false) && are_there(inner, inner, true));
            inner
        });
        let inner = inner.join().unwrap();
        assert!(!inner.are_current(), "this thread has the process' table");
        assert!(!are_there(inner, outer, true), "another core of the outer ones");
    }

    #[test]
    fn an_fd_that_is_dropped_in_a_foreign_table_stays_open() {
        let (ours, others) = (Tables::for_new_cores(), Tables::for_new_cores());
        let (_read, write) = std::io::pipe().unwrap();
        let raw = write.as_raw_fd();
        let shared = SharedFd::new(write.into(), ours);
        // The thread says that its table is another one; it is this one, so the number can be seen.
        let drop_there = move || {
            others.enter(true);
            drop(shared);
        };
        thread::spawn(drop_there).join().unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{raw}"));
        assert!(link.is_ok_and(|link| link.to_string_lossy().starts_with("pipe:")));

        let (mut read, write) = std::io::pipe().unwrap();
        drop(SharedFd::new(write.into(), ours));
        let end = std::io::Read::read(&mut read, &mut [0]).unwrap();
        assert_eq!(end, 0, "at home it is closed");
    }
}
