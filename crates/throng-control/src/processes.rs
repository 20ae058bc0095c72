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
    let folder = place::folder();
    place::remove_stale(&folder);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let sockets = paths.filter(|path| place::pid_of(path).is_some());
    let mut found: Vec<_> = sockets.filter_map(who).collect();
    found.sort_by_key(|process| process.pid);
    found
}

const WHO_TIMEOUT: Duration = Duration::from_secs(1);

fn who(path: PathBuf) -> Option<Process> {
    let mut client = Client::connect(&path).ok()?.with_timeout(WHO_TIMEOUT);
    let reply = client.ask(&Request::new(Verb::Who)).ok()?;
    let pid = u32::try_from(reply.data["pid"].as_u64()?).ok()?;
    let title = reply.data["title"].as_str()?.to_owned();
    Some(Process { pid, role: reply.role, title, path })
}
