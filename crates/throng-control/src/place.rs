//! The folder of the control sockets: one per user of the machine, with one file per process.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use throng_driver::folder::{check_private, create_private, effective_uid, peer};

/// Returns `$XDG_RUNTIME_DIR/throng`, or `/tmp/throng-UID` if that is not set.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if Path::new(&dir).is_dir() => Path::new(&dir).join("throng"),
        _ => PathBuf::from(format!("/tmp/throng-{}", effective_uid())),
    }
}

/// Creates the folder if it does not exist.
///
/// # Errors
/// The folder cannot be created, or another user could put sockets into it.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    match create_private(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(explain(error, "cannot create the folder", folder));
        }
        _ => {}
    }
    check_private(folder).map_err(|error| {
        let what = format!(
            "{error}\n  {} must be a folder that only this user may enter; remove it, or pass \
             --control PATH",
            folder.display()
        );
        io::Error::new(error.kind(), what)
    })
}

/// Returns the process id in the name of the file `PID.sock`.
pub(crate) fn pid_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

/// Reports whether the process that listens at `path`, to which `stream` is connected, has the
/// process id in the file's name and belongs to this user.
pub(crate) fn is_answered_by_its_process(path: &Path, stream: &UnixStream) -> bool {
    let Ok(peer) = peer(stream) else { return false };
    let is_named = |pid: u32| peer.pid == 0 || peer.pid == pid || inner_pid(peer.pid) == Some(pid);
    peer.uid == effective_uid() && pid_of(path).is_some_and(is_named)
}

/// Returns the id that the process `pid` has in its own PID namespace, if that is an inner one: its
/// file is named by that id.
fn inner_pid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_ascii_whitespace().last()?.parse().ok()
}

/// Removes the socket files of ended processes from `folder`, which belongs to this user alone.
pub(crate) fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let gone = pid_of(&path).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        // The process may live in another PID namespace that shares the folder: then it accepts the
        // connection.
        if gone && UnixStream::connect(&path).is_err() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes room for a socket at `path`: removes a socket without a listener.
///
/// # Errors
/// `path` is not a socket, or a process listens on it.
pub(crate) fn clear(path: &Path) -> io::Result<()> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    let in_use = |what: &str| {
        let text = format!("{} {what}", path.display());
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    };
    // A symlink's target is not touched. But a symlink to a regular file was not made for a socket.
    let leads_to = if meta.is_symlink() { fs::metadata(path).ok() } else { Some(meta) };
    if leads_to.is_some_and(|meta| !meta.file_type().is_socket()) {
        return in_use("exists and is not a socket");
    }
    if UnixStream::connect(path).is_ok() {
        return in_use("is the control socket of a running process");
    }
    fs::remove_file(path).map_err(|error| explain(error, "cannot replace", path))
}

/// Adds the attempted action and the path to `error`.
pub(crate) fn explain(error: io::Error, what: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn files_of_dead_processes_are_removed_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let dead = file(&format!("{PID_BEYOND_ALL}.sock"));
        drop(UnixListener::bind(&dead).unwrap());
        let living = file(&format!("{}.sock", std::process::id()));
        let _listener = UnixListener::bind(&living).unwrap();
        fs::write(file("notes.txt"), "kept").unwrap();
        remove_stale(dir.path());
        assert!(!dead.exists() && living.exists() && file("notes.txt").exists());
    }

    #[test]
    fn a_socket_that_answers_is_not_removed_though_its_pid_is_not_ours_to_see() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join(format!("{PID_BEYOND_ALL}.sock"));
        let _listener = UnixListener::bind(&elsewhere).unwrap();
        remove_stale(dir.path());
        assert!(elsewhere.exists());
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("throng");
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let error = make_folder(&folder).unwrap_err().to_string();
        assert!(error.contains("--control PATH"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_socket_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        fs::write(&path, "data").unwrap();
        assert!(clear(&path).unwrap_err().to_string().contains("not a socket"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }

    #[test]
    fn a_link_to_a_file_is_never_replaced_and_one_to_nothing_is() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("precious"), dir.path().join("throng.sock"));
        symlink(&file, &link).unwrap();
        clear(&link).unwrap();
        assert!(!link.is_symlink());
        fs::write(&file, "data").unwrap();
        symlink(&file, &link).unwrap();
        assert!(clear(&link).unwrap_err().to_string().contains("not a socket"));
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "data");
    }

    #[test]
    fn a_socket_is_answered_by_the_process_that_its_name_says_or_by_an_impostor() {
        let dir = tempfile::tempdir().unwrap();
        let is_genuine = |pid: u32| {
            let path = dir.path().join(format!("{pid}.sock"));
            let _listener = UnixListener::bind(&path).unwrap();
            is_answered_by_its_process(&path, &UnixStream::connect(&path).unwrap())
        };
        assert!(is_genuine(std::process::id()));
        assert!(!is_genuine(PID_BEYOND_ALL));
        assert_eq!(inner_pid(std::process::id()), Some(std::process::id()));
    }

    /// A pid above the largest that Linux gives (2^22).
    const PID_BEYOND_ALL: u32 = 5_000_000;
}
