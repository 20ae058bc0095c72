//! Which throng processes of this user run on this machine.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Client, Request, Role, Verb, place};

/// A throng process that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// Which end of a test it is.
    pub role: Role,
    /// The address that a server listens on, or the scenario that a generator runs.
    pub title: String,
    /// Its control socket.
    pub path: PathBuf,
}

/// All that answer within a second, by process id. Files of processes that are gone are removed.
pub fn processes() -> Vec<Process> {
    processes_and_silent().0
}

/// The same, and the ids of those that have a control socket and say nothing there: they hang, or were stopped.
pub fn processes_and_silent() -> (Vec<Process>, Vec<u32>) {
    let folder = place::folder();
    place::remove_stale(&folder);
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let Some(pid) = place::pid_of(&path) else { continue };
        match who(path) {
            Some(process) => found.push(process),
            None => silent.push(pid),
        }
    }
    found.sort_by_key(|process| process.pid);
    silent.sort_unstable();
    (found, silent)
}

const WHO_TIMEOUT: Duration = Duration::from_secs(1);

fn who(path: PathBuf) -> Option<Process> {
    let mut client = Client::connect(&path).ok()?.with_timeout(WHO_TIMEOUT);
    let reply = client.ask(&Request::new(Verb::Who)).ok()?;
    let pid = u32::try_from(reply.data["pid"].as_u64()?).ok()?;
    let title = reply.data["title"].as_str()?.to_owned();
    Some(Process { pid, role: reply.role, title, path })
}
