//! Reads a run file, whole or cut short, of this version or with fields of a later one.

use std::io::{self, BufRead, Read};
use std::{fmt, mem};

use serde::Deserialize;
use throng_base::units::plural;

use super::number::{NUMBER_MAX, parse_bounded};
use super::{EndLine, RunEnd, RunHeader, SCHEMA};
use crate::histogram::bounded_histograms;
use crate::{Interval, LoadInterval};

/// A whole run file in memory. For a long run prefer [`RunFileReader`], which holds one line at a
/// time.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFile {
    /// The first line.
    pub header: RunHeader,
    /// The intervals, in order.
    pub intervals: Vec<Interval>,
    /// The last line; absent when the generator was killed.
    pub end: Option<RunEnd>,
    /// Lines that could not be read.
    pub lines_torn: u64,
    /// Warnings about the file's integrity, one sentence each.
    pub warnings: Vec<String>,
}

/// The longest line that is parsed, in bytes: a hundred times the longest line that is written. A
/// longer line is skipped as a torn line is.
pub const LINE_BYTES_MAX: usize = 16 << 20;
/// The most objects in a line that is parsed: steps, classes, machines, events and all others. A
/// few bytes of a line are an object, and an object is up to a kilobyte in memory.
const LINE_OBJECTS_MAX: usize = 100_000;
/// The longest run, in milliseconds: 34 years. A line of a later time is torn.
const RUN_MS_MAX: u64 = 1 << 40;
/// Torn lines that are named; the others are only counted.
const TORN_LINES_NAMED_MAX: u64 = 20;

/// Reads a whole run file.
pub fn read(input: &mut impl BufRead) -> Result<RunFile, ReadError> {
    let mut reader = RunFileReader::open(input)?;
    let mut intervals: Vec<Interval> = Vec::new();
    while let Some(interval) = reader.next_interval()? {
        // A run goes on from the last totals; all of them would be large.
        if interval.load.is_some()
            && let Some(before) = intervals.last_mut().and_then(|before| before.load.as_mut())
        {
            before.machines.iter_mut().for_each(|machine| machine.totals = None);
        }
        intervals.push(interval);
    }
    let RunFileReader { header, end, lines_torn, warnings, .. } = reader;
    Ok(RunFile { header, intervals, end, lines_torn, warnings })
}

/// Returns the length of the whole lines of a run file, up to its last interval: a writer can go on
/// from there.
///
/// # Errors
/// It cannot be read.
pub fn resumable_bytes(input: &mut impl BufRead) -> std::io::Result<u64> {
    let (mut read, mut whole, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        read += input.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)? as u64;
        if line.is_empty() {
            return Ok(whole);
        }
        let is_first = whole == 0;
        let is_whole = line.ends_with(b"\n") && (is_first || is_interval(&line));
        if is_whole {
            whole = read;
        }
    }
}

fn is_interval(line: &[u8]) -> bool {
    has_few_objects(line) && bounded_histograms(|| serde_json::from_slice::<Interval>(line).is_ok())
}

/// Reports whether a line has at most [`LINE_OBJECTS_MAX`] objects, before they take their memory.
fn has_few_objects(line: &[u8]) -> bool {
    line.iter().filter(|byte| **byte == b'{').count() <= LINE_OBJECTS_MAX
}

/// Reads a run file line by line.
#[derive(Debug)]
pub struct RunFileReader<R> {
    input: R,
    header: RunHeader,
    end: Option<RunEnd>,
    lines_torn: u64,
    lines_bounded: u64,
    lines_sampled: u64,
    warnings: Vec<String>,
    line: Vec<u8>,
    line_number: u64,
}

impl<R: BufRead> RunFileReader<R> {
    /// Reads the first line. Refuses a file that is not a run file, or that has another schema.
    pub fn open(mut input: R) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct SchemaOnly {
            schema: String,
            throng_version: Option<String>,
        }
        let mut line = Vec::new();
        if !read_line(&mut input, &mut line)? {
            return Err(ReadError::LineTooLong);
        }
        if line.trim_ascii().is_empty() {
            return Err(ReadError::Empty);
        }
        if !has_few_objects(&line) {
            return Err(ReadError::LineTooFull);
        }
        let SchemaOnly { schema, throng_version } =
            serde_json::from_slice(&line).map_err(ReadError::NotARunFile)?;
        let mut warnings = Vec::new();
        match schema.strip_prefix(SCHEMA) {
            Some("") => {}
            Some(minor) if minor.starts_with('.') => warnings.push(format!(
                "the file's schema is {schema:?}, newer than this version's {SCHEMA:?}: what is \
                 new in it is not shown"
            )),
            _ => return Err(ReadError::UnknownSchema { schema, throng_version }),
        }
        let header = serde_json::from_slice(&line).map_err(ReadError::NotARunFile)?;
        Ok(Self {
            input,
            header,
            end: None,
            lines_torn: 0,
            lines_bounded: 0,
            lines_sampled: 0,
            warnings,
            line: Vec::new(),
            line_number: 1,
        })
    }

    /// Returns the first line.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// Returns the last line, once every interval was read.
    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    /// Returns the number of lines that could not be read so far.
    pub fn lines_torn(&self) -> u64 {
        self.lines_torn
    }

    /// Returns the warnings about the file's integrity, once every interval was read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the next interval; `None` at the end of the file. Fails only if the input cannot be
    /// read.
    pub fn next_interval(&mut self) -> Result<Option<Interval>, ReadError> {
        loop {
            let mut line = mem::take(&mut self.line);
            line.clear();
            let is_whole = read_line(&mut self.input, &mut line)?;
            self.line_number += 1;
            if line.is_empty() {
                self.warn_at_end();
                return Ok(None);
            }
            let interval = if is_whole {
                self.parse_line(line.trim_ascii())
            } else {
                self.note_torn_line(&format!("it is longer than {LINE_BYTES_MAX} bytes"));
                None
            };
            self.line = line;
            if interval.is_some() {
                return Ok(interval);
            }
        }
    }

    fn parse_line(&mut self, line: &[u8]) -> Option<Interval> {
        if line.is_empty() {
            return None;
        }
        if !has_few_objects(line) {
            self.note_torn_line(&format!("it has more than {LINE_OBJECTS_MAX} objects"));
            return None;
        }
        match bounded_histograms(|| parse_bounded::<Interval>(line)) {
            Ok((interval, _)) if interval.at_ms.max(interval.span_ms) > RUN_MS_MAX => {
                let ms = interval.at_ms.max(interval.span_ms);
                self.note_torn_line(&format!("its time is {ms} ms, which no run reaches"));
            }
            Ok((mut interval, is_bounded)) => {
                let kernels = [&mut interval.kernel, &mut interval.server_kernel];
                let is_beyond =
                    kernels.map(|kernel| kernel.bound(NUMBER_MAX as i64)).contains(&true);
                self.lines_bounded += u64::from(is_bounded || is_beyond);
                let load = interval.load.as_mut();
                self.lines_sampled += u64::from(load.is_some_and(LoadInterval::drop_samples));
                return Some(interval);
            }
            Err(error) => match parse_bounded::<EndLine>(line) {
                Ok((EndLine { end }, _)) => self.end = Some(end),
                Err(_) => self.note_torn_line(&reason(&error)),
            },
        }
        None
    }

    fn note_torn_line(&mut self, why: &str) {
        self.lines_torn += 1;
        let number = self.line_number;
        if self.lines_torn <= TORN_LINES_NAMED_MAX {
            self.warnings.push(format!("line {number} is torn and was skipped: {why}"));
        }
    }

    fn warn_at_end(&mut self) {
        let unnamed = self.lines_torn.saturating_sub(TORN_LINES_NAMED_MAX);
        if unnamed > 0 {
            let lines =
                plural(unnamed, "more line is torn and was", "more lines are torn and were");
            self.warnings.push(format!("{unnamed} {lines} skipped"));
        }
        if self.lines_bounded > 0 {
            let n = self.lines_bounded;
            let lines = plural(n, "line has", "lines have");
            self.warnings.push(format!(
                "{n} {lines} numbers that no run reaches: below 0, or above {NUMBER_MAX}; they \
                 are shown as these"
            ));
        }
        if self.lines_sampled > 0 {
            let n = self.lines_sampled;
            let lines = plural(n, "line has", "lines have");
            self.warnings.push(format!(
                "{n} {lines} arrivals of a part of the answers only, or later than they were read: \
                 latencies there last until the generator read the answers"
            ));
        }
        match &self.end {
            None => self.warnings.push(
                "the last line is missing: the generator was killed or is still running".to_owned(),
            ),
            Some(end) if end.lines_lost > 0 => {
                let n = end.lines_lost;
                let lines = plural(n, "line", "lines");
                self.warnings.push(format!("{n} {lines} could not be written during the run"));
            }
            Some(_) => {}
        }
    }
}

/// Returns why a line cannot be parsed, and where in the line: the parser sees nothing else, and
/// calls it line 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.strip_suffix(&format!(" at line {} column {}", error.line(), error.column())) {
        Some(why) => format!("{why}, at column {}", error.column()),
        None => text,
    }
}

/// Reads the next line, its line break included, into `line`, which stays empty at the end of the
/// file. Returns false if the line is longer than [`LINE_BYTES_MAX`]: then only its first bytes are
/// there, and the rest is skipped.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    input.take(LINE_BYTES_MAX as u64).read_until(b'\n', line)?;
    if line.len() < LINE_BYTES_MAX || line.ends_with(b"\n") {
        return Ok(true);
    }
    input.skip_until(b'\n')?;
    Ok(false)
}

/// The reason why a file cannot be read as a run file.
#[derive(Debug)]
pub enum ReadError {
    /// The file has no first line.
    Empty,
    /// The first line is longer than [`LINE_BYTES_MAX`].
    LineTooLong,
    /// The first line has more objects than any header.
    LineTooFull,
    /// The first line is not a run file's header.
    NotARunFile(serde_json::Error),
    /// The file has a schema that this version does not read.
    UnknownSchema {
        /// The schema.
        schema: String,
        /// The version of throng that wrote it, if the file says so.
        throng_version: Option<String>,
    },
    /// The operating system returned an error.
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the run file is empty"),
            Self::LineTooLong => {
                write!(f, "not a run file: its first line is longer than {LINE_BYTES_MAX} bytes")
            }
            Self::LineTooFull => {
                write!(f, "not a run file: its first line has more than {LINE_OBJECTS_MAX} objects")
            }
            Self::NotARunFile(error) => {
                write!(
                    f,
                    "not a run file: the first line should hold \"schema\": \"{SCHEMA}\" ({error})"
                )
            }
            Self::UnknownSchema { schema, .. } if !schema.starts_with("throng.run/") => {
                write!(f, "not a run file: its schema is {schema:?}, and not {SCHEMA:?}")
            }
            Self::UnknownSchema { schema, throng_version } => {
                let this = env!("CARGO_PKG_VERSION");
                write!(
                    f,
                    "the run file's schema is {schema:?}; this version of throng ({this}) reads \
                     {SCHEMA:?}"
                )?;
                match throng_version {
                    Some(version) => write!(f, "; throng {version:?} wrote the file and reads it"),
                    None => write!(f, "; read it with the version that wrote it"),
                }
            }
            Self::Io(error) => write!(f, "cannot read the run file: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use super::super::{RunEndReason, RunFileWriter};
    use super::*;
    use crate::Operation;

    fn written() -> Vec<u8> {
        let header = RunHeader { target: "tcp://127.0.0.1:5555".into(), ..RunHeader::default() };
        let mut writer = RunFileWriter::create(Vec::new(), &header).unwrap();
        for at_ms in [0, 1000, 2000] {
            let _ = writer.interval(&Interval { at_ms, ..Interval::default() });
        }
        let _ = writer.end(&RunEnd { reason: RunEndReason::Interrupted, ..RunEnd::default() });
        writer.into_inner()
    }

    #[test]
    fn a_whole_file_is_read_without_warnings() {
        let file = read(&mut written().as_slice()).unwrap();
        assert_eq!(file.header.target, "tcp://127.0.0.1:5555");
        assert_eq!(file.intervals.len(), 3);
        assert_eq!(file.end.unwrap().reason, RunEndReason::Interrupted);
        assert_eq!(file.warnings, [""; 0]);
    }

    #[test]
    fn a_file_cut_anywhere_gives_every_whole_line_before_the_cut() {
        let bytes = written();
        let first = bytes.iter().position(|b| *b == b'\n').unwrap();
        for cut in first..bytes.len() {
            let file = read(&mut &bytes[..cut]).unwrap();
            let newlines = bytes[..cut].iter().filter(|b| **b == b'\n').count();
            assert!(file.intervals.len() >= newlines.saturating_sub(1).min(3), "cut at {cut}");
            assert!(file.lines_torn <= 1);
            assert_eq!(file.end.is_none(), !file.warnings.is_empty(), "cut at {cut}");
        }
    }

    #[test]
    fn a_torn_line_in_the_middle_is_named_and_passed_over() {
        let mut lines: Vec<_> =
            written().split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        lines[2] = b"{\"at_ms\":10\xff\n".to_vec();
        let file = read(&mut lines.concat().as_slice()).unwrap();
        assert_eq!((file.intervals.len(), file.lines_torn), (2, 1));
        assert!(file.warnings[0].starts_with("line 3 is torn"), "{:?}", file.warnings);
    }

    /// Returns a file of one line that does not end for `bytes` bytes after `first`.
    fn endless(first: &'static [u8], bytes: u64) -> io::BufReader<impl Read + fmt::Debug> {
        io::BufReader::new(first.chain(io::repeat(b'x').take(bytes)))
    }

    const HEADER: &[u8] = b"{\"schema\":\"throng.run/1\"}\n";

    #[test]
    fn a_line_without_an_end_takes_no_more_memory_than_the_longest_line() {
        let mut reader = RunFileReader::open(endless(HEADER, 5 * LINE_BYTES_MAX as u64)).unwrap();
        assert!(reader.next_interval().unwrap().is_none());
        assert_eq!(reader.lines_torn(), 1, "it is one line");
        assert!(reader.warnings()[0].contains("longer than 16777216 bytes"));
        assert!(reader.line.capacity() <= 2 * LINE_BYTES_MAX, "{}", reader.line.capacity());
        let error = RunFileReader::open(endless(b"", 1 << 30)).unwrap_err();
        assert!(matches!(error, ReadError::LineTooLong), "{error}");
    }

    #[test]
    fn a_line_after_one_that_is_too_long_is_read() {
        let mut text = HEADER.to_vec();
        text.resize(text.len() + LINE_BYTES_MAX, b' ');
        text.extend_from_slice(b"\n{\"at_ms\":5,\"span_ms\":5}\n");
        let file = read(&mut text.as_slice()).unwrap();
        assert_eq!((file.intervals.len(), file.lines_torn), (1, 1));
    }

    #[test]
    fn a_line_that_takes_too_much_is_skipped_and_named() {
        let line = |load: &str| format!("{{\"at_ms\":5,\"span_ms\":5,\"load\":{{{load}}}}}\n");
        let objects = |n: usize| line(&format!("\"steps\":[{}{{}}]", "{},".repeat(n)));
        // A histogram of five digits and up to 2^62: 48 MB for a few bytes.
        let large = "HISTFAAAAB142pNpmSzMwMDAyAABrFCa0QHKsP8AoZkAQSsCvw==";
        let histogram = line(&format!("\"message\":\"{large}\""));
        let lines = [objects(LINE_OBJECTS_MAX), histogram, objects(5)].concat();
        let file = read(&mut [HEADER, lines.as_bytes()].concat().as_slice()).unwrap();
        assert_eq!((file.intervals.len(), file.lines_torn), (1, 2), "{:?}", file.warnings);
        let named = "line 2 is torn and was skipped: it has more than 100000 objects";
        assert_eq!(file.warnings[0], named);
        let named = "line 3 is torn and was skipped: not an HdrHistogram in base64: it has 5 \
                     significant digits, more than 3, at column ";
        assert!(file.warnings[1].starts_with(named), "{}", file.warnings[1]);
        let header = "{\"schema\":\"throng.run/1\",\"machines\":[".to_owned()
            + &"{},".repeat(LINE_OBJECTS_MAX + 1);
        assert!(matches!(read(&mut header.as_bytes()), Err(ReadError::LineTooFull)));
    }

    #[test]
    fn of_very_many_torn_lines_the_first_are_named_and_all_are_counted() {
        let text = [HEADER, &b"torn\n".repeat(1_000)].concat();
        let file = read(&mut text.as_slice()).unwrap();
        assert_eq!(file.lines_torn, 1_000);
        assert_eq!(file.warnings.len(), 22, "{:?}", file.warnings);
        assert_eq!(file.warnings[20], "980 more lines are torn and were skipped");
    }

    #[test]
    fn an_unknown_schema_is_refused_by_name() {
        let refusal = |text: &str| read(&mut text.as_bytes()).unwrap_err().to_string();
        let this = env!("CARGO_PKG_VERSION");
        assert_eq!(
            refusal("{\"schema\":\"throng.run/2\",\"throng_version\":\"3.0.1\",\"started\":5}\n"),
            format!(
                "the run file's schema is \"throng.run/2\"; this version of throng ({this}) reads \
                 \"throng.run/1\"; throng \"3.0.1\" wrote the file and reads it"
            )
        );
        assert!(refusal("{\"schema\":\"throng.run/12\"}\n").contains("the version that wrote it"));
        let other = refusal("{\"schema\":\"throng.watch/1\"}\n");
        assert!(other.starts_with("not a run file: its schema is \"throng.watch/1\""), "{other}");
    }

    #[test]
    fn a_newer_schema_of_the_same_kind_is_read_with_a_warning() {
        let text = "{\"schema\":\"throng.run/1.7\"}\n{\"at_ms\":5,\"span_ms\":5,\"new\":[]}\n";
        let file = read(&mut text.as_bytes()).unwrap();
        assert_eq!(file.intervals.len(), 1);
        assert!(file.warnings[0].contains("\"throng.run/1.7\", newer than"), "{:?}", file.warnings);
    }

    #[test]
    fn a_number_that_no_run_reaches_is_limited_and_said() {
        let max = u64::MAX;
        let line = format!(
            "{{\"at_ms\":5,\"span_ms\":5,\"kernel\":{{\"x\":{}}},\"load\":{{\"cores\":{max}}}}}\n",
            i64::MIN
        );
        let late = format!("{{\"at_ms\":{max},\"span_ms\":5}}\n");
        let file = read(&mut [HEADER, line.as_bytes(), late.as_bytes()].concat().as_slice());
        let file = file.unwrap();
        assert_eq!(file.intervals[0].load.as_ref().unwrap().cores, NUMBER_MAX);
        let kernel: Vec<_> = file.intervals[0].kernel.iter().collect();
        assert_eq!(kernel, [("x", 0)]);
        assert_eq!((file.intervals.len(), file.lines_torn), (1, 1));
        assert!(file.warnings[0].contains("which no run reaches"), "{:?}", file.warnings);
        assert!(file.warnings[1].starts_with("1 line has numbers"), "{:?}", file.warnings);
    }

    #[test]
    fn arrivals_of_a_sample_or_after_the_read_are_not_shown_and_said() {
        let line = |arrivals: &[u64]| {
            let mut load = LoadInterval::default();
            [2_000, 2_000, 2_000]
                .iter()
                .for_each(|us| load.times[Operation::Message].record_us(*us));
            arrivals.iter().for_each(|us| load.arrival[Operation::Message].record_us(*us));
            let interval =
                Interval { at_ms: 5, span_ms: 5, load: Some(load), ..Default::default() };
            serde_json::to_string(&interval).unwrap() + "\n"
        };
        let lines = [line(&[1_000; 3]), line(&[1_000; 2]), line(&[2_100; 3]), line(&[])].concat();
        let file = read(&mut [HEADER, lines.as_bytes()].concat().as_slice()).unwrap();
        let loads = file.intervals.iter().filter_map(|interval| interval.load.as_ref());
        let shown: Vec<_> =
            loads.map(|load| load.latency(Operation::Message).percentile(50.0)).collect();
        assert_eq!(shown, [1_000, 2_000, 2_000, 2_000]);
        assert!(file.warnings[0].starts_with("2 lines have arrivals of"), "{:?}", file.warnings);
    }

    #[test]
    fn another_file_is_refused() {
        for text in ["", "\n", "hello\n", "{\"a\":1}\n", "[1]\n"] {
            assert!(read(&mut text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn fields_of_a_later_version_are_passed_over() {
        let text = "{\"schema\":\"throng.run/1\",\"mood\":1}\n{\"at_ms\":5,\"span_ms\":5,\"x\":2}\n\
                    {\"end\":{\"reason\":\"moon_rose\",\"y\":[]}}\n";
        let file = read(&mut text.as_bytes()).unwrap();
        assert_eq!((file.intervals.len(), file.warnings.len()), (1, 0));
        assert_eq!(file.end.unwrap().reason, RunEndReason::Unknown);
    }
}
