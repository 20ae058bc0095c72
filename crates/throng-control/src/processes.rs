//! The running throng processes of this user on this machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_driver::folder::check_private;

use crate::{ControlClient, ControlReply, ControlRequest, ProcessRole, Verb, place};

/// A throng process that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The role of the process in a test.
    pub role: ProcessRole,
    /// The address that a server listens on, or the scenario that a generator runs.
    pub title: String,
    /// The path of the control socket.
    pub path: PathBuf,
}

/// The throng processes of this user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessList {
    /// Processes that answered within a second, by process id.
    pub processes: Vec<Process>,
    /// The ids of processes that have a control socket and do not answer: they hang, or were
    /// stopped.
    pub silent: Vec<u32>,
    /// The reason why the search was refused: other users can write to the folder of the control
    /// sockets.
    pub refused: Option<String>,
}

/// Returns all processes that answer within a second, by process id. Removes the files of ended
/// processes.
pub fn processes() -> Vec<Process> {
    find().processes
}

/// Returns all processes of this user, including those that do not answer.
pub fn find() -> ProcessList {
    find_in(&place::folder())
}

fn find_in(folder: &Path) -> ProcessList {
    let mut found = ProcessList::default();
    match check_private(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
        Err(error) => return ProcessList { refused: Some(error.to_string()), ..found },
    }
    place::remove_stale(folder);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let Some(pid) = place::pid_of(&path) else { continue };
        match identify(path, pid) {
            Identity::Answers(process) => found.processes.push(process),
            Identity::IsSilent => found.silent.push(pid),
            Identity::IsAnother => {}
        }
    }
    found.processes.sort_by_key(|process| process.pid);
    found.silent.sort_unstable();
    found
}

const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(1);

/// The process behind a control socket.
enum Identity {
    Answers(Process),
    IsSilent,
    /// Another process than the file's name says.
    IsAnother,
}

fn identify(path: PathBuf, pid: u32) -> Identity {
    let Ok(client) = ControlClient::connect(&path) else { return Identity::IsSilent };
    if !place::is_answered_by_its_process(&path, client.stream()) {
        return Identity::IsAnother;
    }
    let reply = client.with_timeout(IDENTIFY_TIMEOUT).request(&ControlRequest::new(Verb::Who));
    let Ok(ControlReply { role, data }) = reply else { return Identity::IsSilent };
    match (data["pid"].as_u64(), data["title"].as_str()) {
        (Some(answered_pid), Some(title)) if answered_pid == u64::from(pid) => {
            Identity::Answers(Process { pid, role, title: title.to_owned(), path })
        }
        _ => Identity::IsAnother,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::{ControlTarget, serve};

    struct Mute;

    impl ControlTarget for Mute {
        fn verbs(&self) -> &[Verb] {
            &[]
        }

        fn answer(&self, _: &ControlRequest) -> Result<Value, String> {
            Err(String::new())
        }
    }

    /// Returns a folder with the socket of a process that answers, and the socket of an ended
    /// process.
    fn folder(name: &str) -> (tempfile::TempDir, PathBuf, crate::ControlSocket) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(name);
        place::make_folder(&folder).unwrap();
        let path = folder.join(format!("{}.sock", std::process::id()));
        let socket = serve(Some(&path), ProcessRole::Server, "here", Arc::new(Mute)).unwrap();
        drop(UnixListener::bind(folder.join("5000000.sock")).unwrap());
        (dir, folder, socket)
    }

    #[track_caller]
    fn is_refused(folder: &Path, says: &str) {
        let found = find_in(folder);
        assert!(found.processes.is_empty() && found.silent.is_empty(), "{found:?}");
        assert!(found.refused.as_ref().is_some_and(|why| why.contains(says)), "{found:?}");
        assert!(folder.join("5000000.sock").exists(), "nothing is removed there");
    }

    #[test]
    fn processes_are_found_in_a_folder_of_this_user_alone() {
        let (_dir, folder, _socket) = folder("ours");
        let found = find_in(&folder);
        assert_eq!((found.processes.len(), found.refused), (1, None));
        assert!(!folder.join("5000000.sock").exists(), "that one is gone");
        assert_eq!(find_in(&folder.join("none")), ProcessList::default());
    }

    #[test]
    fn a_folder_that_others_may_have_filled_is_not_believed() {
        let (dir, folder, _socket) = folder("theirs");
        let link = dir.path().join("link");
        symlink(&folder, &link).unwrap();
        is_refused(&link, "it is a link");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        is_refused(&folder, "other users may enter it");
    }

    #[test]
    fn a_folder_of_another_user_is_not_believed() {
        let (_dir, folder, _socket) = folder("another's");
        if chown(&folder, Some(65_534), None).is_err() {
            return println!("skipped: only root gives a folder to another user");
        }
        is_refused(&folder, "it belongs to user 65534");
    }

    #[test]
    fn a_socket_of_another_process_than_its_name_says_is_not_believed() {
        let (_dir, folder, socket) = folder("named");
        let other = folder.join("1.sock");
        fs::rename(socket.path(), &other).unwrap();
        assert_eq!(find_in(&folder), ProcessList::default());
    }
}
