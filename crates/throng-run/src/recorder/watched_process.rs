//! A process for a sampler to watch.

use throng_machine::WatchedProcess;
use throng_measure::Endpoint;

/// Returns the process `pid` of a program, without others.
pub(crate) fn watched_process(program: Endpoint, pid: u32) -> WatchedProcess {
    WatchedProcess { program, pid, also: Vec::new() }
}
