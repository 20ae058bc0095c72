//! Reports as files: what `throng report -o` and `throng run --report` write.
//!
//! A file is written beside its place and then moved there, so that an error leaves no half of it,
//! and an earlier report stays until the new one is whole. A run file is never overwritten.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use throng_base::input_file;
use throng_report::RunExit;
use throng_report::export::{CsvExport, ReportFormat};
use throng_report::render::{check_text, escape_json, escape_lines};
use throng_run::{RunContent, RunResult};

use crate::output_place::{self, IS_RUN_FILE, folder_of, is_run_file_at, unwritable};
use crate::search_file::is_search_file_at;
use crate::{Failure, output};

/// The value of `throng run --report`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportPlace {
    /// Beside the run file, as a page of its name.
    BesideRunFile,
    /// This file.
    File(PathBuf),
}

impl ReportPlace {
    /// Returns the path of the report of `run_file`.
    pub(crate) fn path(&self, run_file: &Path) -> PathBuf {
        match self {
            Self::BesideRunFile => run_file.with_extension("html"),
            Self::File(path) => path.clone(),
        }
    }

    /// Parses the flag's value, which may be absent.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::BesideRunFile);
        }
        ReportFormat::of_path(Path::new(text)).map(|_| Self::File(text.into()))
    }

    /// Returns the files of the flag's values, after a check that they can be written: the run may
    /// take hours.
    pub(crate) fn files(places: &[Self], run_file: &Path) -> Result<Vec<ReportFile>, Failure> {
        places.iter().map(|place| ReportFile::new(&place.path(run_file), None)).collect()
    }
}

/// A place for a report, and the report's format.
#[derive(Clone, Debug)]
pub(crate) struct ReportFile {
    place: Place,
    format: ReportFormat,
}

#[derive(Clone, Debug)]
enum Place {
    Stdout,
    File(PathBuf),
    /// The end of a file that other programs write, too.
    EndOf(PathBuf),
}

impl ReportFile {
    /// Returns the report at `path`, or on standard output for `-`, in a format that its extension
    /// says if none is given. Refuses the place of a run file.
    pub(crate) fn new(path: &Path, format: Option<ReportFormat>) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::stdout(format.unwrap_or(ReportFormat::Text)));
        }
        output_place::check(path)?;
        if is_search_file_at(path) {
            return Err(unwritable(path, "it is the file of a search; name another file"));
        }
        let format = match format {
            Some(format) => format,
            None => ReportFormat::of_path(path)
                .map_err(|why| unwritable(path, format!("{why}, or name one with --format")))?,
        };
        Ok(Self { place: Place::File(path.to_owned()), format })
    }

    /// Returns a report on standard output.
    pub(crate) fn stdout(format: ReportFormat) -> Self {
        Self { place: Place::Stdout, format }
    }

    /// Returns the report at the end of the summary of a step of GitHub Actions.
    pub(crate) fn step_summary() -> Result<Self, Failure> {
        let path = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| {
            Failure::new(
                "GITHUB_STEP_SUMMARY is not set: this is no step of GitHub Actions; \
                 `--format github` prints the summary",
            )
        })?;
        Ok(Self { place: Place::EndOf(path.into()), format: ReportFormat::Github })
    }

    /// Returns the format.
    pub(crate) fn format(&self) -> ReportFormat {
        self.format
    }

    /// Returns the path, if it is a file of its own.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Stdout | Place::EndOf(_) => None,
        }
    }

    /// Writes what `write` makes, at once.
    pub(crate) fn write_with(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let out = self.open().map_err(|error| self.unwritable(&error))?;
        let mut out = BufWriter::new(out);
        let written = write(&mut out).and_then(|()| finish(out));
        self.ended(written)
    }

    fn begin(&self) -> Result<OpenReport, Failure> {
        let out = self.open().map_err(|error| self.unwritable(&error))?;
        let out = BufWriter::new(out);
        let body = match self.format {
            ReportFormat::Csv => {
                let csv = CsvExport::new(out).map_err(|error| self.unwritable(&error))?;
                Body::Rows { csv, error: None }
            }
            _ => Body::AtOnce(out),
        };
        Ok(OpenReport { file: self.clone(), body })
    }

    fn open(&self) -> io::Result<Output> {
        let path = match &self.place {
            Place::Stdout => return Ok(Output::Open(Box::new(output::stdout()))),
            Place::EndOf(path) => {
                let file = File::options().append(true).create(true).open(path)?;
                return Ok(Output::Open(Box::new(file)));
            }
            Place::File(path) => path,
        };
        // The run may have made it since the first check.
        if is_run_file_at(path) {
            return Err(io::Error::other(IS_RUN_FILE));
        }
        // A link stays a link. A pipe or a device stays what it is.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if fs::metadata(&place).is_ok_and(|known| !known.is_file()) {
            return Ok(Output::Open(Box::new(File::options().write(true).open(&place)?)));
        }
        let beside = tempfile::Builder::new()
            .prefix(".throng-report-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder_of(&place))?;
        Ok(Output::Beside(beside, place))
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        let place = match &self.place {
            Place::Stdout => "standard output".to_owned(),
            Place::File(path) | Place::EndOf(path) => path.display().to_string(),
        };
        Failure::new(format!("cannot write {place}: {error}")).unwritten()
    }

    fn ended(&self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            // A reader may stop reading: `throng report | head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| self.unwritable(&error)),
        }
    }
}

/// The output of a report.
enum Output {
    Open(Box<dyn Write>),
    /// A file that is moved to its place when it is whole.
    Beside(NamedTempFile, PathBuf),
}

impl Output {
    fn finish(self) -> io::Result<()> {
        match self {
            Self::Open(mut out) => out.flush(),
            Self::Beside(file, place) => file.persist(place).map(drop).map_err(|error| error.error),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Open(out) => out.write(bytes),
            Self::Beside(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Open(out) => out.flush(),
            Self::Beside(file, _) => file.flush(),
        }
    }
}

/// A report that is being written.
struct OpenReport {
    file: ReportFile,
    body: Body,
}

enum Body {
    /// Written when the run was read.
    AtOnce(BufWriter<Output>),
    /// Written while the run is read; nothing more after the first error.
    Rows { csv: CsvExport<BufWriter<Output>>, error: Option<io::Error> },
}

impl OpenReport {
    fn finish(
        self,
        content: &RunContent,
        result: &RunResult,
        reader: &RunReader<'_>,
    ) -> Result<(), Failure> {
        let Self { file, body } = self;
        let written = match body {
            Body::Rows { error: Some(error), .. } => Err(error),
            Body::Rows { csv, error: None } => finish(csv.into_inner()),
            Body::AtOnce(mut out) => {
                let export = content.export(result);
                match file.format {
                    ReportFormat::Html => throng_view::write_page(content, result, &mut out),
                    ReportFormat::Json => {
                        writeln!(out, "{}", escape_json(&export.json().to_string()))
                    }
                    ReportFormat::Markdown => out.write_all(export.markdown().as_bytes()),
                    ReportFormat::Junit => out.write_all(export.junit().as_bytes()),
                    ReportFormat::Github => writeln!(out, "{}", export.github()),
                    ReportFormat::Annotations => out.write_all(export.annotations().as_bytes()),
                    ReportFormat::CodeQuality => {
                        writeln!(out, "{}", escape_json(&format!("{:#}", export.code_quality())))
                    }
                    ReportFormat::Text | ReportFormat::Csv => {
                        let text = reader.text(content, result);
                        let text = match file.place {
                            Place::Stdout => output::for_terminal(text),
                            Place::File(_) | Place::EndOf(_) => text,
                        };
                        out.write_all(text.as_bytes())
                    }
                }
                .and_then(|()| finish(out))
            }
        };
        file.ended(written)
    }
}

fn finish(out: BufWriter<Output>) -> io::Result<()> {
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// Says how to see the run file at `path`, whose text was shown `with_details` or without.
pub(crate) fn more(path: &impl std::fmt::Display, with_details: bool) -> String {
    match with_details {
        true => format!("show it with `throng report {path}`"),
        false => format!("details: `throng report {path} --details`"),
    }
}

/// A run file whose reports are written.
pub(crate) struct RunReader<'a> {
    pub(crate) path: &'a Path,
    /// True if a text has everything that is known of the run.
    pub(crate) with_details: bool,
}

/// What is left to say when the reports of a run file are written.
pub(crate) struct RunReading {
    pub(crate) exit: RunExit,
    pub(crate) warnings: Vec<String>,
    /// The outcome in a few lines.
    pub(crate) outcome: String,
}

impl<'a> RunReader<'a> {
    pub(crate) fn new(path: &'a Path) -> Self {
        Self { path, with_details: false }
    }

    /// Returns the report of the run file as text: the run's own report, and where it comes from.
    fn text(&self, content: &RunContent, result: &RunResult) -> String {
        let summary = &result.summary;
        let mut text = if self.with_details { result.details() } else { result.text() };
        if !content.warnings().is_empty() {
            text += "\nthe run file\n";
            content.warnings().iter().for_each(|warning| text += &format!("  {warning}\n"));
        }
        if let Some(sentence) = summary.shortcoming() {
            text += &format!("\n{sentence}");
        }
        let run = &summary.run;
        let what = [&run.scenario, &run.target, &run.started].map(String::as_str);
        let what: Vec<_> = what.into_iter().filter(|part| !part.is_empty()).collect();
        let more = match self.with_details {
            true => String::new(),
            false => format!("; {}", more(&self.path.display(), false)),
        };
        text += &format!("\n{}{more}\n", what.join(", "));
        // Names of a file that another program wrote must not steer the terminal.
        escape_lines(&text)
    }

    /// Writes all `files` and adds a line for each to `text`.
    pub(crate) fn write_named(
        &self,
        files: &[ReportFile],
        text: &mut String,
    ) -> Result<(), Failure> {
        if files.is_empty() {
            return Ok(());
        }
        self.write(files)?;
        let paths = files.iter().filter_map(ReportFile::path);
        paths.for_each(|path| *text += &format!("\nreport: {}", path.display()));
        Ok(())
    }

    /// Reads the run file once and writes all `files`.
    pub(crate) fn write(&self, files: &[ReportFile]) -> Result<RunReading, Failure> {
        let fail =
            |why: String| Failure::new(format!("cannot read {}: {why}", self.path.display()));
        let input = input_file::open(self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => fail(format!("{error}\n  `throng run SCENARIO` writes one")),
            _ => fail(error.to_string()),
        })?;
        let mut reports = Vec::new();
        for file in files {
            reports.push(file.begin()?);
        }
        let with_page = files.iter().any(|file| file.format == ReportFormat::Html);
        let read = RunContent::read_each(BufReader::new(input), with_page, |interval| {
            for report in &mut reports {
                if let Body::Rows { csv, error: error @ None } = &mut report.body {
                    *error = csv.add(interval).err();
                }
            }
        });
        let (content, result) = read.map_err(|error| fail(error.to_string()))?;
        for report in reports {
            report.finish(&content, &result, self)?;
        }
        let warnings = content.warnings().to_vec();
        let outcome = check_text(&result.summary, &result.judgements);
        Ok(RunReading { exit: result.exit(), warnings, outcome })
    }
}
