//! Reads a run file while another process writes it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use throng_report::Interval;
use throng_report::runfile::{self, RunFile, RunHeader};

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

impl RunFileFollower {
    pub(super) fn new(path: &Path) -> Self {
        let (file, partial, previous) = (None, Vec::new(), None);
        Self { path: path.to_owned(), file, partial, previous, has_header: false }
    }

    /// Returns the first line, once, as soon as it is written.
    pub(super) fn header(&mut self) -> Option<RunHeader> {
        if self.has_header {
            return None;
        }
        self.fill();
        let end = self.partial.iter().position(|byte| *byte == b'\n')?;
        self.has_header = true;
        serde_json::from_slice(&self.partial[..end]).ok()
    }

    /// Calls `each` for every new interval, with the interval before it.
    pub(super) fn read(&mut self, each: &mut dyn FnMut(&Interval, Option<&Interval>)) {
        self.fill();
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            // The first and the last line are not intervals.
            if let Ok(interval) = serde_json::from_slice::<Interval>(&line) {
                each(&interval, self.previous.as_ref());
                self.previous = Some(interval);
            }
        }
    }

    /// Reads what was written since.
    fn fill(&mut self) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        // After a failed write the writer truncates half a line and goes on. This reader is then in
        // the middle of a line, which it skips: `finish` reads the whole file again.
        // An error now is one of `finish` too.
        let _ = file.read_to_end(&mut self.partial);
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

    use throng_report::runfile::{RunEnd, RunFileWriter, RunHeader};

    use super::*;

    #[test]
    fn intervals_are_read_as_they_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let mut follow = RunFileFollower::new(&path);
        let mut seen = Vec::new();
        assert_eq!(follow.header(), None, "there is no file yet");
        follow.read(&mut |_, _| panic!("there is no file yet"));
        let mut writer =
            RunFileWriter::create(File::create(&path).unwrap(), &RunHeader::default()).unwrap();
        assert_eq!(follow.header(), Some(RunHeader::default()));
        assert_eq!(follow.header(), None, "it is returned once");
        let mut look = |follow: &mut RunFileFollower| {
            follow.read(&mut |interval, previous| {
                seen.push((interval.at_ms, previous.map(|previous| previous.at_ms)));
            });
            seen.clone()
        };
        let at = |at_ms| Interval { at_ms, span_ms: 1000, ..Default::default() };
        let _ = writer.interval(&at(1000));
        assert_eq!(look(&mut follow), [(1000, None)]);
        let _ = writer.interval(&at(2000));
        let _ = writer.interval(&at(3000));
        let _ = writer.end(&RunEnd::default());
        assert_eq!(look(&mut follow)[1..], [(2000, Some(1000)), (3000, Some(2000))]);
        assert_eq!(follow.finish().unwrap().intervals.len(), 3);
    }

    #[test]
    fn half_a_line_waits_for_its_other_half() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.jsonl");
        let mut file = File::create(&path).unwrap();
        let mut follow = RunFileFollower::new(&path);
        let mut count = 0;
        file.write_all(b"{\"at_ms\":1,").unwrap();
        follow.read(&mut |_, _| count += 1);
        file.write_all(b"\"span_ms\":1}\n").unwrap();
        follow.read(&mut |_, _| count += 10);
        assert_eq!(count, 10);
    }
}
