//! Open fds of a process: how many there are, and what they are.

use std::collections::{BTreeSet, HashMap};

use crate::fact::Fact;
use crate::proc_root::ProcRoot;

/// What the open fds of a process are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdKinds {
    /// Sockets, in any state.
    pub sockets: u64,
    /// The part of the sockets that their peers have closed and the process has not (CLOSE-WAIT).
    pub close_wait: u64,
    /// Files and devices.
    pub files: u64,
    /// Path that most of the files have; if they differ, the folder that most are in.
    pub path: Option<String>,
    /// Files with this path, or in this folder.
    pub of_path: u64,
}

/// Returns the number of fds that a process has open.
pub fn count_fds(root: &ProcRoot, pid: u32) -> Fact<u64> {
    root.count_entries(&format!("proc/{pid}/fd"))
}

/// Returns the kinds of a process's fds, of the first few thousand. `close_wait` has the inodes of
/// sockets in CLOSE-WAIT.
pub fn fd_kinds(root: &ProcRoot, pid: u32, close_wait: &BTreeSet<u64>) -> Fact<FdKinds> {
    let table = format!("proc/{pid}/fd");
    root.names(&table).map(|names| {
        let links = names.iter().take(FDS_MAX).filter_map(|fd| root.link(&format!("{table}/{fd}")));
        FdKinds::of(links, close_wait)
    })
}

/// Reports whether a table with so many of `fds_max` fds is full. While accept() fails, a few
/// others come and go.
pub fn is_full(open: u64, fds_max: u64) -> bool {
    open.saturating_add(FDS_LEFT_FEW) >= fds_max
}

impl FdKinds {
    /// Sorts the links of fds, such as `socket:[4711]` or `/tmp/x`.
    fn of(links: impl Iterator<Item = String>, close_wait: &BTreeSet<u64>) -> Self {
        let (mut kinds, mut paths) = (Self::default(), HashMap::<String, u64>::new());
        for link in links {
            if let Some(socket) = link.strip_prefix("socket:[") {
                let inode = socket.trim_end_matches(']').parse();
                kinds.sockets += 1;
                kinds.close_wait += u64::from(inode.is_ok_and(|inode| close_wait.contains(&inode)));
            } else if link.starts_with('/') {
                kinds.files += 1;
                *paths.entry(link).or_default() += 1;
            }
        }
        let most = most_frequent(&paths).filter(|(_, count)| count * 2 > kinds.files);
        let most = most.or_else(|| {
            let mut folders = HashMap::<String, u64>::new();
            for (path, count) in &paths {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                *folders.entry(format!("{folder}/")).or_default() += count;
            }
            most_frequent(&folders)
        });
        kinds.of_path = most.as_ref().map_or(0, |(_, count)| *count);
        Self { path: most.map(|(path, _)| path), ..kinds }
    }
}

/// Returns the name with the largest count; of equals, the first by name.
fn most_frequent(counts: &HashMap<String, u64>) -> Option<(String, u64)> {
    let most = counts.iter().max_by_key(|(name, count)| (**count, std::cmp::Reverse(*name)));
    most.map(|(name, count)| (name.clone(), *count))
}

/// The fds that are left at most in a full table.
const FDS_LEFT_FEW: u64 = 4;

/// The most fds whose links are read.
const FDS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fds_are_sorted_by_what_they_are() {
        let of = |links: &[&str]| {
            FdKinds::of(links.iter().map(|link| (*link).to_owned()), &BTreeSet::from([12]))
        };
        let kinds = of(&["socket:[11]", "socket:[12]", "pipe:[3]", "anon_inode:[eventpoll]"]);
        assert_eq!(kinds, FdKinds { sockets: 2, close_wait: 1, ..FdKinds::default() });
        let same = of(&["/tmp/log", "/tmp/log", "/tmp/log", "/dev/null"]);
        assert_eq!((same.files, same.path.as_deref(), same.of_path), (4, Some("/tmp/log"), 3));
        let differ = of(&["/tmp/a", "/tmp/b", "/dev/null"]);
        assert_eq!((differ.path.as_deref(), differ.of_path), (Some("/tmp/"), 2));
    }

    #[test]
    fn the_fds_of_this_process_are_counted() {
        let root = ProcRoot::default();
        let files: Vec<_> = (0..40).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let open = *count_fds(&root, std::process::id()).known().unwrap();
        let kinds = fd_kinds(&root, std::process::id(), &BTreeSet::new());
        assert!(open >= 40, "{open}");
        assert!(kinds.known().unwrap().files >= files.len() as u64);
    }
}
