//! The formats in which a run can be shown: one table.

use std::fmt;
use std::path::Path;

/// A format in which a run can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for a terminal.
    Text,
    /// A page with charts, one file.
    Html,
    /// The summary, as `--json` writes it.
    Json,
    /// A row for each interval and metric.
    Csv,
    /// Text for a pull request.
    Markdown,
    /// A test suite for a CI server.
    Junit,
    /// The summary of a step of GitHub Actions.
    Github,
    /// Annotations of GitHub Actions, beside the scenario's lines.
    Annotations,
    /// GitLab's code quality report.
    CodeQuality,
}

/// A format, its name, and the extensions of its files.
type Row = (ReportFormat, &'static str, &'static [&'static str]);

const FORMATS: &[Row] = &[
    (ReportFormat::Text, "text", &["txt"]),
    (ReportFormat::Html, "html", &["html", "htm"]),
    (ReportFormat::Json, "json", &["json"]),
    (ReportFormat::Csv, "csv", &["csv"]),
    (ReportFormat::Markdown, "markdown", &["md", "markdown"]),
    (ReportFormat::Junit, "junit", &["xml"]),
    (ReportFormat::Github, "github", &[]),
    (ReportFormat::Annotations, "annotations", &[]),
    (ReportFormat::CodeQuality, "codequality", &[]),
];

impl ReportFormat {
    /// Returns the format of a name, `markdown`.
    ///
    /// # Errors
    /// There is none of that name; the text lists all names.
    pub fn named(name: &str) -> Result<Self, String> {
        let row = FORMATS.iter().find(|(_, known, _)| *known == name);
        row.map(|(format, ..)| *format).ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|(_, name, _)| *name).collect();
            format!("it is none of {}", names.join(", "))
        })
    }

    /// Reports whether a report of this format has the warnings about its run file.
    pub fn shows_warnings(self) -> bool {
        !matches!(self, Self::Json | Self::Csv | Self::Annotations | Self::CodeQuality)
    }

    /// Returns the format that a file's extension stands for.
    ///
    /// # Errors
    /// It stands for none; the text lists all extensions.
    pub fn of_path(path: &Path) -> Result<Self, String> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let row = FORMATS.iter().find(|(.., known)| known.contains(&extension.as_str()));
        row.map(|(format, ..)| *format).ok_or_else(|| {
            let known: Vec<_> = FORMATS.iter().flat_map(|(.., known)| *known).collect();
            let known: Vec<_> = known.iter().map(|known| format!(".{known}")).collect();
            format!("its extension stands for no format; use one of {}", known.join(", "))
        })
    }
}

impl fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = FORMATS.iter().find(|(format, ..)| format == self);
        f.write_str(row.map_or("", |(_, name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_stands_for_a_format() {
        let of = |path: &str| ReportFormat::of_path(Path::new(path));
        assert_eq!(of("a/report.HTML"), Ok(ReportFormat::Html));
        assert_eq!(of("tests.xml"), Ok(ReportFormat::Junit));
        assert_eq!(of("pr.md"), Ok(ReportFormat::Markdown));
        for unknown in ["report", "report.pdf", "run.jsonl", ".csv"] {
            let error = of(unknown).unwrap_err();
            assert!(error.contains(".html, .htm, .json, .csv, .md"), "{error}");
        }
    }

    #[test]
    fn a_format_has_the_name_that_it_is_known_by() {
        for (format, name, _) in FORMATS {
            assert_eq!(
                (ReportFormat::named(name), format.to_string()),
                (Ok(*format), (*name).into())
            );
        }
        assert!(ReportFormat::named("pdf").unwrap_err().contains("text, html, json"));
    }
}
