//! The file that undoes the changes of `--apply`, in the format of sysctl.d.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use throng_driver::folder::{check_private, create_private};

use super::Change;

/// The folder of undo files until the next boot, which undoes the changes too.
pub(super) const UNDO_FOLDER: &str = "/run/throng";

/// A file that is removed when it is dropped, unless it is kept.
#[derive(Debug)]
pub(super) struct UndoFile {
    path: PathBuf,
    is_kept: bool,
}

impl UndoFile {
    /// Writes the values that undo `changes` to disk, readable by root alone.
    ///
    /// # Errors
    /// A sentence with the path.
    pub(super) fn write(folder: &Path, changes: &[Change<'_>]) -> io::Result<Self> {
        let now = throng_driver::utc_now();
        let name = format!("undo-{}-{}.conf", now.replace(':', ""), std::process::id());
        let path = folder.join(name);
        let write = || {
            match create_private(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => check_private(folder)?,
            }
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text(&now, &path, changes).as_bytes())?;
            file.sync_all()
        };
        let explained = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
        };
        write().map_err(explained)?;
        Ok(Self { path, is_kept: false })
    }

    /// Keeps the file, and returns its path.
    pub(super) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.path.clone()
    }
}

impl Drop for UndoFile {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn text(now: &str, path: &Path, changes: &[Change<'_>]) -> String {
    let mut text = format!(
        "# The values that `throng doctor --apply` found at {now}, in its network namespace.\n\
         # Undo its changes with: sysctl -p {}\n",
        path.display()
    );
    for Change { sysctl, old } in changes {
        text += &format!("{} = {old}\n", sysctl.name);
    }
    text
}
