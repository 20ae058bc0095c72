//! The root of the files that facts come from: the machine's `/`, or a recorded tree of the same
//! shape.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::fact::{Fact, ParseFailure, Unknown};

/// The directory that contains `proc` and `sys`. Paths below it have no leading slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcRoot(PathBuf);

impl Default for ProcRoot {
    fn default() -> Self {
        Self::new("/")
    }
}

impl ProcRoot {
    /// Creates the root of a tree at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reports whether this is the running machine and not a recording, so that it can be queried
    /// too.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Opens a file to read parts of it.
    pub(crate) fn open(&self, path: &str) -> io::Result<File> {
        File::open(self.0.join(path))
    }

    /// Reads the whole text of a file.
    pub fn text(&self, path: &str) -> Fact<String> {
        let read = || -> io::Result<String> {
            // A file of `/proc` has no length: with room for a page it takes two reads instead of
            // six.
            let mut bytes = Vec::with_capacity(PIECE_BYTES);
            File::open(self.0.join(path))?.read_to_end(&mut bytes)?;
            String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
        };
        read().map_err(|error| Unknown::new(path, error)).into()
    }

    /// Reads the first lines of a file: at most `bytes_max` bytes, cut after a whole line.
    pub fn head(&self, path: &str, bytes_max: usize) -> Fact<String> {
        let read = || -> io::Result<String> {
            let mut text = Vec::new();
            File::open(self.0.join(path))?.take(bytes_max as u64).read_to_end(&mut text)?;
            if text.len() == bytes_max {
                text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
            }
            String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
        };
        read().map_err(|error| Unknown::new(path, error)).into()
    }

    /// Returns the target of a link as text.
    pub fn link(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.0.join(path)).ok()?.to_string_lossy().into_owned())
    }

    /// Reads and parses a file.
    pub fn read<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseFailure>,
    ) -> Fact<T> {
        match self.text(path) {
            Fact::Known(text) => parse(&text).map_err(|error| Unknown::new(path, error)).into(),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Returns the names in a directory, sorted.
    pub fn names(&self, path: &str) -> Fact<Vec<String>> {
        let list = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(self.0.join(path))? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok(names)
        };
        list().map_err(|error| Unknown::new(path, error)).into()
    }

    /// Returns the number of names in a directory. Where they must be read one by one, more than
    /// `ENTRIES_MAX` are unknown.
    pub fn count_entries(&self, path: &str) -> Fact<u64> {
        let count = || -> io::Result<u64> {
            let full = self.0.join(path);
            // Since Linux 6.2, the size of `/proc/PID/fd` is the number of fds. Before it is zero.
            let size = if self.is_live() { fs::metadata(&full)?.len() } else { 0 };
            match size {
                0 => match fs::read_dir(full)?.take(ENTRIES_MAX).count() {
                    ENTRIES_MAX => Err(io::Error::other("too many entries")),
                    count => Ok(count as u64),
                },
                size => Ok(size),
            }
        };
        count().map_err(|error| Unknown::new(path, error)).into()
    }

    /// Opens a file for repeated reads.
    pub fn keep(&self, path: impl Into<String>) -> KeptFile {
        let path = path.into();
        let mut kept = KeptFile { full: self.0.join(&path), path, file: None, bytes: Vec::new() };
        kept.file = File::open(&kept.full).ok();
        kept
    }
}

/// A file of `/proc` or `/sys` that stays open: the kernel writes its text anew for each read from
/// the start. An open file saves the path lookup. It can also be read when the fd table is full,
/// which is when it matters. If a file cannot be opened, each read tries again.
#[derive(Debug)]
pub struct KeptFile {
    path: String,
    full: PathBuf,
    file: Option<File>,
    bytes: Vec<u8>,
}

impl KeptFile {
    /// Returns its path, below the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads and parses its present text.
    pub fn read<'a, T>(
        &'a mut self,
        parse: impl FnOnce(&'a str) -> Result<T, ParseFailure>,
    ) -> Fact<T> {
        if let Err(error) = self.refill() {
            self.file = None;
            return Fact::Unknown(Unknown::new(&self.path, error));
        }
        let text = str::from_utf8(&self.bytes).map_err(|_| ParseFailure("text"));
        text.and_then(parse).map_err(|error| Unknown::new(&self.path, error)).into()
    }

    /// Reads the file again. Many of these files come in pieces of a page, so only an empty read is
    /// the end.
    fn refill(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.full)?,
        };
        let mut length = 0;
        loop {
            if self.bytes.len() < length + PIECE_BYTES {
                self.bytes.resize(length + PIECE_BYTES, 0);
            }
            match file.read_at(&mut self.bytes[length..], length as u64) {
                Ok(0) => break,
                Ok(read) if length + read > FILE_BYTES_MAX => {
                    return Err(io::Error::from(io::ErrorKind::FileTooLarge));
                }
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.truncate(length);
        self.file = Some(file);
        Ok(())
    }
}

/// The bytes of one read: a page, as the kernel writes it.
const PIECE_BYTES: usize = 4096;

/// The names of a directory that are read one by one to count them: about a millisecond.
const ENTRIES_MAX: usize = 4_096;

/// The most bytes of a file: none read here is longer, even with thousands of CPUs. A path to
/// something else ends here.
const FILE_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::fact::Reason;

    fn upper(text: &str) -> Result<String, ParseFailure> {
        if text.is_empty() { Err(ParseFailure("something")) } else { Ok(text.to_uppercase()) }
    }

    #[test]
    fn a_kept_file_shows_what_is_there_now() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = ProcRoot::new(dir.path()).keep("counter");
        assert_eq!(kept.read(upper).why().unwrap().reason, Reason::Missing);
        fs::write(dir.path().join("counter"), "one").unwrap();
        assert_eq!(kept.read(upper), Fact::Known("ONE".into()));
        let long = "x".repeat(3 * PIECE_BYTES + 1);
        fs::write(dir.path().join("counter"), &long).unwrap();
        assert_eq!(kept.read(upper), Fact::Known(long.to_uppercase()));
        fs::write(dir.path().join("counter"), "").unwrap();
        assert_eq!(kept.read(upper).why().unwrap().reason, ParseFailure("something").into());
    }

    #[test]
    fn a_file_without_end_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/dev/zero", dir.path().join("endless")).unwrap();
        let mut kept = ProcRoot::new(dir.path()).keep("endless");
        assert!(matches!(kept.read(upper).why().unwrap().reason, Reason::Failed(_)));
    }

    #[test]
    fn a_directory_is_not_a_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("pressure")).unwrap();
        let root = ProcRoot::new(dir.path());
        assert!(matches!(root.text("pressure").why().unwrap().reason, Reason::Failed(_)));
        assert!(matches!(
            root.keep("pressure").read(upper).why().unwrap().reason,
            Reason::Failed(_)
        ));
    }
}
