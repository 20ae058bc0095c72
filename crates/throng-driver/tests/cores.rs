//! Failed setup of cores. The test has its own process, because it lowers the fd limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rustix::process::{Resource, Rlimit, setrlimit};
use throng_driver::{CoresOptions, Epoll, EpollDriver, Errno, spawn};

#[test]
fn none_runs_when_one_cannot_be_set_up_and_no_fd_is_left_behind() {
    let before = open_fds();
    // Enough for the shared fds of all cores, and for the epoll sets of some of them.
    let limit = Some((before + FDS_PER_CORE * CORES + 4) as u64);
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = Arc::clone(&ran);
    let options = CoresOptions { cores: CORES, private_fds: false, ..CoresOptions::default() };
    let spawned = spawn(&options, Epoll, move |_: EpollDriver<()>| {
        runs.fetch_add(1, SeqCst);
    });
    assert_eq!(spawned.err(), Some(Errno::TABLE_FULL));
    assert_eq!(ran.load(SeqCst), 0);
    assert_eq!(Arc::strong_count(&ran), 1, "every thread has ended");
    assert_eq!(open_fds(), before);
}

fn open_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

const CORES: usize = 8;
/// A core's eventfd and both ends of its passing socket.
const FDS_PER_CORE: usize = 3;
