//! The run file: never written through a link, and never over a file that holds no run.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use throng_driver::folder::{is_a_link, open_file};
use throng_measure::runfile::{HEAD_BYTES, is_run_file};

/// A file that is locked for a run. Until the run begins, it keeps what it holds; a file that was
/// created for a run which does not begin is removed.
#[derive(Debug)]
pub(super) struct LockedRunFile {
    /// None once the run has begun.
    file: Option<File>,
    /// The path of a file that did not exist before.
    created: Option<PathBuf>,
}

impl LockedRunFile {
    /// Opens `path` and locks it for this run. The lock ends with the file's last fd.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        loop {
            let is_new = fs::symlink_metadata(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            let file = match open_file(path) {
                Err(error) if is_a_link(&error) => return open_link_target(path).map(Self::held),
                file => file?,
            };
            // Several processes may write `/dev/null`, a FIFO and the like.
            if !file.metadata()?.is_file() {
                drop(file);
                return File::options().write(true).open(path).map(Self::held);
            }
            lock(&file)?;
            if file.metadata()?.nlink() == 0 && !is_at(&file, path)? {
                // A run that did not begin has removed it before it was locked here.
                continue;
            }
            if !is_run_file(&head(&file)?) {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "it does not hold a run; remove it, or record under another name",
                ));
            }
            return Ok(Self { file: Some(file), created: is_new.then(|| path.into()) });
        }
    }

    fn held(file: File) -> Self {
        Self { file: Some(file), created: None }
    }

    /// Empties the file: the run begins.
    pub(super) fn begin(mut self) -> io::Result<File> {
        let file = self.file.take().expect("it is open until the run begins");
        // What is no file on a disk has nothing to empty.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    }
}

impl Drop for LockedRunFile {
    fn drop(&mut self) {
        let (Some(file), Some(path)) = (&self.file, &self.created) else { return };
        // It goes while it is locked, so no other run has it.
        let is_unused = file.metadata().is_ok_and(|meta| meta.len() == 0);
        if is_unused && is_at(file, path).unwrap_or(false) {
            _ = fs::remove_file(path);
        }
    }
}

/// Reports whether the path leads to this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let meta = file.metadata()?;
    let is_same = |found: fs::Metadata| (found.dev(), found.ino()) == (meta.dev(), meta.ino());
    Ok(fs::symlink_metadata(path).is_ok_and(is_same))
}

/// Opens a run file that exists, to read it and go on with it, and locks it.
pub(super) fn open_locked(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(path)?;
    lock(&file)?;
    Ok(file)
}

/// Locks a run file. A file system without locks returns another error than that of a lock; the
/// run is recorded there without one.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another run is writing it; wait until that run ends",
        )),
        _ => Ok(()),
    }
}

/// Opens the target of a link, unless it is a regular file. `/dev/stdout` and a shell's `>(...)`
/// are links.
fn open_link_target(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).open(path)?;
    if file.metadata()?.is_file() {
        let to = path.canonicalize()?;
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("it is a link; name its target {} instead", to.display()),
        ));
    }
    Ok(file)
}

/// Reads the file's first bytes.
fn head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut length = 0;
    while length < head.len() {
        match file.read_at(&mut head[length..], length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    head.truncate(length);
    Ok(head)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_earlier_run_is_overwritten_even_one_that_was_cut_in_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        for before in ["", "{\"sch", "{\"schema\":\"throng.run/1\",\"started\":\"\"}\n{}\n"] {
            fs::write(&path, before).unwrap();
            let locked = LockedRunFile::open(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
            assert_eq!(locked.begin().unwrap().metadata().unwrap().len(), 0, "{before}");
        }
    }

    #[test]
    fn a_run_that_does_not_begin_changes_no_file_and_leaves_no_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old.jsonl"), dir.path().join("new.jsonl"));
        let earlier = "{\"schema\":\"throng.run/1\"}\n";
        for before in ["", earlier] {
            fs::write(&old, before).unwrap();
            drop(LockedRunFile::open(&old).unwrap());
            assert_eq!(fs::read_to_string(&old).unwrap(), before);
        }
        drop(LockedRunFile::open(&new).unwrap());
        assert!(!new.exists());
        drop(LockedRunFile::open(&new).unwrap().begin().unwrap());
        assert!(new.exists());
    }

    #[test]
    fn a_file_that_is_no_run_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thesis.txt");
        fs::write(&path, "precious").unwrap();
        let error = LockedRunFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("does not hold a run"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn no_file_is_opened_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (run, link) = (dir.path().join("run.jsonl"), dir.path().join("link.jsonl"));
        symlink(&run, &link).unwrap();
        assert!(LockedRunFile::open(&link).is_err(), "a link to nothing");
        assert!(!run.exists());
        fs::write(&run, "{\"schema\":\"throng.run/1\"}\n").unwrap();
        let error = LockedRunFile::open(&link).unwrap_err().to_string();
        assert!(error.contains(&format!("name its target {} instead", run.display())), "{error}");
        assert_ne!(fs::metadata(&run).unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_file_on_a_disk_is_written_to_whatever_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link] {
            let mut file = LockedRunFile::open(path).unwrap().begin().unwrap();
            file.write_all(b"x").unwrap();
        }
        let (mut read, write) = io::pipe().unwrap();
        let substitution = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&write));
        let mut file = LockedRunFile::open(Path::new(&substitution)).unwrap().begin().unwrap();
        file.write_all(b"line").unwrap();
        drop(file);
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "line");
    }
}
