//! Which throng processes of this user run on this machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_driver::folder::check_private;

use crate::{ControlClient, ControlReply, ControlRequest, ProcessRole, Verb, place};

/// A throng process that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// Which end of a test it is.
    pub role: ProcessRole,
    /// The address that a server listens on, or the scenario that a generator runs.
    pub title: String,
    /// Its control socket.
    pub path: PathBuf,
}

/// What is known of the processes of this user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessList {
    /// Those that answered within a second, by process id.
    pub processes: Vec<Process>,
    /// The ids of those that have a control socket and say nothing there: they hang, or were stopped.
    pub silent: Vec<u32>,
    /// Why none was looked for: the folder of the control sockets is not this user's alone.
    pub refused: Option<String>,
}

/// Returns all that answer within a second, by process id. Files of processes that are gone are removed.
pub fn processes() -> Vec<Process> {
    find().processes
}

/// Returns the same, with those that do not answer.
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
        match who(path, pid) {
            Who::Answers(process) => found.processes.push(process),
            Who::IsSilent => found.silent.push(pid),
            Who::IsAnother => {}
        }
    }
    found.processes.sort_by_key(|process| process.pid);
    found.silent.sort_unstable();
    found
}

const WHO_TIMEOUT: Duration = Duration::from_secs(1);

/// Who is behind a control socket.
enum Who {
    Answers(Process),
    IsSilent,
    /// Not the process that the file is named after.
    IsAnother,
}

fn who(path: PathBuf, pid: u32) -> Who {
    let Ok(client) = ControlClient::connect(&path) else { return Who::IsSilent };
    if !place::is_answered_by_its_process(&path, client.stream()) {
        return Who::IsAnother;
    }
    let asked = client.with_timeout(WHO_TIMEOUT).ask(&ControlRequest::new(Verb::Who));
    let Ok(ControlReply { role, data }) = asked else { return Who::IsSilent };
    match (data["pid"].as_u64(), data["title"].as_str()) {
        (Some(said), Some(title)) if said == u64::from(pid) => {
            Who::Answers(Process { pid, role, title: title.to_owned(), path })
        }
        _ => Who::IsAnother,
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

    /// A folder with a process that answers in it, and the socket of one that is gone.
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
