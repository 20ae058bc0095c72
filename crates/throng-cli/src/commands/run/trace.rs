//! The lines of the users that `--trace-user` names: on standard error, or in a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Args;
use throng_load::generator::{TraceLine, TraceOptions};

use crate::output_place::{self, unwritable};
use crate::{Failure, output};

/// Flags of the trace.
#[derive(Debug, Args)]
pub(super) struct TraceFlags {
    /// Show every step and message of this user on standard error; `3`, or a list `3,17`;
    /// repeatable
    #[arg(long = "trace-user", value_name = "N", value_delimiter = ',')]
    users: Vec<u64>,
    /// File for the lines of --trace-user [default: standard error; on a terminal with a live view,
    /// the run file's name with .trace.txt]
    #[arg(long = "trace-file", value_name = "FILE", requires = "users")]
    pub(super) file: Option<PathBuf>,
}

/// The thread that writes the lines.
#[derive(Debug)]
pub(super) struct TraceWriter {
    thread: JoinHandle<io::Result<()>>,
    /// The file that it writes, if it does not write to standard error.
    file: Option<PathBuf>,
}

/// A file with the lines of a trace.
#[derive(Debug)]
pub(super) struct TraceFile {
    pub(super) path: PathBuf,
    /// The failure to write it whole.
    pub(super) failure: Option<Failure>,
}

impl TraceFlags {
    /// Reports whether a user is followed.
    pub(super) fn is_used(&self) -> bool {
        !self.users.is_empty()
    }

    /// Returns the file that takes the lines if a live view covers standard error and no flag names
    /// another: it stands beside the run file.
    pub(super) fn file_beside(&self, record: &Path) -> Option<PathBuf> {
        let is_needed = !self.users.is_empty() && self.file.is_none();
        is_needed.then(|| record.with_extension("trace.txt"))
    }

    /// Checks that the file can be written, before the run begins.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.file.as_deref().map_or(Ok(()), output_place::check)
    }

    /// Starts to write. Returns what the generator needs, and `None` if no user is watched.
    /// `is_covered` if a live view covers standard error.
    pub(super) fn start(
        &self,
        record: &Path,
        is_covered: bool,
    ) -> Result<Option<(TraceOptions, TraceWriter)>, Failure> {
        if self.users.is_empty() {
            return Ok(None);
        }
        let beside = self.file_beside(record).filter(|_| is_covered);
        let file = self.file.clone().or(beside);
        let out: Box<dyn Write + Send> = match &file {
            None => Box::new(output::stderr()),
            Some(path) => {
                // The run may have made it since the first check.
                output_place::check(path)?;
                let file = File::create(path).map_err(|error| unwritable(path, error))?;
                Box::new(BufWriter::new(file))
            }
        };
        let (sink, lines) = mpsc::sync_channel(LINES_WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || write(&lines, out, TRACE_BYTES_MAX))?;
        let users = self.users.clone();
        let options = TraceOptions { users, is_full: false, sink, fates: None };
        Ok(Some((options, TraceWriter { thread, file })))
    }
}

impl TraceWriter {
    /// Waits until the last line is written. The generator's cores have ended. Returns the file,
    /// if it is one.
    pub(super) fn finish(self) -> Option<TraceFile> {
        let written = self.thread.join();
        let path = self.file?;
        let error = match written {
            Ok(written) => written.err().map(|error| error.to_string()),
            Err(_) => Some("its thread has ended".to_owned()),
        };
        let failure = error.map(|error| unwritable(&path, error).unwritten());
        Some(TraceFile { path, failure })
    }
}

/// Writes lines until the last sender is gone, and at most `bytes_max` bytes. Returns the first
/// error: a full disk, or a reader that has gone, does not end the run.
fn write(lines: &Receiver<TraceLine>, mut out: impl Write, bytes_max: usize) -> io::Result<()> {
    let mut written = Ok(());
    let end = format!("the trace ends here: it has at most {bytes_max} bytes\n");
    // The last line has its place from the beginning.
    let mut left = bytes_max.saturating_sub(end.len());
    let mut is_full = false;
    loop {
        let TraceLine { user, text } = match lines.recv_timeout(FLUSH_AFTER) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                written = written.and(out.flush());
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if is_full {
            continue;
        }
        let line = format!("user {user:<4} {text}\n");
        is_full = line.len() > left;
        left = left.saturating_sub(line.len());
        let line = if is_full { end.as_bytes() } else { line.as_bytes() };
        written = written.and(out.write_all(line));
    }
    written.and(out.flush())
}

/// Bytes of a trace at most.
const TRACE_BYTES_MAX: usize = 16 << 20;
/// Lines that wait to be written.
const LINES_WAITING_MAX: usize = 1 << 14;
/// Time without a line after which the lines so far are handed to the file.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_a_bound_and_says_where_it_ends() {
        let traced = |bytes_max| {
            let (sink, lines) = mpsc::sync_channel(10);
            for text in ["one", "two", "three", "four"] {
                sink.send(TraceLine { user: 3, text: text.to_owned() }).unwrap();
            }
            drop(sink);
            let mut out = Vec::new();
            write(&lines, &mut out, bytes_max).unwrap();
            assert!(out.len() <= bytes_max, "{} of {bytes_max}", out.len());
            String::from_utf8(out).unwrap()
        };
        let two = "user 3    one\nuser 3    two\n";
        assert_eq!(traced(80), format!("{two}the trace ends here: it has at most 80 bytes\n"));
        assert_eq!(traced(1_000), format!("{two}user 3    three\nuser 3    four\n"));
    }
}
