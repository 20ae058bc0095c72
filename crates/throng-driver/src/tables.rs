//! The fd tables of this process, and the table of the calling thread.
//!
//! A number names another file in another table. So fds that cores with their own tables share with
//! the thread that started them know their tables, and are neither used nor closed in any other
//! table.

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Fd tables of one set of cores: the table of the thread that started them and, if each core has
/// its own, the tables of the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    starter: u64,
    cores: u64,
}

/// Fd table of the calling thread.
#[derive(Clone, Copy)]
struct CurrentTable {
    table: u64,
    /// Set of cores to which this thread belongs, if its table is its own.
    cores: u64,
}

thread_local! {
    /// A thread that is not a core has the table of its process.
    static CURRENT: Cell<CurrentTable> = const { Cell::new(CurrentTable { table: 0, cores: 0 }) };
}

/// Next number of a table or a set of cores. 0 is the table of the process, and no set of cores.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Tables {
    /// Returns the tables of cores that the calling thread is about to start.
    pub(crate) fn for_new_cores() -> Self {
        Self { starter: CURRENT.get().table, cores: NEXT.fetch_add(1, Relaxed) }
    }

    /// Records that the calling thread is one of the cores, with its own table or the starter's.
    pub(crate) fn enter(self, is_private: bool) {
        CURRENT.set(if is_private {
            CurrentTable { table: NEXT.fetch_add(1, Relaxed), cores: self.cores }
        } else {
            CurrentTable { table: self.starter, cores: 0 }
        });
    }

    /// Reports whether the calling thread has one of these tables. A thread that a core with its
    /// own table started counts as a thread with the table of the process.
    pub(crate) fn are_current(self) -> bool {
        let current = CURRENT.get();
        current.table == self.starter || current.cores == self.cores
    }

    /// Panics if the calling thread has another table.
    pub(crate) fn assert_current(self) {
        assert!(
            self.are_current(),
            "this handle sends messages to cores whose fds are not open in the private fd table of \
             this core: start one of the two engines with `private_fds: false`"
        );
    }
}

/// Fd that is open under one number in several tables. A drop in any other table leaves it open,
/// because there its number belongs to another file.
#[derive(Debug)]
pub(crate) struct SharedFd {
    /// `None` only during the drop.
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
        self.fd.as_ref().expect("only drop takes it").as_fd()
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

    /// Reports whether a thread that is a core of `cores` has one of `tables`.
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
        assert!(!are_there(inner, outer, true), "another core of the outer set");
    }

    #[test]
    fn an_fd_that_is_dropped_in_a_foreign_table_stays_open() {
        let (ours, others) = (Tables::for_new_cores(), Tables::for_new_cores());
        let (_read, write) = std::io::pipe().unwrap();
        let raw = write.as_raw_fd();
        let shared = SharedFd::new(write.into(), ours);
        // The thread claims to have another table; it has this one, so the test can see the number.
        let drop_there = move || {
            others.enter(true);
            drop(shared);
        };
        thread::spawn(drop_there).join().unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{raw}"));
        assert!(link.is_ok_and(|link| link.to_string_lossy().starts_with("pipe:")));

        let (mut read, write) = std::io::pipe().unwrap();
        drop(SharedFd::new(write.into(), ours));
        let received = std::io::Read::read(&mut read, &mut [0]).unwrap();
        assert_eq!(received, 0, "in its own table it is closed");
    }
}
