//! A scenario that an importer has put together, and how it is written.

use crate::data_file::DataFile;
use crate::fidelity::{Fidelity, FidelityReport};
use crate::names::{NameSet, in_letters};
use crate::source::Source;
use crate::tls::TlsDraft;
use crate::yaml::{Yaml, write_comments, write_entry, write_list};

/// A scenario in the making. Its parts are values of YAML, in the words of `docs/scenario.md`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    /// Comments of the source about the whole file.
    pub(crate) comments: Vec<String>,
    /// `scheme://host:port/path`.
    pub(crate) target: String,
    /// How its connections are secured, unless it is plain.
    pub(crate) tls: TlsDraft,
    /// Values with names, which the rest has as `$(name)`.
    pub(crate) params: Option<Yaml>,
    /// Data files, by the names that variables have for them.
    pub(crate) data: Vec<(String, DataFile)>,
    /// Steps that one user takes before the load.
    pub(crate) setup: Vec<Yaml>,
    /// Phases of the load.
    pub(crate) load: Vec<Yaml>,
    /// Rates that users keep to.
    pub(crate) limits: Option<Yaml>,
    /// Classes of users: at least one.
    pub(crate) classes: Vec<DraftClass>,
    /// Steps that one user takes after the load.
    pub(crate) teardown: Vec<Yaml>,
    /// Thresholds of the run.
    pub(crate) thresholds: Vec<String>,
}

/// A class of users.
#[derive(Clone, Debug)]
pub(crate) struct DraftClass {
    /// Its name in the source; [`Draft::write`] makes it one that a scenario may have.
    pub(crate) name: String,
    /// Share of the users, relative to the other classes.
    pub(crate) weight: u32,
    /// Steps of each user.
    pub(crate) steps: Vec<Yaml>,
    /// What a user does after an error, unless it is what the load's model has by default.
    pub(crate) on_error: Option<&'static str>,
}

impl Draft {
    /// Returns the value of `data`: the one file that has no name, or all by their names.
    fn write_data(&self) -> Option<Yaml> {
        match &self.data[..] {
            [] => None,
            [(name, file)] if name == ROW => Some(file.write()),
            files => Some(Yaml::map(files.iter().map(|(name, file)| (&**name, file.write())))),
        }
    }

    /// Returns the comments above the scenario. They say what it lacks by the report.
    pub(crate) fn head(&self, source: &Source<'_>, report: &FidelityReport) -> String {
        let mut out = String::new();
        let file = source.name.rsplit('/').next().unwrap_or_default();
        write_comments(&[format!("Imported from {file} ({}).", report.tool)], 0, &mut out);
        write_comments(&not_supported(report), 0, &mut out);
        write_comments(&self.comments, 0, &mut out);
        out
    }

    /// Returns the scenario in YAML.
    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        write_entry("target", &Yaml::text(&*self.target), 0, &mut out);
        if let Some(tls) = self.tls.write() {
            write_entry("tls", &tls, 0, &mut out);
        }
        if let Some(params) = &self.params {
            write_entry("params", params, 0, &mut out);
        }
        if let Some(data) = self.write_data() {
            write_entry("data", &data, 0, &mut out);
        }
        write_steps("setup", &self.setup, &mut out);
        out.push_str("load:\n");
        write_list(&self.load, 2, &mut out);
        if let Some(limits) = &self.limits {
            write_entry("limits", limits, 0, &mut out);
        }
        self.write_classes(&mut out);
        write_steps("teardown", &self.teardown, &mut out);
        if !self.thresholds.is_empty() {
            out.push_str("thresholds:\n");
            let thresholds: Vec<_> = self.thresholds.iter().map(|one| Yaml::text(&**one)).collect();
            write_list(&thresholds, 2, &mut out);
        }
        out
    }

    fn write_classes(&self, out: &mut String) {
        if let [class] = &*self.classes {
            class.write_steps(0, out);
            return;
        }
        out.push_str("users:\n");
        let mut names = NameSet::default();
        for class in &self.classes {
            let name = in_letters(&class.name, "session_", CLASS_NAME_CHARS_MAX);
            let name = names.add(&name);
            out.push_str(&format!("  {name}:\n"));
            write_entry("weight", &Yaml::plain(class.weight), 4, out);
            class.write_steps(4, out);
        }
    }
}

/// Returns comments about what the scenario lacks: one for each construct.
fn not_supported(report: &FidelityReport) -> Vec<String> {
    let lacking: Vec<_> = report.of(Fidelity::NotSupported).collect();
    if lacking.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["Not supported, and left out:".to_owned()];
    let shown = lacking.iter().take(LACKING_SHOWN_MAX);
    lines.extend(shown.map(|entry| format!("  line {}, {}", entry.line, entry.construct)));
    let rest = lacking.len().saturating_sub(LACKING_SHOWN_MAX);
    if rest > 0 {
        lines.push(format!("  and {rest} more: see the report of `throng import`"));
    }
    lines
}

/// Writes steps that one user takes, if there are some.
fn write_steps(key: &str, steps: &[Yaml], out: &mut String) {
    if !steps.is_empty() {
        out.push_str(&format!("{key}:\n"));
        write_list(steps, 2, out);
    }
}

impl DraftClass {
    fn write_steps(&self, indent: usize, out: &mut String) {
        out.push_str(&format!("{:indent$}user:\n", ""));
        write_list(&self.steps, indent + 2, out);
        if let Some(on_error) = self.on_error {
            write_entry("on_error", &Yaml::text(on_error), indent, out);
        }
    }
}

/// What variables call the rows of a data file that has no name.
pub(crate) const ROW: &str = "row";

/// Most constructs that the head of a scenario lists as not supported.
const LACKING_SHOWN_MAX: usize = 20;

/// The longest name of a class that an import writes.
const CLASS_NAME_CHARS_MAX: usize = 40;
