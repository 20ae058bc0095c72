//! Reading a data file: CSV with a header, or JSON, one object a line.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;
use throng_base::units::plural;

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
    let input = BufReader::new(file.take(FILE_BYTES_MAX + 1));
    let table = match format {
        Format::Csv => read_csv(input, name, CsvFile { inputs, path }, form)?,
        Format::JsonLines => read_json_lines(input, name, &path.display().to_string())?,
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
    let mut record = csv::StringRecord::new();
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
        csv::ErrorKind::Io(error) => wrong(error.to_string(), "is it readable?"),
        _ => wrong(format!("line {line}: {error}"), "is it CSV?"),
    }
}

fn read_json_lines(
    input: impl BufRead,
    name: &str,
    path: &str,
) -> Result<Option<DataTable>, DataFileError> {
    let mut table: Option<TableBuilder> = None;
    let mut bytes = 0;
    for (index, line) in input.lines().enumerate() {
        let number = index as u64 + 1;
        let line = line.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => {
                let remedy = "convert the file, for example with iconv";
                wrong(format!("line {number} is not UTF-8"), remedy)
            }
            _ => wrong(error.to_string(), "is it readable?"),
        })?;
        bytes += line.len() as u64 + 1;
        check_size(bytes)?;
        if line.trim().is_empty() {
            continue;
        }
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
    for (index, column) in columns.iter().enumerate() {
        if column.is_empty() {
            let problem = format!("column {} of line {} has no name", index + 1, line());
            return Err(wrong(problem, "the first line names the columns: user,token"));
        }
        if columns[..index].contains(column) {
            let problem = format!("line {} names the column `{column}` twice", line());
            return Err(wrong(problem, "give each column a name of its own"));
        }
    }
    if columns.is_empty() {
        return Err(wrong("it names no columns", "the first line names the columns: user,token"));
    }
    Ok(columns)
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
    if bytes > FILE_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> DataFileError {
    wrong("it has more than 1 GiB", "a data file is kept in memory; leave out what is not used")
}

fn wrong(problem: impl Into<String>, remedy: &str) -> DataFileError {
    DataFileError { problem: problem.into(), remedy: remedy.to_owned() }
}

/// Longest value of a data file.
const CELL_BYTES_MAX: usize = 64 << 10;

/// Largest data file.
const FILE_BYTES_MAX: u64 = 1 << 30;
