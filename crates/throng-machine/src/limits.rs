//! `/proc/PID/limits`: the resource limits of a process.

use crate::fact::{Fact, ParseFailure};
use crate::proc_root::ProcRoot;
use crate::text::{after, number};

/// A soft and a hard limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rlimit {
    /// Limit in force.
    pub soft: Option<u64>,
    /// Limit up to which the process itself may raise the soft one.
    pub hard: Option<u64>,
}

/// The limits that connections may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Fds in one fd table, and slots of one io_uring.
    pub open_files: Rlimit,
    /// `RLIMIT_NPROC`: threads of the user.
    pub processes: Rlimit,
    /// `RLIMIT_MEMLOCK`, in bytes.
    pub locked_memory_bytes: Rlimit,
    /// `RLIMIT_AS`, in bytes.
    pub address_space_bytes: Rlimit,
}

impl ProcessLimits {
    /// Returns the fds that one fd table can hold once the soft limit is raised to the hard one: no
    /// table is larger than `nr_open`.
    pub fn usable_fds_per_table(&self, nr_open: u64) -> u64 {
        self.open_files.hard.unwrap_or(u64::MAX).min(nr_open)
    }
}

/// Reads the limits of one process.
pub fn limits(root: &ProcRoot, pid: u32) -> Fact<ProcessLimits> {
    root.read(&format!("proc/{pid}/limits"), parse)
}

/// Parses `/proc/PID/limits`.
pub fn parse(text: &str) -> Result<ProcessLimits, ParseFailure> {
    let limit = |name| {
        let line = after(text, name).ok_or(ParseFailure("a line for each limit"))?;
        let mut words = line.split_ascii_whitespace();
        let mut value = || match words.next() {
            Some("unlimited") => Ok(None),
            Some(word) => number(word).map(Some),
            None => Err(ParseFailure("a soft and a hard limit")),
        };
        Ok(Rlimit { soft: value()?, hard: value()? })
    };
    Ok(ProcessLimits {
        open_files: limit("Max open files ")?,
        processes: limit("Max processes ")?,
        locked_memory_bytes: limit("Max locked memory ")?,
        address_space_bytes: limit("Max address space ")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{recorded, recorded_root};

    #[test]
    fn soft_and_hard_limits_are_read() {
        let found = limits(&recorded_root("linux-6.18"), 4242).into_result().unwrap();
        assert_eq!(found.open_files, Rlimit { soft: Some(20_000), hard: Some(20_000) });
        assert_eq!(found.address_space_bytes, Rlimit { soft: None, hard: None });
        assert_eq!(found.usable_fds_per_table(1 << 20), 20_000);
    }

    #[test]
    fn nr_open_bounds_a_table_without_a_limit() {
        let found = parse(&recorded("linux-5.15-container", "proc/self/limits")).unwrap();
        assert_eq!(found.open_files, Rlimit { soft: Some(1024), hard: None });
        assert_eq!(found.usable_fds_per_table(1 << 20), 1 << 20);
    }

    #[test]
    fn a_limit_that_is_missing_is_not_zero() {
        assert!(parse("Max open files  1 2 files\n").is_err());
        assert!(parse("").is_err());
    }
}
