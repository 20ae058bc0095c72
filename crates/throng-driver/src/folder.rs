//! Safe use of folders and files at paths that another user of this machine may have prepared: with
//! a link to another place, or with a folder of that user.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::Errno;
use crate::socket::last_errno;

/// Returns the effective user of this process.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Creates a folder that only this user may enter (mode 0700).
///
/// # Errors
/// `AlreadyExists` if anything exists at `path`, even a dangling link.
pub fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Checks that `path` is a folder that only this user may enter, and not a link.
///
/// # Errors
/// The folder cannot be read, or the check fails; the error says why.
pub fn check_private(path: &Path) -> io::Result<()> {
    check(path, 0o077, "other users may enter it: chmod 700")
}

/// Checks that `path` is a folder in which only this user can change anything, and not a link.
///
/// # Errors
/// The folder cannot be read, or the check fails; the error says why.
pub fn check_own(path: &Path) -> io::Result<()> {
    check(path, 0o022, "other users may write to it: chmod go-w")?;
    let above = fs::canonicalize(path)?;
    for folder in above.ancestors().skip(1) {
        let mode = fs::symlink_metadata(folder)?.mode();
        // In a sticky folder such as `/tmp`, only the owner of an entry may rename it.
        if mode & (OTHERS_WRITE | STICKY) == OTHERS_WRITE {
            let why = format!("any user may replace it: {} is world-writable", folder.display());
            return Err(refuse(path, &why));
        }
    }
    Ok(())
}

fn check(path: &Path, forbidden: u32, why: &str) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() {
        return Err(refuse(path, "it is a link; name the folder itself"));
    }
    if !meta.is_dir() {
        return Err(refuse(path, "it is not a folder"));
    }
    if !is_ours(&meta) {
        return Err(refuse(path, &format!("it belongs to user {}", meta.uid())));
    }
    if meta.mode() & forbidden != 0 {
        return Err(refuse(path, &format!("{why} {}", path.display())));
    }
    Ok(())
}

/// Reports whether the file belongs to this user.
pub fn is_ours(meta: &Metadata) -> bool {
    meta.uid() == effective_uid()
}

/// Creates an empty file, mode 0600. Removes a file or link at `path` without opening it, so the
/// target of a link does not change.
///
/// # Errors
/// The old file cannot be removed, or another process created a new one at once.
pub fn create_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).mode(0o600).open(path),
    }
}

/// Opens a folder so that it can be locked.
///
/// # Errors
/// `path` is not a folder, is a link (`ELOOP` or `ENOTDIR`), or cannot be read.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)
}

/// Opens a file to read and write. Creates it if it does not exist, with the mode that the umask
/// leaves. Does not wait if the file is a FIFO.
///
/// # Errors
/// `ELOOP` for a link.
pub fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Reports whether the error says that the last part of the path is a link.
pub fn is_a_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// Peer process of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixPeer {
    /// Process id; 0 if the process is in a PID namespace that this process does not see.
    pub pid: u32,
    /// Effective user of the process when it connected, or began to listen.
    pub uid: u32,
}

/// Returns the peer process of a connected Unix socket (`SO_PEERCRED`).
///
/// # Errors
/// `ENOTSOCK`, or `ENODATA` if the socket is not connected.
pub fn peer(socket: impl AsFd) -> Result<UnixPeer, Errno> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the option fills a `ucred` of this size, which lives during the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut peer).cast(),
            &mut length,
        )
    };
    if done != 0 {
        return Err(last_errno());
    }
    Ok(UnixPeer { pid: peer.pid.unsigned_abs(), uid: peer.uid })
}

fn refuse(path: &Path, why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} is not safe: {why}", path.display()),
    )
}

const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::UnixStream;

    use tempfile::tempdir;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn refused(result: io::Result<()>, says: &str) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn a_folder_is_private_or_own_by_its_mode() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("folder");
        create_private(&path).unwrap();
        for (bits, private, own) in [
            (0o700, true, true),
            (0o500, true, true),
            (0o755, false, true),
            (0o750, false, true),
            (0o770, false, false),
            (0o702, false, false),
            (0o1777, false, false),
        ] {
            mode(&path, bits);
            assert_eq!(check_private(&path).is_ok(), private, "{bits:o}");
            assert_eq!(check_own(&path).is_ok(), own, "{bits:o}");
        }
        refused(check_own(&path), "chmod go-w");
    }

    #[test]
    fn a_link_a_file_and_a_missing_path_are_not_folders() {
        let dir = tempdir().unwrap();
        let (real, link, file) =
            (dir.path().join("real"), dir.path().join("link"), dir.path().join("file"));
        create_private(&real).unwrap();
        symlink(&real, &link).unwrap();
        fs::write(&file, "").unwrap();
        for check in [check_private, check_own] {
            refused(check(&link), "it is a link");
            refused(check(&file), "it is not a folder");
            assert_eq!(
                check(&dir.path().join("none")).unwrap_err().kind(),
                io::ErrorKind::NotFound
            );
        }
        assert!(open(&real).is_ok() && open(&link).is_err() && open(&file).is_err());
        symlink("/nowhere", dir.path().join("dangling")).unwrap();
        let error = create_private(&dir.path().join("dangling")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_folder_that_any_user_may_replace_is_not_own() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("folder");
        create_private(&path).unwrap();
        mode(dir.path(), 0o777);
        refused(check_own(&path), "any user may replace it");
        mode(dir.path(), 0o1777);
        assert!(check_own(&path).is_ok(), "as in /tmp");
        mode(dir.path(), 0o700);
    }

    #[test]
    fn a_folder_of_another_user_is_not_ours() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("folder");
        create_private(&path).unwrap();
        if chown(&path, Some(65_534), None).is_err() {
            return println!("skipped: only root gives a folder to another user");
        }
        refused(check_private(&path), "it belongs to user 65534");
        refused(check_own(&path), "it belongs to user 65534");
    }

    #[test]
    fn a_file_is_created_in_place_of_a_link_and_never_through_it() {
        let dir = tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        assert!(is_a_link(&open_file(&link).unwrap_err()));
        drop(create_file(&link).unwrap());
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        let hard = dir.path().join("hard");
        fs::hard_link(&victim, &hard).unwrap();
        drop(create_file(&hard).unwrap());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::metadata(&hard).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_peer_of_a_socket_is_known() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(peer(&one), Ok(UnixPeer { pid: std::process::id(), uid: effective_uid() }));
        assert!(peer(File::open("/dev/null").unwrap()).is_err());
    }
}
