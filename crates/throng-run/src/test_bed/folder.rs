//! The folder of a lab's own files: control sockets, scenarios, and the output of server and
//! generator.
//!
//! Every user of the machine may create files beside it. So its name is random, the lab always
//! creates it and never uses an existing folder, and no other user may enter it. The lab holds a
//! lock on it, which other PID namespaces see as well. A folder of this user without a lock belongs
//! to a lab that was killed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use throng_driver::folder;

/// A folder that belongs to this lab alone, and is removed with it.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    _lock: File,
}

impl WorkFolder {
    /// Creates a folder for `lab` among the temporary files, and removes those of killed labs.
    pub(super) fn create(lab: &str) -> io::Result<Self> {
        let place = std::env::temp_dir();
        remove_abandoned(&place);
        Self::create_in(&place, lab, getrandom::u64)
    }

    fn create_in<E>(
        place: &Path,
        lab: &str,
        mut random: impl FnMut() -> Result<u64, E>,
    ) -> io::Result<Self> {
        for _ in 0..TRIES_MAX {
            let random = random().map_err(|_| io::Error::other("no random number"))?;
            let path = place.join(format!("{PREFIX}{lab}-{random:016x}"));
            match folder::create_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            if let Some(made) = Self::claim(path)? {
                folder::check_own(&made.path)?;
                return Ok(made);
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "found no free name for the lab's folder"))
    }

    /// Locks a new folder. Returns none when another lab was faster: that lab takes the folder for
    /// a killed lab's, and removes it.
    fn claim(path: PathBuf) -> io::Result<Option<Self>> {
        let lock = match folder::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            lock => lock?,
        };
        let is_taken = matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock));
        // The locked folder may already be removed.
        Ok((!is_taken && path.exists()).then(|| Self { path, _lock: lock }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Creates the folder for files that the user wants to keep, or checks an existing one.
///
/// # Errors
/// The folder cannot be created, or other users could replace a file in it by a link.
pub(super) fn prepare_kept(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match folder::create_private(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => folder::check_own(path),
    }
}

/// Removes the folders of this user's labs whose process is gone. On a file system without locks
/// the folders stay.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(is_work_folder_name) {
            continue;
        }
        let path = entry.path();
        let Ok(lock) = folder::open(&path) else { continue };
        let is_ours = lock.metadata().is_ok_and(|meta| folder::is_ours(&meta));
        if is_ours && lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Reports whether `name` is a work folder's name: `throng-lab-connscale-0123456789abcdef`.
fn is_work_folder_name(name: &str) -> bool {
    let Some((lab, random)) = name.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('-'))
    else {
        return false;
    };
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_random && !lab.is_empty()
}

/// The beginning of every work folder's name.
const PREFIX: &str = "throng-lab-";

/// The most names to try. A random name is only taken if another process creates it on purpose, or
/// is about to remove the folder.
const TRIES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use tempfile::tempdir;

    use super::*;

    /// Returns consecutive numbers in place of random ones.
    fn numbers() -> impl FnMut() -> Result<u64, Infallible> {
        let mut number = 0;
        move || {
            number += 1;
            Ok(number)
        }
    }

    #[test]
    fn only_names_that_labs_give_are_theirs() {
        for name in ["connscale", "stressgrid-100k", "calibration"] {
            assert!(is_work_folder_name(&format!("throng-lab-{name}-0123456789abcdef")), "{name}");
        }
        for name in [
            "throng-lab-connscale",
            "throng-lab-connscale-4711-0",
            "throng-lab-connscale-0123456789abcdeg",
            "throng-0-0123456789abcdef",
            "connscale-0123456789abcdef",
        ] {
            assert!(!is_work_folder_name(name), "{name}");
        }
    }

    #[test]
    fn an_existing_path_is_never_used() {
        let place = tempdir().unwrap();
        let path = |number: u64| place.path().join(format!("throng-lab-connscale-{number:016x}"));
        let victim = tempdir().unwrap();
        fs::create_dir(path(1)).unwrap();
        fs::set_permissions(path(1), fs::Permissions::from_mode(0o777)).unwrap();
        symlink(victim.path(), path(2)).unwrap();
        symlink("/nowhere", path(3)).unwrap();
        fs::write(path(4), "").unwrap();
        let made = WorkFolder::create_in(place.path(), "connscale", numbers()).unwrap();
        assert_eq!(made.path(), path(5));
        assert_eq!(fs::metadata(made.path()).unwrap().mode() & 0o777, 0o700);
        fs::write(made.path().join("file"), "").unwrap();
        drop(made);
        assert!(!path(5).exists() && path(1).exists() && path(4).exists());
        assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_where_every_user_may_replace_a_folder_is_refused() {
        let place = tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = WorkFolder::create_in(place.path(), "connscale", numbers()).unwrap_err();
        assert!(error.to_string().contains("any user may replace it"), "{error}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn folders_of_ended_labs_are_removed_and_those_of_running_labs_stay() {
        let place = tempdir().unwrap();
        let live = WorkFolder::create_in(place.path(), "calibration", numbers()).unwrap();
        let dead = place.path().join("throng-lab-calibration-00000000000000ff");
        fs::create_dir_all(dead.join("inside")).unwrap();
        let other = place.path().join("throng-another-00000000000000ff");
        fs::create_dir(&other).unwrap();
        let link = place.path().join("throng-lab-connscale-00000000000000ff");
        symlink(&other, &link).unwrap();
        remove_abandoned(place.path());
        assert!(!dead.exists());
        assert!(live.path().exists() && other.exists() && link.exists());
    }

    #[test]
    fn folders_of_another_user_stay() {
        let place = tempdir().unwrap();
        let theirs = place.path().join("throng-lab-calibration-00000000000000ff");
        fs::create_dir(&theirs).unwrap();
        if chown(&theirs, Some(65_534), None).is_err() {
            return println!("skipped: only root gives a folder to another user");
        }
        remove_abandoned(place.path());
        assert!(theirs.exists());
    }

    #[test]
    fn a_folder_that_another_lab_is_about_to_remove_is_left_to_it() {
        let place = tempdir().unwrap();
        let path = place.path().join("throng-lab-connscale-0000000000000001");
        assert!(WorkFolder::claim(path.clone()).unwrap().is_none(), "it is gone already");
        fs::create_dir(&path).unwrap();
        let lock = folder::open(&path).unwrap();
        lock.lock().unwrap();
        assert!(WorkFolder::claim(path.clone()).unwrap().is_none(), "it is being removed");
        drop(lock);
        assert!(WorkFolder::claim(path).unwrap().is_some());
    }

    #[test]
    fn files_are_kept_in_a_folder_that_only_this_user_changes() {
        let place = tempdir().unwrap();
        let path = place.path().join("some/where");
        prepare_kept(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        prepare_kept(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(prepare_kept(&path).unwrap_err().to_string().contains("chmod go-w"));
        let link = place.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(prepare_kept(&link).unwrap_err().to_string().contains("it is a link"));
    }
}
