//! `arrivals: {file}`: moments of arrival, read from a file.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throng_base::input_file::{DATA_BYTES_MAX, read_all};
use throng_base::units::{parse_count, parse_utc};

use super::phase::Phase;
use crate::scenario::data::DataFileError;
use crate::scenario::inputs::ScenarioInputs;
use crate::scenario::node::Node;
use crate::scenario::reader::Reader;

/// Reads a phase of arrivals at the moments of a file, whose path counts from `folder`.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<Phase> {
    let fields = reader.fields(node, "`arrivals`", &["file", "column", "speed"])?;
    let file = fields.get("file")?;
    let text = reader.text(file, "`file`", "the path of a file such as times.txt");
    let column = match fields.get("column") {
        None => Some(Column::Only),
        Some(node) => {
            reader.text(node, "`column`", "a name, or a number from 1").map(Column::parse)
        }
    };
    let speed = reader.value_or(&fields, "speed", 1.0, read_speed);
    let (text, column, speed) = (text?, column?, speed?);
    let path = folder.join(text);
    match read_file(&reader.inputs, &path, &column) {
        Ok(moments) => {
            reader.files.push(path);
            Some(phase(&moments, speed))
        }
        Err(error) => {
            let title = format!("cannot use `{text}`: {}", error.problem);
            reader.error(file.span.clone(), title, error.remedy);
            None
        }
    }
}

/// Reads how many times faster than recorded the arrivals come: `2x`, `0.5x`.
fn read_speed(reader: &mut Reader<'_>, node: &Node) -> Option<f64> {
    let expected = "a factor such as 2x or 0.5x";
    let text = reader.text(node, "`speed`", expected)?;
    let number = text.trim().strip_suffix('x').and_then(|number| number.trim().parse().ok());
    let speed = number.filter(|number| (SPEED_MIN..=1.0 / SPEED_MIN).contains(number));
    if speed.is_none() {
        let label = "from 0.0001x to 10000x";
        reader.error(node.span.clone(), format!("`speed` must be {expected}"), label);
    }
    speed
}

/// Returns the phase of moments that are in order. The first is due at once.
fn phase(moments: &[i128], speed: f64) -> Phase {
    let first = moments.first().copied().unwrap_or_default();
    // Each is computed from its own distance, so errors do not add up.
    let place = |moment: &i128| ((moment - first) as f64 / speed).round() as u64;
    let moments_ns: Arc<[u64]> = moments.iter().map(place).collect();
    let last = Duration::from_nanos(moments_ns.last().copied().unwrap_or_default());
    // The last one is before the end, too.
    let span = Duration::from_millis(u64::try_from(last.as_millis()).unwrap_or(u64::MAX) + 1);
    Phase::Recorded { moments_ns, span }
}

/// The column of a line that holds the moment.
enum Column<'a> {
    /// A file of one column.
    Only,
    /// A name in the first line.
    Name(&'a str),
    /// A place in a file without names, from 0.
    Index(usize),
}

impl<'a> Column<'a> {
    fn parse(text: &'a str) -> Self {
        match parse_count(text) {
            Ok(number @ 1..=COLUMNS_MAX) => Self::Index(number as usize - 1),
            _ => Self::Name(text),
        }
    }
}

/// Returns the moments of a file in nanoseconds, in order.
fn read_file(
    inputs: &ScenarioInputs,
    path: &Path,
    column: &Column<'_>,
) -> Result<Vec<i128>, DataFileError> {
    let file = inputs.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => wrong("it is a folder", "name a file in it"),
        _ => wrong(error, "the path counts from the folder of the scenario"),
    })?;
    let bytes = read_all(file, DATA_BYTES_MAX).map_err(|error| {
        let is_too_large = error.kind() == io::ErrorKind::FileTooLarge;
        let remedy = match is_too_large {
            true => "split it, and write a phase for each part",
            false => "is it readable?",
        };
        wrong(error, remedy)
    })?;
    parse_moments(&bytes, column)
}

/// Parses moments: seconds or RFC 3339, one a line or in a column of CSV. Empty lines and those
/// that begin with `#` are left out.
fn parse_moments(bytes: &[u8], column: &Column<'_>) -> Result<Vec<i128>, DataFileError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (mut moments, mut index) = (Moments::default(), None);
    for (line, text) in (1u64..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let found = match index {
            Some(found) => found,
            None => {
                let (found, is_header) = find_column(text, column, line)?;
                index = Some(found);
                if is_header {
                    continue;
                }
                found
            }
        };
        let Some(cell) = cell(text, found) else {
            let problem = format!("line {line} has no column {}", found + 1);
            return Err(wrong(problem, "each line has a moment"));
        };
        moments.push(&cell, line)?;
    }
    if moments.nanos.is_empty() {
        return Err(wrong("it has no moments", "one a line: seconds, or 2026-11-21T06:06:57.5Z"));
    }
    Ok(moments.nanos)
}

/// Returns a cell of a line, without quotes.
fn cell(line: &[u8], index: usize) -> Option<String> {
    let text = |cell: &[u8]| String::from_utf8_lossy(cell.trim_ascii()).into_owned();
    if !line.contains(&b'"') {
        return line.split(|byte| *byte == b',').nth(index).map(text);
    }
    cells(line).get(index).map(text)
}

/// Returns the cells of a line of CSV. A cell in quotes ends with its line.
fn cells(line: &[u8]) -> csv::ByteRecord {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let mut record = csv::ByteRecord::new();
    // A single line in memory has no error.
    let _ = reader.read_byte_record(&mut record);
    record
}

/// Returns the index of the column, and whether the first line only names it.
fn find_column(
    text: &[u8],
    column: &Column<'_>,
    line: u64,
) -> Result<(usize, bool), DataFileError> {
    let first = cells(text);
    match column {
        Column::Index(index) => Ok((*index, false)),
        Column::Only if first.len() == 1 => Ok((0, false)),
        Column::Only => {
            let problem = format!("line {line} has {} columns", first.len());
            Err(wrong(problem, "say which: `column: NAME` of the first line, or `column: 1`"))
        }
        Column::Name(name) => {
            let found = first.iter().position(|cell| cell.trim_ascii() == name.as_bytes());
            found.map(|index| (index, true)).ok_or_else(|| {
                let names: Vec<_> = first.iter().map(String::from_utf8_lossy).collect();
                let names: String = names.join(", ").chars().take(100).collect();
                let problem = format!("line {line} names no column `{name}`");
                wrong(problem, &format!("it has: {}", names.escape_debug()))
            })
        }
    }
}

/// The moments of the lines so far.
#[derive(Default)]
struct Moments {
    nanos: Vec<i128>,
    format: Option<MomentFormat>,
    last_line: u64,
}

impl Moments {
    fn push(&mut self, text: &str, line: u64) -> Result<(), DataFileError> {
        let Some((moment, format)) = parse_moment(text) else {
            let shown: String = text.chars().take(40).collect();
            let problem = format!("line {line}: `{}` is no moment", shown.escape_debug());
            return Err(wrong(problem, "seconds such as 12.5, or 2026-11-21T06:06:57.5Z"));
        };
        if *self.format.get_or_insert(format) != format {
            let problem = format!("line {line} is not in the format of the lines before");
            return Err(wrong(problem, "all seconds, or all dates"));
        }
        if self.nanos.last().is_some_and(|last| moment < *last) {
            let problem = format!("line {line} is before line {}", self.last_line);
            return Err(wrong(problem, "sort the file by time, for example with `sort -n`"));
        }
        let first = *self.nanos.first().unwrap_or(&moment);
        if moment - first > SPAN_NS_MAX {
            let problem = format!("line {line} is more than a year after the first");
            return Err(wrong(problem, "split the file, and write a phase for each part"));
        }
        if self.nanos.len() >= MOMENTS_MAX {
            return Err(wrong("it has more than 20M moments", "write a phase for each part"));
        }
        self.last_line = line;
        self.nanos.push(moment);
        Ok(())
    }
}

/// How a moment is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MomentFormat {
    Seconds,
    Date,
}

/// Parses seconds, or a date with a time; returns nanoseconds.
fn parse_moment(text: &str) -> Option<(i128, MomentFormat)> {
    if let Some(date) = parse_utc(text) {
        return Some((date, MomentFormat::Date));
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=DIGITS_MAX).contains(&whole.len()) && part.len() <= DIGITS_MAX;
    if !fits || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let nanos: i128 = format!("{part:0<9}")[..9].parse().ok()?;
    Some((whole.parse::<i128>().ok()? * 1_000_000_000 + nanos, MomentFormat::Seconds))
}

fn wrong(problem: impl ToString, remedy: &str) -> DataFileError {
    DataFileError { problem: problem.to_string(), remedy: remedy.to_owned() }
}

/// Slowest replay; its inverse is the fastest.
const SPEED_MIN: f64 = 1e-4;
/// Maximum number of moments: they take 160 MB.
const MOMENTS_MAX: usize = 20_000_000;
/// Longest time between the first moment and the last.
const SPAN_NS_MAX: i128 = 366 * 86_400 * 1_000_000_000;
/// Maximum number of digits before the point, and after it.
const DIGITS_MAX: usize = 18;
/// Highest number of a column.
const COLUMNS_MAX: u64 = 10_000;

#[cfg(test)]
mod tests;
