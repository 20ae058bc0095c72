//! The flag `--tls-keylog`: a file of secrets from which Wireshark decrypts connections.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use throng_load::scenario::Target;
use throng_tls::KeyLogSink;

use crate::{Failure, output, output_place};

/// The flag, for commands to include.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KeyLogFlag {
    /// Append the secrets of all TLS connections to this file, from which Wireshark decrypts them
    /// [default: the file that SSLKEYLOGFILE of the environment names]
    #[arg(long, value_name = "FILE", help_heading = "TLS options")]
    tls_keylog: Option<PathBuf>,
}

impl KeyLogFlag {
    /// Opens the file, if there is one to write. `is_secure` says whether there are connections
    /// over TLS.
    ///
    /// # Errors
    /// The file cannot be written, or the flag is given where nothing is over TLS.
    pub(crate) fn open(&self, is_secure: bool) -> Result<Option<KeyLog>, Failure> {
        let path = match &self.tls_keylog {
            Some(_) if !is_secure => {
                return Err(Failure::new("--tls-keylog: no connection is over TLS here"));
            }
            Some(path) => Some(path.clone()),
            None => std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from),
        };
        let path = path.filter(|path| is_secure && !path.as_os_str().is_empty());
        path.map(|path| KeyLog::open(&path)).transpose()
    }

    /// Reports whether the command line has the flag.
    pub(crate) fn is_given(&self) -> bool {
        self.tls_keylog.is_some()
    }

    /// Opens the file as [`Self::open`] does, for connections to `target`, and warns of it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_for(&self, target: &Target) -> Result<Option<KeyLog>, Failure> {
        let key_log = self.open(target.is_secure)?;
        if let Some(key_log) = &key_log {
            output::print_error(key_log.warning());
        }
        Ok(key_log)
    }
}

/// An open key log. A thread of its own writes it: cores have fds of their own, and wait for no
/// disk.
#[derive(Debug)]
pub(crate) struct KeyLog {
    path: PathBuf,
    entries: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
}

enum Entry {
    Line(String),
    /// Answered when all lines before it are in the file.
    Flush(Sender<()>),
}

impl KeyLog {
    fn open(path: &Path) -> Result<Self, Failure> {
        output_place::check(path)?;
        let opened = OpenOptions::new().create(true).append(true).mode(OWNER_ONLY).open(path);
        let unwritable = |error| output_place::unwritable(path, error);
        let file = opened.map_err(unwritable)?;
        let (entries, received) = sync_channel(LINES_WAITING_MAX);
        let shown = path.to_owned();
        thread::Builder::new()
            .name("keylog".to_owned())
            .spawn(move || write(&shown, file, &received))
            .map_err(unwritable)?;
        Ok(Self { path: path.to_owned(), entries, lost: Arc::default() })
    }

    /// Returns what the cores give their lines to.
    pub(crate) fn sink(&self) -> KeyLogSink {
        let (entries, lost) = (self.entries.clone(), Arc::clone(&self.lost));
        KeyLogSink::new(move |line| {
            if entries.try_send(Entry::Line(line.to_owned())).is_err() {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Returns the warning that secrets are written.
    pub(crate) fn warning(&self) -> String {
        let path = self.path.display();
        format!("warning: the secrets of all TLS connections are written to {path}")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KeyLog {
    /// Waits until the lines are in the file.
    fn drop(&mut self) {
        let (reply, answer) = channel();
        if self.entries.send(Entry::Flush(reply)).is_ok() {
            let _ = answer.recv_timeout(FLUSH_MAX);
        }
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            output::print_error(format!(
                "{}: {lost} lines are missing: the disk was too slow, or the file could not be \
                 written",
                self.path.display()
            ));
        }
    }
}

/// Writes lines until all senders are gone. After an error, later lines are lost.
fn write(path: &Path, mut file: File, entries: &Receiver<Entry>) {
    let mut written = Ok(());
    while let Ok(first) = entries.recv() {
        let mut text = String::new();
        let mut flushes = Vec::new();
        let mut next = Some(first);
        while let Some(entry) = next {
            match entry {
                Entry::Line(line) => text.extend([&line, "\n"]),
                Entry::Flush(reply) => flushes.push(reply),
            }
            let has_room = text.len() < BATCH_BYTES;
            next = has_room.then(|| entries.try_recv().ok()).flatten();
        }
        if written.is_ok() {
            written = file.write_all(text.as_bytes());
            if let Err(error) = &written {
                say_unwritten(path, error);
            }
        }
        for reply in flushes {
            let _ = reply.send(());
        }
    }
}

fn say_unwritten(path: &Path, error: &io::Error) {
    output::print_error(format!(
        "cannot write {}: {error}; later secrets are not written",
        path.display()
    ));
}

/// Mode of a new file: its owner reads and writes it.
const OWNER_ONLY: u32 = 0o600;

/// Lines that may wait for the disk: those of 13,000 handshakes.
const LINES_WAITING_MAX: usize = 1 << 16;

/// Bytes after which what has been collected is written.
const BATCH_BYTES: usize = 64 << 10;

/// Time for the lines that wait at the end.
const FLUSH_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn lines_are_appended_whole_and_only_the_owner_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.log");
        for round in 0..2 {
            let log = KeyLog::open(&path).unwrap();
            let sinks = [log.sink(), log.sink()];
            thread::scope(|scope| {
                for sink in &sinks {
                    scope.spawn(move || {
                        (0..1_000).for_each(|n| sink.log(&format!("L {round} {n}")))
                    });
                }
            });
            drop(log);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4_000);
        assert_eq!(text.lines().filter(|line| *line == "L 1 999").count(), 2);
        assert!(text.lines().all(|line| line.split(' ').count() == 3));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
    }

    #[test]
    fn a_flag_without_tls_and_a_place_that_cannot_be_written_are_refused() {
        let flag = |path: &str| KeyLogFlag { tls_keylog: Some(path.into()) };
        let error = flag("keys.log").open(false).unwrap_err().to_string();
        assert!(error.contains("no connection is over TLS"), "{error}");
        let error = flag("/no/such/folder/keys.log").open(true).unwrap_err().to_string();
        assert!(error.contains("/no/such/folder"), "{error}");
    }
}
