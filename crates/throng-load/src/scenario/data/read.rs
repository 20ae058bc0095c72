//! Reading a data file: CSV with a header, or JSON, one object a line.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;
use throng_base::input_file::DATA_BYTES_MAX;
use throng_base::units::{plural, show_bytes};

use super::table::{DataTable, TableBuilder};
use crate::scenario::inputs::ScenarioInputs;

/// The reason why a data file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFileError {
    /// The problem, with the line of the file.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// The form of a CSV file, where it is not the usual one.
#[derive(Debug, Default)]
pub(super) struct CsvForm {
    /// Names of the columns, where no line of the file has them.
    pub(super) columns: Option<Vec<String>>,
    /// Character between two values, in place of a comma.
    pub(super) delimiter: Option<u8>,
}

/// Reads the file at `path`, which was given from `folder`, into a table called `name`.
pub(super) fn read(
    inputs: &ScenarioInputs,
    (folder, path): (&Path, &Path),
    name: &str,
    form: &CsvForm,
) -> Result<DataTable, DataFileError> {
    let format = Format::of(path, form)?;
    let file = inputs.open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::IsADirectory {
            return wrong("it is a folder", "name a file in it");
        }
        let remedy = match folder.as_os_str().is_empty() {
            true => "the path counts from the folder of the scenario".to_owned(),
            false => format!("the path counts from {}", folder.display()),
        };
        wrong(error.to_string(), &remedy)
    })?;
    let row_bytes = Cell::new(0);
    let input =
        BufReader::new(RowLimit { inner: file.take(DATA_BYTES_MAX + 1), bytes: &row_bytes });
    let table = match format {
        Format::Csv => read_csv(input, name, CsvFile { inputs, path }, form, &row_bytes)?,
        Format::JsonLines => read_json_lines(input, name, &path.display().to_string(), &row_bytes)?,
    };
    table.ok_or_else(|| wrong("it has no rows", "one row for each user, below the header if any"))
}

/// A file of CSV, as mistakes in it name it.
#[derive(Clone, Copy)]
struct CsvFile<'a> {
    inputs: &'a ScenarioInputs,
    path: &'a Path,
}

#[derive(Clone, Copy)]
enum Format {
    Csv,
    JsonLines,
}

impl Format {
    /// Returns the format of a file: by the end of its name, unless its form says that it is CSV.
    fn of(path: &Path, form: &CsvForm) -> Result<Self, DataFileError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("jsonl" | "ndjson") if form.is_usual() => Ok(Self::JsonLines),
            Some("jsonl" | "ndjson") => Err(wrong(
                "`columns` and `delimiter` are for CSV",
                "leave them out: each line of JSON names its values",
            )),
            Some("csv") => Ok(Self::Csv),
            _ if !form.is_usual() => Ok(Self::Csv),
            _ => Err(wrong(
                "the end of its name is not that of a data file",
                "name.csv: values between commas, below a header; name.jsonl: an object a line",
            )),
        }
    }
}

impl CsvForm {
    fn is_usual(&self) -> bool {
        self.columns.is_none() && self.delimiter.is_none()
    }
}

fn read_csv(
    input: impl Read,
    name: &str,
    file: CsvFile<'_>,
    form: &CsvForm,
    row_bytes: &Cell<usize>,
) -> Result<Option<DataTable>, DataFileError> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::Headers)
        .delimiter(form.delimiter.unwrap_or(b','))
        .has_headers(form.columns.is_none())
        .from_reader(input);
    let columns = match &form.columns {
        Some(columns) => columns.clone(),
        None => read_header(&mut reader, file)?,
    };
    let count = columns.len();
    let mut table = TableBuilder::new(name, &file.path.display().to_string(), columns);
    let (mut record, mut rows) = (csv::StringRecord::new(), 0);
    while reader.read_record(&mut record).map_err(|error| csv_error(&error, file))? {
        let line = || record.position().map_or(0, |position| file.line_of(position));
        if record.len() != count {
            return Err(wrong(
                format!("line {} has {}, not {count}", line(), values(record.len())),
                "each row has a value for each name in `columns`, between delimiters",
            ));
        }
        for cell in &record {
            push(&mut table, cell.as_bytes(), line)?;
        }
        check_size(record.position().map_or(0, csv::Position::byte))?;
        rows += 1;
        check_rows(rows)?;
        row_bytes.set(0);
    }
    Ok(table.build())
}

fn values(count: usize) -> String {
    format!("{count} {}", plural(count as u64, "value", "values"))
}

/// Reads the names of the columns from the first line.
fn read_header(
    reader: &mut csv::Reader<impl Read>,
    file: CsvFile<'_>,
) -> Result<Vec<String>, DataFileError> {
    let header = reader.headers().map_err(|error| csv_error(&error, file))?;
    let columns: Vec<_> = header
        .iter()
        .enumerate()
        .map(
            |(index, column)| {
                if index == 0 { column.trim_start_matches('\u{feff}') } else { column }
            },
        )
        .map(str::to_owned)
        .collect();
    let header_line = || header.position().map_or(1, |position| file.line_of(position));
    check_columns(columns, header_line)
}

impl CsvFile<'_> {
    /// Returns the line of a record, from 1. The reader begins a record with the empty lines before
    /// it, so these are counted in the file.
    fn line_of(self, position: &csv::Position) -> u64 {
        let counted = || {
            let mut before = BufReader::new(self.inputs.open(self.path)?).take(position.byte());
            let (mut lines, mut block) = (1, [0; 8 << 10]);
            loop {
                match before.read(&mut block)? {
                    0 => break,
                    read => {
                        lines += block[..read].iter().filter(|byte| **byte == b'\n').count() as u64
                    }
                }
            }
            for byte in before.into_inner().bytes() {
                match byte? {
                    b'\n' => lines += 1,
                    b'\r' => {}
                    _ => break,
                }
            }
            Ok::<_, std::io::Error>(lines)
        };
        counted().unwrap_or(position.line())
    }
}

fn csv_error(error: &csv::Error, file: CsvFile<'_>) -> DataFileError {
    let line = error.position().map_or(1, |position| file.line_of(position));
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => wrong(
            format!("line {line} has not as many values as the header: {len}, not {expected_len}"),
            "each row has a value for each column; one with a comma in it stands in double quotes",
        ),
        csv::ErrorKind::Utf8 { .. } => {
            wrong(format!("line {line} is not UTF-8"), "convert the file, for example with iconv")
        }
        csv::ErrorKind::Io(error) => unreadable(error),
        _ => wrong(format!("line {line}: {error}"), "is it CSV?"),
    }
}

fn read_json_lines(
    input: impl BufRead,
    name: &str,
    path: &str,
    row_bytes: &Cell<usize>,
) -> Result<Option<DataTable>, DataFileError> {
    let mut table: Option<TableBuilder> = None;
    let (mut bytes, mut rows) = (0, 0);
    for (index, line) in input.lines().enumerate() {
        let number = index as u64 + 1;
        let line = line.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => {
                let remedy = "convert the file, for example with iconv";
                wrong(format!("line {number} is not UTF-8"), remedy)
            }
            _ => unreadable(&error),
        })?;
        row_bytes.set(0);
        bytes += line.len() as u64 + 1;
        check_size(bytes)?;
        if line.trim().is_empty() {
            continue;
        }
        rows += 1;
        check_rows(rows)?;
        let object = match serde_json::from_str(&line) {
            Ok(Value::Object(object)) => object,
            Ok(_) => {
                let problem = format!("line {number} is not an object");
                return Err(wrong(problem, "each line is an object such as {\"token\": \"a\"}"));
            }
            Err(error) => {
                let problem = format!("line {number}, column {}: not JSON", error.column());
                return Err(wrong(problem, "each line is an object such as {\"token\": \"a\"}"));
            }
        };
        let table = match &mut table {
            Some(table) => table,
            None => {
                let columns = object.keys().cloned().collect();
                let columns = check_columns(columns, || number)?;
                table.insert(TableBuilder::new(name, path, columns))
            }
        };
        for column in table.columns().to_vec() {
            let cell = match object.get(&column) {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => {
                    let problem = format!("line {number} has no `{column}`");
                    return Err(wrong(problem, "each row has the members of the first"));
                }
            };
            push(table, cell.as_bytes(), || number)?;
        }
    }
    Ok(table.and_then(TableBuilder::build))
}

/// Checks that columns have names, each another one.
fn check_columns(
    columns: Vec<String>,
    line: impl Fn() -> u64,
) -> Result<Vec<String>, DataFileError> {
    if columns.len() > COLUMNS_MAX {
        let problem = format!("line {} has {} columns", line(), columns.len());
        return Err(wrong(problem, &format!("at most {COLUMNS_MAX}; leave out what is not used")));
    }
    let mut names = HashSet::new();
    for (index, column) in columns.iter().enumerate() {
        if column.is_empty() {
            let problem = format!("column {} of line {} has no name", index + 1, line());
            return Err(wrong(problem, "the first line names the columns: user,token"));
        }
        if !names.insert(column) {
            let problem = format!("line {} names the column `{column}` twice", line());
            return Err(wrong(problem, "give each column a name of its own"));
        }
    }
    if columns.is_empty() {
        return Err(wrong("it names no columns", "the first line names the columns: user,token"));
    }
    Ok(columns)
}

/// Passes on a file, and fails in a row that is too long: a reader of rows keeps a whole one.
struct RowLimit<'a, R> {
    inner: R,
    /// Bytes since the last row.
    bytes: &'a Cell<usize>,
}

impl<R: Read> Read for RowLimit<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + read);
        if self.bytes.get() > ROW_BYTES_MAX {
            let problem = format!("it has a row of more than {}", show_bytes(ROW_BYTES_MAX as u64));
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        Ok(read)
    }
}

/// Returns what is wrong with a file that cannot be read to its end.
fn unreadable(error: &io::Error) -> DataFileError {
    let remedy = match error.kind() {
        io::ErrorKind::FileTooLarge => {
            "is it a data file? A quote that is not closed makes one row of many"
        }
        _ => "is it readable?",
    };
    wrong(error.to_string(), remedy)
}

fn push(
    table: &mut TableBuilder,
    cell: &[u8],
    line: impl Fn() -> u64,
) -> Result<(), DataFileError> {
    if cell.len() > CELL_BYTES_MAX {
        let problem = format!("a value in line {} has {} bytes", line(), cell.len());
        return Err(wrong(problem, &format!("at most {CELL_BYTES_MAX}")));
    }
    if table.push(cell) { Ok(()) } else { Err(too_large()) }
}

fn check_size(bytes: u64) -> Result<(), DataFileError> {
    if bytes > DATA_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}

fn check_rows(rows: u64) -> Result<(), DataFileError> {
    if rows <= ROWS_MAX {
        return Ok(());
    }
    let problem = format!("it has more than {ROWS_MAX} rows");
    Err(wrong(problem, "a data file is kept in memory; leave out what is not used"))
}

fn too_large() -> DataFileError {
    let problem = format!("it has more than {}", show_bytes(DATA_BYTES_MAX));
    wrong(problem, "a data file is kept in memory; leave out what is not used")
}

fn wrong(problem: impl Into<String>, remedy: &str) -> DataFileError {
    DataFileError { problem: problem.into(), remedy: remedy.to_owned() }
}

/// Longest value of a data file.
const CELL_BYTES_MAX: usize = 64 << 10;

/// Most columns of a data file.
pub(super) const COLUMNS_MAX: usize = 10_000;

/// Most rows of a data file.
const ROWS_MAX: u64 = 100_000_000;

/// Longest row of a data file.
const ROW_BYTES_MAX: usize = 16 << 20;
