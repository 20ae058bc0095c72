//! `/proc/sys/fs`: files and epoll watches of the whole machine.

use crate::fact::{Fact, ParseFailure};
use crate::proc_root::ProcRoot;
use crate::text::next;

/// `fs.file-nr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Open files of all processes, sockets included.
    pub open: u64,
    /// How many may be (`fs.file-max`); beyond it every open is ENFILE, but for CAP_SYS_ADMIN.
    pub max: u64,
}

/// Where it is.
pub const FILE_NR_PATH: &str = "proc/sys/fs/file-nr";

/// Reads `fs.file-nr`. Its second number has been 0 since Linux 2.6.
pub fn parse_file_nr(text: &str) -> Result<FileUse, ParseFailure> {
    let mut words = text.split_ascii_whitespace();
    let (allocated, free, max) = (next(&mut words)?, next(&mut words)?, next(&mut words)?);
    Ok(FileUse { open: allocated.saturating_sub(free), max })
}

/// The largest size of one fd table (`fs.nr_open`), whatever `RLIMIT_NOFILE` says.
pub fn nr_open(root: &ProcRoot) -> Fact<i64> {
    root.sysctl("fs.nr_open")
}

/// How many watches all epoll instances of one user may have together; the kernel does not tell how
/// many they have. Beyond it `epoll_ctl` is ENOSPC, for that user's other programs too.
pub fn epoll_watches_max(root: &ProcRoot) -> Fact<i64> {
    root.sysctl("fs.epoll.max_user_watches")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn files_and_watches_are_read() {
        let root = recorded_root("linux-6.18");
        let found = root.read(FILE_NR_PATH, parse_file_nr).into_result().unwrap();
        assert!(found.open > 0 && found.open < found.max, "{found:?}");
        assert_eq!(nr_open(&root), Fact::Known(1 << 20));
        assert_eq!(epoll_watches_max(&root), Fact::Known(5_490_265));
        assert_eq!(parse_file_nr("520\t8\t99\n"), Ok(FileUse { open: 512, max: 99 }));
        assert!(parse_file_nr("520\n").is_err());
    }
}
