//! The file of a search, and its reports: what `throng find` and `throng report` write of it.

use std::io::BufReader;
use std::path::Path;

use throng_base::input_file;
use throng_report::export::{ReportFormat, search_csv};
use throng_report::render::{escape_json, search_markdown, search_text};
use throng_report::search::{SEARCH_HEAD_BYTES, SearchRecord, is_search_file};

use crate::output_place::{begins_with, unwritable};
use crate::report_files::ReportFile;
use crate::{Failure, output};

/// Reports whether the file of a search is at `path`.
pub(crate) fn is_search_file_at(path: &Path) -> bool {
    begins_with(path, SEARCH_HEAD_BYTES, is_search_file)
}

/// Reads the file of a search.
pub(crate) fn read(path: &Path) -> Result<SearchRecord, Failure> {
    let read = input_file::open(path).and_then(|file| SearchRecord::read(BufReader::new(file)));
    read.map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

/// Checks that a search is shown in the format of `file`.
pub(crate) fn check(file: &ReportFile) -> Result<(), Failure> {
    use ReportFormat::{Annotations, CodeQuality, Csv, Github, Html, Json, Junit, Markdown, Text};
    match file.format() {
        Text | Html | Json | Csv | Markdown | Github => Ok(()),
        format @ (Junit | Annotations | CodeQuality) => {
            let path = file.path().unwrap_or(Path::new("standard output"));
            let why = format!(
                "a search has no {format}; it is written as html, json, csv, markdown or text"
            );
            Err(unwritable(path, why))
        }
    }
}

/// Writes the report of a search to `file`, after [`check`].
pub(crate) fn write(record: &SearchRecord, file: &ReportFile) -> Result<(), Failure> {
    file.write_with(|mut out| match file.format() {
        ReportFormat::Html => throng_view::write_search_page(record, &mut out),
        ReportFormat::Json => {
            writeln!(out, "{}", escape_json(&serde_json::to_string_pretty(record)?))
        }
        ReportFormat::Csv => write!(out, "{}", search_csv(record)),
        ReportFormat::Markdown | ReportFormat::Github => {
            writeln!(out, "{}", search_markdown(record))
        }
        _ if file.path().is_none() => {
            write!(out, "{}", output::for_terminal(search_text(record)))
        }
        _ => write!(out, "{}", search_text(record)),
    })
}
