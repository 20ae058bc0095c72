//! Files from elsewhere, read up to a limit.
//!
//! A link to a device would have no end: what is no file, pipe or terminal is not opened.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::units::show_bytes;

/// Opens a file, a pipe or a terminal.
///
/// # Errors
/// It cannot be opened, or is a folder or a device.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if kind.is_block_device() || kind.is_char_device() && !file.is_terminal() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, and no file"));
    }
    Ok(file)
}

/// Reads a whole file of at most this many bytes.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, bytes_max)
}

/// Reads a whole text of at most this many bytes.
///
/// # Errors
/// The file cannot be read, is larger, or is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let of_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    String::from_utf8(read(path, bytes_max)?).map_err(of_text)
}

/// Reads everything from `input`, at most this many bytes.
///
/// # Errors
/// Reading fails, or there is more.
pub fn read_all(input: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let problem = format!("it has more than {}", show_bytes(bytes_max));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

/// Largest scenario, of throng or another tool: its data belong in files of their own.
pub const SCENARIO_BYTES_MAX: u64 = 64 << 20;

/// Largest log of another tool: it is kept in memory.
pub const LOG_BYTES_MAX: u64 = 2 << 30;

/// Largest data file of a scenario: it is kept in memory.
pub const DATA_BYTES_MAX: u64 = 1 << 30;

/// Largest file of a search.
pub const SEARCH_BYTES_MAX: u64 = 64 << 20;

/// Largest file with credentials or certificates.
pub const CREDENTIALS_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_the_limit_is_refused() {
        assert_eq!(read_all(&b"1234"[..], 4).unwrap(), b"1234");
        let error = read_all(io::repeat(0), 2 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 2MiB");
    }

    #[test]
    fn devices_and_folders_are_not_opened() {
        let problem = |path: &str| open(Path::new(path)).unwrap_err().to_string();
        assert_eq!(problem("/dev/zero"), "it is a device, and no file");
        assert_eq!(problem("/"), "it is a folder");
    }
}
