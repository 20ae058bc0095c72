//! Appends lines to a run file, survives a full disk, and never loses a written line.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::{Interval, Line, RunEnd, RunHeader};

/// An output that can be cut back to its first bytes and continued from there.
pub trait Truncate {
    /// Cuts everything after the first `len` bytes; the next write goes there.
    fn truncate_to(&mut self, len: u64) -> io::Result<()>;
}

impl Truncate for File {
    fn truncate_to(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        self.seek(SeekFrom::Start(len)).map(drop)
    }
}

impl Truncate for Vec<u8> {
    fn truncate_to(&mut self, len: u64) -> io::Result<()> {
        self.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// The outcome of appending a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum AppendOutcome {
    /// The line is written.
    Whole,
    /// The line is written after this many lines were lost: emit `run_file_resumed`.
    Resumed {
        /// Lines lost since the last one that was written.
        lines_lost: u64,
    },
    /// The line is lost, and the line before it was not: emit `run_file_failed`.
    Failed {
        /// The operating system's error.
        error: String,
    },
    /// The line is lost, as the line before it was.
    StillFailing,
}

/// Writes a run file, each line with one write.
///
/// The output starts empty and belongs to the writer. If a line cannot be written (the disk is
/// full), its written half is cut off at once, so the file ends with a whole line. If it cannot be
/// cut off, the next line begins with a newline and the reader skips the half. Every append tries
/// again, so the file continues when there is room again.
#[derive(Debug)]
pub struct RunFileWriter<W> {
    out: W,
    /// Bytes of the output up to the end of the last whole line.
    whole_bytes: u64,
    /// Bytes of half a line after the last whole line.
    half_bytes: u64,
    lost_since_written: u64,
    lines_lost: u64,
    error: Option<String>,
}

impl<W: Write + Truncate> RunFileWriter<W> {
    /// Writes the first line. If this fails, the run should not start.
    pub fn create(out: W, header: &RunHeader) -> io::Result<Self> {
        let mut writer = Self {
            out,
            whole_bytes: 0,
            half_bytes: 0,
            lost_since_written: 0,
            lines_lost: 0,
            error: None,
        };
        writer.write(&Line::Header(header))?;
        Ok(writer)
    }

    /// Goes on with a run file whose first `whole_bytes` bytes are whole lines, and cuts off the
    /// rest.
    ///
    /// # Errors
    /// The rest cannot be cut off.
    pub fn resume(mut out: W, whole_bytes: u64) -> io::Result<Self> {
        out.truncate_to(whole_bytes)?;
        Ok(Self {
            out,
            whole_bytes,
            half_bytes: 0,
            lost_since_written: 0,
            lines_lost: 0,
            error: None,
        })
    }

    /// Appends an interval.
    pub fn interval(&mut self, interval: &Interval) -> AppendOutcome {
        self.append(&Line::Interval(interval))
    }

    /// Appends the last line and fills in its `lines_lost`.
    pub fn end(&mut self, end: &RunEnd) -> AppendOutcome {
        let end = RunEnd { lines_lost: self.lines_lost, ..end.clone() };
        self.append(&Line::End { end: &end })
    }

    /// Returns the number of lines that could not be written so far.
    pub fn lines_lost(&self) -> u64 {
        self.lines_lost
    }

    /// Returns the last error, even if lines were written since.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn append(&mut self, line: &Line<'_>) -> AppendOutcome {
        match self.write(line) {
            Ok(()) => match std::mem::take(&mut self.lost_since_written) {
                0 => AppendOutcome::Whole,
                lines_lost => AppendOutcome::Resumed { lines_lost },
            },
            Err(error) => {
                let error = error.to_string();
                self.error = Some(error.clone());
                self.lines_lost += 1;
                self.lost_since_written += 1;
                match self.lost_since_written {
                    1 => AppendOutcome::Failed { error },
                    _ => AppendOutcome::StillFailing,
                }
            }
        }
    }

    fn write(&mut self, line: &Line<'_>) -> io::Result<()> {
        self.cut_half();
        let mut bytes = Vec::new();
        if self.half_bytes > 0 {
            bytes.push(b'\n');
        }
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
        let written = self.write_counted(&bytes).and_then(|()| self.out.flush());
        match &written {
            Ok(()) => self.whole_bytes += std::mem::take(&mut self.half_bytes),
            Err(_) => self.cut_half(),
        }
        written
    }

    /// Writes `bytes` as `write_all` does, and keeps `half_bytes` up to date.
    fn write_counted(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.out.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.half_bytes += n as u64;
                    bytes = &bytes[n..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn cut_half(&mut self) {
        if self.half_bytes > 0 && self.out.truncate_to(self.whole_bytes).is_ok() {
            self.half_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RunFile, read};
    use super::*;

    /// A disk with a limit; cutting back may fail.
    #[derive(Debug, Default)]
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        cuts: bool,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room - self.bytes.len().min(self.room));
            if n == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Truncate for Disk {
        fn truncate_to(&mut self, len: u64) -> io::Result<()> {
            if self.cuts {
                self.bytes.truncate_to(len)
            } else {
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    fn at(at_ms: u64) -> Interval {
        Interval { at_ms, span_ms: 1000, ..Default::default() }
    }

    fn times(file: &RunFile) -> Vec<u64> {
        file.intervals.iter().map(|interval| interval.at_ms).collect()
    }

    /// Writes one line whole, fails at two (the first of them half-way), makes room and writes two
    /// more.
    fn run_over_a_full_disk(cuts: bool) -> (RunFile, usize) {
        let disk = Disk { room: 1 << 20, cuts, ..Disk::default() };
        let mut writer = RunFileWriter::create(disk, &RunHeader::default()).unwrap();
        assert_eq!(writer.interval(&at(1000)), AppendOutcome::Whole);
        writer.out.room = writer.out.bytes.len() + 7;
        assert!(matches!(writer.interval(&at(2000)), AppendOutcome::Failed { .. }));
        let bytes_while_full = writer.out.bytes.len();
        assert_eq!(writer.interval(&at(3000)), AppendOutcome::StillFailing);
        writer.out.room = 1 << 20;
        assert_eq!(writer.interval(&at(4000)), AppendOutcome::Resumed { lines_lost: 2 });
        assert_eq!(writer.interval(&at(5000)), AppendOutcome::Whole);
        assert_eq!(writer.end(&RunEnd::default()), AppendOutcome::Whole);
        assert_eq!(writer.lines_lost(), 2);
        assert!(writer.error().is_some());
        (read(&mut writer.into_inner().bytes.as_slice()).unwrap(), bytes_while_full)
    }

    #[test]
    fn a_full_disk_loses_the_lines_of_that_time_and_no_other() {
        let (file, _) = run_over_a_full_disk(true);
        assert_eq!(times(&file), [1000, 4000, 5000]);
        assert_eq!(file.lines_torn, 0);
        assert_eq!(file.end.unwrap().lines_lost, 2);
    }

    #[test]
    fn half_a_line_that_cannot_be_cut_off_is_passed_over_by_the_reader() {
        let (file, _) = run_over_a_full_disk(false);
        assert_eq!(times(&file), [1000, 4000, 5000]);
        assert_eq!(file.lines_torn, 1);
    }

    #[test]
    fn the_file_ends_with_a_whole_line_while_the_disk_is_full() {
        let (_, cut) = run_over_a_full_disk(true);
        let (_, uncut) = run_over_a_full_disk(false);
        assert_eq!(uncut - cut, 7);
    }

    #[test]
    fn a_run_whose_first_line_cannot_be_written_does_not_start() {
        let error = RunFileWriter::create(Disk::default(), &RunHeader::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_real_file_is_cut_back_and_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"whole\nha").unwrap();
        file.truncate_to(6).unwrap();
        file.write_all(b"next\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole\nnext\n");
    }
}
