//! The run file: never written through a link, and never over a file that holds no run.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use throng_driver::folder::{is_a_link, open_file};
use throng_report::runfile::{HEAD_BYTES, is_run_file};

/// Opens `path`, locks it for this run and empties it. The lock ends with the file's last fd.
pub(super) fn create_locked(path: &Path) -> io::Result<File> {
    let file = match open_file(path) {
        Err(error) if is_a_link(&error) => return open_link_target(path),
        file => file?,
    };
    // `/dev/null`, a FIFO and the like have nothing to empty, and several processes may write them.
    if !file.metadata()?.is_file() {
        drop(file);
        return File::options().write(true).open(path);
    }
    lock(&file)?;
    if !is_run_file(&head(&file)?) {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it does not hold a run; remove it, or record under another name",
        ));
    }
    file.set_len(0)?;
    Ok(file)
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
            assert_eq!(create_locked(&path).unwrap().metadata().unwrap().len(), 0, "{before}");
        }
    }

    #[test]
    fn a_file_that_is_no_run_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thesis.txt");
        fs::write(&path, "precious").unwrap();
        let error = create_locked(&path).unwrap_err().to_string();
        assert!(error.contains("does not hold a run"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn no_file_is_opened_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (run, link) = (dir.path().join("run.jsonl"), dir.path().join("link.jsonl"));
        symlink(&run, &link).unwrap();
        assert!(create_locked(&link).is_err(), "a link to nothing");
        assert!(!run.exists());
        fs::write(&run, "{\"schema\":\"throng.run/1\"}\n").unwrap();
        let error = create_locked(&link).unwrap_err().to_string();
        assert!(error.contains(&format!("name its target {} instead", run.display())), "{error}");
        assert_ne!(fs::metadata(&run).unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_file_on_a_disk_is_written_to_whatever_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link] {
            create_locked(path).unwrap().write_all(b"x").unwrap();
        }
        let (mut read, write) = io::pipe().unwrap();
        let substitution = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&write));
        create_locked(Path::new(&substitution)).unwrap().write_all(b"line").unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "line");
    }
}
