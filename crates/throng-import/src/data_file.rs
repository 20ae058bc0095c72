//! A data file of a scenario, whose rows give users their values.

use crate::yaml::Yaml;

/// A data file in CSV.
#[derive(Clone, Debug)]
pub(crate) struct DataFile {
    /// Its path, from the folder of the imported file.
    pub(crate) path: String,
    /// Names of its columns; empty if its first line has them.
    pub(crate) columns: Vec<String>,
    /// The character between two values.
    pub(crate) delimiter: String,
    /// True if a user gets a row at random, and not the next one.
    pub(crate) is_random: bool,
}

impl DataFile {
    /// Returns what `data` says about it.
    pub(crate) fn write(&self) -> Yaml {
        let mut entries = vec![("file", Yaml::text(&*self.path))];
        if !self.columns.is_empty() {
            entries.push(("columns", Yaml::list(self.columns.iter().map(Yaml::text))));
        }
        // Without columns, it is the end of its name that says what the file is.
        let is_csv = self.path.to_ascii_lowercase().ends_with(".csv");
        let is_told = self.delimiter != "," || (self.columns.is_empty() && !is_csv);
        if is_told {
            entries.push(("delimiter", Yaml::text(&*self.delimiter)));
        }
        if self.is_random {
            entries.push(("order", Yaml::text("random")));
        }
        if entries.len() == 1 { entries.remove(0).1 } else { Yaml::map(entries) }
    }
}

/// Reports whether a text can stand between two values.
pub(crate) fn is_delimiter(text: &str) -> bool {
    matches!(text.as_bytes(), [b' '..=b'~' | b'\t']) && text != "\""
}
