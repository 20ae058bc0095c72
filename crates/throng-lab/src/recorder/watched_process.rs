//! A process for a sampler to watch.

use throng_doctor::WatchedProcess;

/// Returns the process `pid` without others, under the name `label`: `client`, `server`.
pub(crate) fn watched_process(label: &str, pid: u32) -> WatchedProcess {
    WatchedProcess { label: label.to_owned(), pid, also: Vec::new() }
}
