//! `/proc/sys/fs/file-nr`: the open files of the whole machine.

use crate::fact::ParseFailure;
use crate::text::next;

/// The open files of the machine, from `fs.file-nr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Open files of all processes, with sockets.
    pub open: u64,
    /// Most open files; beyond it every open fails with ENFILE, except with
    /// CAP_SYS_ADMIN.
    pub max: u64,
}

/// File with the open files and their limit.
pub const FILE_NR_PATH: &str = "proc/sys/fs/file-nr";

/// Parses `fs.file-nr`. Its second number has been 0 since Linux 2.6.
pub fn parse_file_nr(text: &str) -> Result<FileUse, ParseFailure> {
    let mut words = text.split_ascii_whitespace();
    let (allocated, free, max) = (next(&mut words)?, next(&mut words)?, next(&mut words)?);
    Ok(FileUse { open: allocated.saturating_sub(free), max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded_root;

    #[test]
    fn files_are_read() {
        let root = recorded_root("linux-6.18");
        let found = root.read(FILE_NR_PATH, parse_file_nr).into_result().unwrap();
        assert!(found.open > 0 && found.open < found.max, "{found:?}");
        assert_eq!(parse_file_nr("520\t8\t99\n"), Ok(FileUse { open: 512, max: 99 }));
        assert!(parse_file_nr("520\n").is_err());
    }
}
