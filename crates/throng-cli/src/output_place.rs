//! A place that a command writes a file to. A run file is never overwritten by another file.

use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use throng_measure::runfile::{HEAD_BYTES, is_run_file};

use crate::Failure;

/// Checks that a file can be written at `path`, before the hours that it takes to produce its
/// content.
///
/// # Errors
/// A run file or a folder is there, or the folder of the path is missing.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    if is_run_file_at(path) {
        return Err(unwritable(path, IS_RUN_FILE));
    }
    check_folder(path)
}

/// Checks that a run file can be written at `path`. It may take the place of another one.
///
/// # Errors
/// A folder is there, or the folder of the path is missing.
pub(crate) fn check_folder(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(unwritable(path, "it is a folder"));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(unwritable(path, format!("there is no folder {}", folder.display())));
    }
    Ok(())
}

/// Returns the failure to write a file at `path`.
pub(crate) fn unwritable(path: &Path, why: impl Display) -> Failure {
    Failure::new(format!("cannot write {}: {why}", path.display()))
}

/// Returns the folder of a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Reports whether a run file is at `path`: another file would destroy it.
pub(crate) fn is_run_file_at(path: &Path) -> bool {
    begins_with(path, HEAD_BYTES, is_run_file)
}

/// Reports whether the file at `path` has a head of at most `head_bytes` bytes that `is_known`.
pub(crate) fn begins_with(path: &Path, head_bytes: usize, is_known: fn(&[u8]) -> bool) -> bool {
    let mut head = Vec::new();
    // Only a file: to open a pipe would wait for its writer.
    if !fs::metadata(path).is_ok_and(|known| known.is_file()) {
        return false;
    }
    let file = File::open(path).map(|file| file.take(head_bytes as u64));
    file.is_ok_and(|mut file| file.read_to_end(&mut head).is_ok_and(|read| read > 0))
        && is_known(&head)
}

/// Reports whether two paths lead to one file, which may not exist yet. Several programs may write
/// a pipe or a device.
pub(crate) fn is_one_file(path: &Path, other: &Path) -> bool {
    let identity = |known: Metadata| (known.is_file(), known.dev(), known.ino());
    match [path, other].map(|path| fs::metadata(path).map(identity)) {
        [Ok(one), Ok(other)] => one.0 && one == other,
        [Err(_), Err(_)] => resolved(path) == resolved(other),
        _ => false,
    }
}

/// Returns the path of a file that does not exist, without links and `..` in its folder.
fn resolved(path: &Path) -> Option<PathBuf> {
    Some(fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?))
}

/// The reason why no other file takes the place of a run file.
pub(crate) const IS_RUN_FILE: &str = "it is a run file; name another file";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn one_file_is_known_by_any_path_even_before_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        for made in [false, true] {
            if made {
                fs::write(path("a"), "").unwrap();
                symlink("a", path("link")).unwrap();
                assert!(is_one_file(&path("a"), &path("link")));
            }
            assert!(is_one_file(&path("a"), &path("sub/../a")), "made: {made}");
            assert!(!is_one_file(&path("a"), &path("sub/a")), "made: {made}");
            assert!(!is_one_file(&path("a"), &path("b")), "made: {made}");
        }
        let null = Path::new("/dev/null");
        assert!(!is_one_file(null, null));
    }
}
