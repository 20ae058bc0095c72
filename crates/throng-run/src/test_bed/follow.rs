//! Reads a run file while another process writes it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use throng_measure::Interval;
use throng_measure::runfile::{self, RunFile, RunHeader};

/// A reader of the lines written so far.
#[derive(Debug)]
pub(super) struct RunFileFollower {
    path: PathBuf,
    file: Option<File>,
    /// The bytes of an incomplete line.
    partial: Vec<u8>,
    previous: Option<Interval>,
    has_header: bool,
}

/// A line of the file.
#[derive(Debug)]
pub(super) enum RunFileLine<'a> {
    /// The first line.
    Header(&'a RunHeader),
    /// An interval, and the one before it.
    Interval(&'a Interval, Option<&'a Interval>),
}

impl RunFileFollower {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            partial: Vec::new(),
            previous: None,
            has_header: false,
        }
    }

    /// Calls `each` for the first line and every new interval.
    pub(super) fn read(&mut self, each: &mut dyn FnMut(RunFileLine<'_>)) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        // After a failed write the writer truncates half a line and goes on. This reader is then in
        // the middle of a line, which it skips: `finish` reads the whole file again.
        if file.read_to_end(&mut self.partial).is_err() {
            return;
        }
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            if !std::mem::replace(&mut self.has_header, true) {
                if let Ok(header) = serde_json::from_slice(&line) {
                    each(RunFileLine::Header(&header));
                }
            } else if let Ok(interval) = serde_json::from_slice::<Interval>(&line) {
                each(RunFileLine::Interval(&interval, self.previous.as_ref()));
                self.previous = Some(interval);
            }
        }
    }

    /// Reads the whole file after its writer has ended.
    pub(super) fn finish(mut self) -> io::Result<RunFile> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        file.seek(SeekFrom::Start(0))?;
        runfile::read(&mut BufReader::new(file)).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use throng_measure::runfile::{RunEnd, RunFileWriter};

    use super::*;

    #[test]
    fn intervals_are_read_as_they_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let mut follow = RunFileFollower::new(&path);
        let mut seen = Vec::new();
        let mut look = |follow: &mut RunFileFollower| {
            follow.read(&mut |line| {
                seen.push(match line {
                    RunFileLine::Header(_) => (0, None),
                    RunFileLine::Interval(interval, previous) => {
                        (interval.at_ms, previous.map(|previous| previous.at_ms))
                    }
                });
            });
            seen.clone()
        };
        assert_eq!(look(&mut follow), [], "there is no file yet");
        let mut writer =
            RunFileWriter::create(File::create(&path).unwrap(), &RunHeader::default()).unwrap();
        let at = |at_ms| Interval { at_ms, span_ms: 1000, ..Default::default() };
        let _ = writer.interval(&at(1000));
        assert_eq!(look(&mut follow), [(0, None), (1000, None)]);
        let _ = writer.interval(&at(2000));
        let _ = writer.interval(&at(3000));
        let _ = writer.end(&RunEnd::default());
        assert_eq!(look(&mut follow)[2..], [(2000, Some(1000)), (3000, Some(2000))]);
        assert_eq!(follow.finish().unwrap().intervals.len(), 3);
    }

    #[test]
    fn half_a_line_waits_for_its_other_half() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let mut file = File::create(&path).unwrap();
        let mut follow = RunFileFollower::new(&path);
        let mut count = 0;
        file.write_all(b"{}\n{\"at_ms\":1,").unwrap();
        let mut add = |n: u64| {
            follow.read(&mut |line| {
                count += n * u64::from(matches!(line, RunFileLine::Interval(..)));
            });
        };
        add(1);
        file.write_all(b"\"span_ms\":1}\n").unwrap();
        add(10);
        assert_eq!(count, 10);
    }
}
