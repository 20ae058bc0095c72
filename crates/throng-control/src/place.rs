//! Where control sockets lie: one folder per user of the machine, one file per process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// `$XDG_RUNTIME_DIR/throng`, or `/tmp/throng-UID` where that is not set.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if Path::new(&dir).is_dir() => Path::new(&dir).join("throng"),
        _ => PathBuf::from(format!("/tmp/throng-{}", uid())),
    }
}

/// The folder, made if it is not there.
///
/// # Errors
/// It cannot be made, or somebody else could put sockets into it.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(explain(error, "cannot make the folder", folder));
        }
        _ => {}
    }
    let meta = fs::symlink_metadata(folder).map_err(|e| explain(e, "cannot look at", folder))?;
    if !meta.is_dir() || meta.uid() != uid() || meta.mode() & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} must be a folder that only this user may enter; remove it, or give --control PATH",
                folder.display()
            ),
        ));
    }
    Ok(())
}

/// The process whose socket the file `PID.sock` is.
pub(crate) fn pid_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

/// Removes the socket files in `folder` of processes that are gone.
pub(crate) fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let gone = pid_of(&path).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        // The process may live in another PID namespace that shares the folder: then it answers.
        if gone && UnixStream::connect(&path).is_err() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes way for a socket at `path`: removes one that nobody listens on.
///
/// # Errors
/// `path` is no socket, or a process answers there.
pub(crate) fn clear(path: &Path) -> io::Result<()> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    let in_use = |what: &str| {
        let text = format!("{} {what}", path.display());
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    };
    if !meta.file_type().is_socket() && !meta.file_type().is_symlink() {
        return in_use("is there already, and it is no socket");
    }
    if UnixStream::connect(path).is_ok() {
        return in_use("is the control socket of a process that runs");
    }
    fs::remove_file(path).map_err(|error| explain(error, "cannot replace", path))
}

/// `error` with what was attempted and where.
pub(crate) fn explain(error: io::Error, what: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

/// The effective user: the owner of this process' entry in `/proc`.
fn uid() -> u32 {
    fs::metadata("/proc/self").map_or(0, |meta| meta.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
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
        assert!(clear(&path).unwrap_err().to_string().contains("no socket"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }

    /// Beyond the largest pid that Linux gives (2^22).
    const PID_BEYOND_ALL: u32 = 5_000_000;
}
