//! The scenario language: which target to load, with how many users when, and what each user does.
//!
//! The reader reads the whole text and reports all mistakes at once, each with its line, a caret
//! and a suggestion. The result is plain data that the command line may still change before it is
//! compiled into a [`Program`](crate::program::Program). `docs/scenario.md` is the reference of the
//! language.

mod barrier_users;
mod client_files;
pub(crate) mod condition;
mod credentials;
pub(crate) mod cue_names;
pub(crate) mod cue_use;
mod data;
mod diagnostics;
mod escape;
pub(crate) mod expanded_size;
mod expression;
pub(crate) mod flow;
pub(crate) mod foreign_variable;
mod function;
mod header;
pub(crate) mod inputs;
pub(crate) mod json;
mod limits;
mod load;
mod meant;
mod measured;
pub(crate) mod node;
mod on_error;
mod on_message;
mod params;
mod probe;
mod protocol;
mod quantity;
mod reach;
pub(crate) mod reader;
mod setup;
pub(crate) mod step;
pub(crate) mod step_list;
pub(crate) mod step_name;
mod target;
mod template;
mod template_error;
mod tls;
mod value_bytes;
pub(crate) mod values;
mod variable;
mod variable_names;
mod variable_parser;
mod yaml_error;
mod yaml_number;

pub use crate::protocols::{Protocol, Scheme};
pub(crate) use client_files::{ClientFiles, ClientPaths};
pub use credentials::Credentials;
pub use data::{DataFileError, DataTable, RowOrder};
pub(crate) use data::{is_name, is_reserved};
pub use diagnostics::{Diagnostic, Diagnostics};
pub use escape::Escape;
pub use expression::{EXPRESSION_BYTES_MAX, ExpressionError, Scope, evaluate};
pub use header::{HeaderPlace, is_token};
pub use inputs::{CarriedFile, CarriedInputs, ScenarioInputs};
pub(crate) use load::read_curve;
pub use load::{
    ClassLoad, Curve, LoadPeak, LoadPiece, Model, Phase, ScenarioLoad, Spacing, peak_arrivals,
    peak_users,
};
pub use node::{Kind as YamlKind, Node as YamlNode};
pub use on_error::OnError;
pub use on_message::MessageRule;
pub use params::{Params, read_params, with_params};
pub use probe::{Broadcast, PROBE_TIMEOUT_DEFAULT, Probe};
pub use quantity::Quantity;
pub use reach::{Reach, needs_no_permission};
pub use setup::{Setup, Teardown};
pub use step::Step;
pub(crate) use step::compile_steps;
pub use target::{Target, TargetError};
pub use template::{Segment, Template};
pub use template_error::TemplateError;
pub use tls::{TlsSettings, cipher_named};
pub(crate) use variable::STORED_BYTES_MAX;
pub use variable::{Variable, VariableScope};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use throng_report::Threshold;

use crate::program::{Cue, RateLimit, SentPart};
use crate::steps::of_user;
use measured::MeasuredWork;
use node::{Kind, Node};
use reader::{Fields, Reader, WHOLE};
use step::StepMeasure;
use throng_measure::Operation;

/// A valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Target to connect to.
    pub target: Target,
    /// Protocol of the connections.
    pub protocol: Protocol,
    /// How its connections are secured, if the target is over TLS.
    pub tls: TlsSettings,
    /// Load of all users, or of each class.
    pub load: ScenarioLoad,
    /// Classes of users; at least one.
    pub classes: Vec<Class>,
    /// Steps that one user takes before the load begins.
    pub setup: Option<Setup>,
    /// Steps that one user takes after the load.
    pub teardown: Option<Teardown>,
    /// Probe that is sent to all subscribers at regular intervals.
    pub probe: Option<Probe>,
    /// Thresholds that the run must meet.
    pub thresholds: Vec<Threshold>,
    /// Data files, whose rows the users get.
    pub tables: Vec<DataTable>,
    /// Files that it reads beside its own text.
    pub files: Vec<PathBuf>,
    /// Environment variables that it uses, with their values.
    pub environment: BTreeMap<String, String>,
    /// Texts that no report and no trace shows: values of the environment, in each form that a
    /// step gives them. The target has its own.
    pub secrets: Vec<String>,
    /// Barriers and signals, by which users wait for one another.
    pub(crate) cues: Vec<Cue>,
    /// What its runs measure.
    pub(crate) measured: MeasuredWork,
    /// Rates that users keep to.
    pub(crate) limits: Vec<RateLimit>,
    /// Bytes that the users of a core may hold of what the target sent, if it says so.
    pub(crate) held_bytes_max: Option<u64>,
    /// Parts of a sent message that its user keeps.
    pub(crate) sent_parts: Vec<SentPart>,
}

/// A class of users, all with the same steps.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its key under `users`, or `user`.
    pub name: String,
    /// Share of the users in this class, relative to the other classes; at least 1.
    pub weight: u32,
    /// Steps of each user.
    pub steps: Vec<Step>,
    /// Policy after an error.
    pub on_error: OnError,
    /// What each user does when certain messages come, whatever step it is in.
    pub on_message: Vec<MessageRule>,
}

impl Scenario {
    /// JSON Schema (draft 7) of scenarios, for editors. It knows the keys and the forms of values;
    /// [`parse`](Self::parse) knows the rest.
    pub const SCHEMA: &str = include_str!("../schema/scenario.json");

    /// Parses the YAML text `source`. Diagnostics refer to it as `name`, its path; the paths of its
    /// data files count from the folder of `name`.
    pub fn parse(source: &str, name: &str) -> Result<Self, Diagnostics> {
        Self::parse_with_peak(source, name, None)
    }

    /// Parses the YAML text `source` as [`parse`](Self::parse) does, and gives its load another
    /// peak.
    pub fn parse_with_peak(
        source: &str,
        name: &str,
        peak: Option<LoadPeak>,
    ) -> Result<Self, Diagnostics> {
        Self::parse_from(source, name, peak, ScenarioInputs::Own)
    }

    /// Parses the text as [`parse_with_peak`](Self::parse_with_peak) does, with files and variables
    /// from `inputs`.
    pub fn parse_from(
        source: &str,
        name: &str,
        peak: Option<LoadPeak>,
        inputs: ScenarioInputs,
    ) -> Result<Self, Diagnostics> {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        parse_with(source, name, |reader, root| {
            reader.names.inputs = inputs.clone();
            reader.inputs = inputs;
            read(reader, root, folder, peak)
        })
    }

    /// Reports whether there is a `teardown`, and all values that it uses are stored.
    pub(crate) fn can_tear_down(&self) -> bool {
        self.teardown.as_ref().is_some_and(|teardown| teardown.has_values(&self.tables))
    }

    /// Checks that a run of the scenario measures what `threshold` compares. The span of the
    /// mistake is that in the text of the threshold.
    pub fn check_threshold(&self, threshold: &Threshold) -> Result<(), Diagnostic> {
        self.measured.check(threshold)?;
        let Some(class) = threshold.class() else { return Ok(()) };
        if self.thresholds.iter().any(|own| own.class() == Some(class)) {
            return Ok(());
        }
        let title = format!("invalid threshold: no run measures what the class `{class}` does");
        let label = "a run measures the classes of the scenario's `thresholds`: add this one there";
        Err(Diagnostic::new(0..threshold.name().len(), title, label))
    }

    /// Gives all users the values that the user of `setup` has stored.
    pub(crate) fn fill_setup(&mut self, stored: &[Vec<u8>]) {
        if let Some(setup) = &self.setup {
            setup.fill(&mut self.tables, stored);
        }
    }

    /// Parses only the thresholds of the YAML text `source`. It needs neither its data files nor
    /// its environment.
    pub fn parse_thresholds(source: &str, name: &str) -> Result<Vec<Threshold>, Diagnostics> {
        parse_with(source, name, |reader, root| {
            let Kind::Map(entries) = &root.kind else { return Some(Vec::new()) };
            let node = entries.iter().find(|(key, _)| key.scalar() == Some("thresholds"));
            node.map_or(Some(Vec::new()), |(_, node)| read_thresholds(reader, node))
        })
    }
}

fn parse_with<T>(
    source: &str,
    name: &str,
    read: impl FnOnce(&mut Reader<'_>, &Node) -> Option<T>,
) -> Result<T, Diagnostics> {
    let mut reader = Reader::new(source);
    let parsed = match Node::parse(source) {
        Ok(mut root) => {
            params::substitute(&mut reader, &mut root);
            // A value that is missing makes no other mistakes.
            if reader.mistakes.is_empty() { read(&mut reader, &root) } else { None }
        }
        Err(mistake) => {
            reader.mistakes.push(mistake);
            None
        }
    };
    match parsed {
        Some(parsed) if reader.mistakes.is_empty() => Ok(parsed),
        _ => Err(Diagnostics::new(name, source, reader.mistakes)),
    }
}

fn read(
    reader: &mut Reader<'_>,
    root: &Node,
    folder: &Path,
    peak: Option<LoadPeak>,
) -> Option<Scenario> {
    if matches!(root.kind, Kind::Nothing) {
        reader.error(0..0, "the scenario is empty", "`target`, `load` and `user` belong here");
        return None;
    }
    let fields = reader.fields(root, WHOLE, &KEYS)?;
    let target = reader.require(&fields, "target", WHOLE, "target: tcp://127.0.0.1:5555");
    let scheme = target.and_then(Node::scalar).and_then(target::scheme_of);
    let target = target.and_then(|node| read_target(reader, node));
    let protocol = match (scheme, fields.get("user")) {
        (None, Some(steps)) => protocol::of_steps(steps),
        _ => scheme.map_or(Protocol::default(), Protocol::of),
    };
    let protocol = protocol::read(reader, fields.get("protocol"), target.as_ref(), protocol);
    reader.protocol = protocol;
    let data =
        reader.value_or(&fields, "data", (), |reader, node| data::read(reader, node, folder));
    // Its files may depend on the rows of users.
    let tls = tls::read(reader, &fields, folder, target.as_ref());
    let load = load::read(reader, &fields, folder, peak);
    let limits = fields.get("limits");
    let limits = limits.map_or(Some(Default::default()), |node| limits::read(reader, node));
    let setup =
        reader.optional(&fields, "setup", |reader, node| setup::read_setup(reader, node, of_user));
    let classes = read_user(reader, &fields);
    let cues = cue_names::check(reader);
    let names = reader.step_names.iter().map(str::to_owned).collect();
    let has_probe = fields.get("probe").is_some();
    let has_others = reader.leaves_out || classes.is_none();
    let of_users = classes.iter().flatten().map(|class| class.name.clone()).collect();
    let (kinds, steps) = (reader.step_kinds.clone(), measured_steps());
    let measured = MeasuredWork::of(names, of_users, kinds, steps, has_probe, has_others);
    reader.measured = Some(measured);
    let thresholds = reader.value_or(&fields, "thresholds", Vec::new(), read_thresholds);
    // It uses the values that the steps store, and a topic that they join.
    let probe = reader.optional(&fields, "probe", |reader, node| {
        reader.names.begin_probe();
        probe::read(reader, node, classes.is_some())
    });
    let teardown = reader
        .optional(&fields, "teardown", |reader, node| setup::read_teardown(reader, node, of_user));
    let load = load?;
    check_users(reader, &fields, tls.as_ref(), &load);
    data?;
    let stored = reader.names.stored().iter().enumerate();
    let sent_parts: Vec<_> =
        stored.filter_map(|(slot, name)| SentPart::of_variable(name, slot as u16)).collect();
    let probe = probe?;
    check_until_done(reader, &fields, &load)?;
    let (limits, held_bytes_max) = limits?;
    let mut scenario = Scenario {
        target: target?,
        protocol,
        tls: tls?,
        load,
        classes: classes?,
        setup: setup?,
        teardown: teardown?,
        probe,
        thresholds: thresholds?,
        cues: cues?,
        measured: reader.measured.take().unwrap_or_default(),
        limits,
        held_bytes_max,
        sent_parts,
        tables: std::mem::take(&mut reader.names.tables),
        files: std::mem::take(&mut reader.files),
        environment: std::mem::take(&mut reader.names.environment),
        secrets: std::mem::take(&mut reader.names.secrets),
    };
    barrier_users::set(reader, &mut scenario);
    limits::check_steps(reader, &scenario);
    Some(scenario)
}

/// Checks what the users of the load have: rows, and certificates.
fn check_users(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    tls: Option<&TlsSettings>,
    load: &ScenarioLoad,
) {
    if let Some(node) = fields.get("data") {
        data::check_rows(reader, node, load);
    }
    if let Some(files) = tls.and_then(|tls| tls.client.as_ref()) {
        client_files::check(reader, files, load);
    }
}

/// Reads `user`, or the classes of `users`.
fn read_user(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Vec<Class>> {
    let on_error = fields.get("on_error");
    match (fields.get("user"), fields.get("users")) {
        (Some(user), None) => {
            let list = step_list::read(reader, user, "`user`", of_user);
            let on_error =
                on_error.map_or(Some(OnError::default()), |node| on_error::read(reader, node));
            let on_message = on_message::read(reader, fields.get("on_message"));
            let name = "user".to_owned();
            list.zip(on_error).zip(on_message).map(|((list, on_error), on_message)| {
                vec![Class { name, weight: 1, steps: list.steps, on_error, on_message }]
            })
        }
        (None, Some(users)) => {
            for key in ["on_error", "on_message"].into_iter().filter(|key| fields.has(key)) {
                let title = format!("`{key}` belongs in each class of `users`");
                reader.error(fields.key_span(key), title, "move it there");
            }
            read_classes(reader, users)
        }
        (Some(_), Some(_)) => {
            let span = fields.key_span("users");
            let title = "a scenario has either `user` or `users`";
            reader.error(span, title, "this is the second one").help = Some(
                "`user` is one class of users; `users` is a mapping of named classes".to_owned(),
            );
            None
        }
        (None, None) => {
            reader.require(fields, "user", WHOLE, "user: [connect, wait: 1s, close]");
            None
        }
    }
}

/// Refuses a load that waits for its users beside a probe, which goes on without them.
fn check_until_done(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    load: &ScenarioLoad,
) -> Option<()> {
    let node = fields.get("load").or(fields.get("users"));
    if let (Some(_), Some(node), Some(_)) = (fields.get("probe"), node, load.ends_with_users_from())
    {
        let title = "a load with a `probe` does not end with its users";
        reader.error(reader.first_line(&node.span), title, "leave out `until: done`");
        return None;
    }
    Some(())
}

fn read_target(reader: &mut Reader<'_>, node: &Node) -> Option<Target> {
    let expected = "a URL such as tcp://127.0.0.1:5555 or ws://127.0.0.1:4000/socket/websocket";
    let text = reader.text(node, "`target`", expected)?;
    let read = Target::parse(text);
    if let Err(error) = &read {
        let span = reader.inner_span(node, error.span.clone());
        reader.error(span, format!("`target` must be {expected}"), &*error.problem);
    }
    read.ok()
}

fn read_classes(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Class>> {
    let Kind::Map(entries) = &node.kind else {
        let expected = "a mapping of classes such as `chat: {weight: 2, user: [connect, stay]}`";
        reader.wrong_kind(node, "`users`", &format!("{expected}, or `user` a list of steps"));
        return None;
    };
    if entries.is_empty() {
        reader.error(node.span.clone(), "`users` has no class", "add at least one");
    }
    let classes: Vec<_> =
        entries.iter().map(|(name, class)| read_class(reader, name, class)).collect();
    classes.into_iter().collect()
}

fn read_class(reader: &mut Reader<'_>, name: &Node, node: &Node) -> Option<Class> {
    let name = reader.text(name, "the key of a class", "a name")?.to_owned();
    let what = format!("the class `{name}`");
    let fields = reader.fields(node, &what, &CLASS_KEYS)?;
    let weight = reader.value_or(&fields, "weight", 1, read_weight);
    let on_error = reader.value_or(&fields, "on_error", OnError::default(), on_error::read);
    let steps = reader.require(&fields, "user", &what, "user: [connect, wait: 1s, close]");
    reader.names.begin_class();
    reader.cues.begin_class();
    let list = steps.and_then(|node| step_list::read(reader, node, "`user`", of_user));
    let on_message = on_message::read(reader, fields.get("on_message"))?;
    Some(Class { name, weight: weight?, steps: list?.steps, on_error: on_error?, on_message })
}

fn read_weight(reader: &mut Reader<'_>, node: &Node) -> Option<u32> {
    let weight = reader.quantity(node, "`weight`", throng_base::units::parse_count)?;
    match u32::try_from(weight) {
        Ok(1..=WEIGHT_MAX) => return Some(weight as u32),
        Ok(0) => reader.error(node.span.clone(), "a class of weight 0 has no users", "at least 1"),
        _ => reader.error(
            node.span.clone(),
            "`weight` is too large",
            format!("at most {WEIGHT_MAX}"),
        ),
    };
    None
}

fn read_thresholds(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Threshold>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`thresholds`", "a list such as `- connect.p99 < 100ms`");
        return None;
    };
    let thresholds: Vec<_> = items.iter().map(|item| read_threshold(reader, item)).collect();
    thresholds.into_iter().collect()
}

fn read_threshold(reader: &mut Reader<'_>, node: &Node) -> Option<Threshold> {
    let text = reader.text(node, "a threshold", "a comparison such as connect.p99 < 100ms")?;
    let read = text.parse::<Threshold>();
    match &read {
        Ok(threshold) => {
            let checked = reader.measured.as_ref().map(|known| known.check(threshold));
            if let Some(Err(mistake)) = checked {
                let text = node.scalar().unwrap_or_default();
                let from = text.len() - text.trim_start().len();
                let inner = from + mistake.span.start..from + mistake.span.end;
                let span = reader.inner_span(node, inner);
                reader.mistakes.push(Diagnostic { span, ..mistake });
            }
        }
        Err(error) => {
            let span = reader.inner_span(node, error.span.clone());
            let title = format!("invalid threshold: {}", error.problem);
            reader.error(span, title, error.hint());
        }
    }
    read.ok()
}

const KEYS: [&str; 16] = [
    "target",
    "protocol",
    "tls",
    "data",
    "load",
    "limits",
    "setup",
    "user",
    "users",
    "on_error",
    "on_message",
    "teardown",
    "probe",
    "thresholds",
    "params",
    "lab",
];

/// The `load` of a class is read with those of the others.
const CLASS_KEYS: [&str; 5] = ["weight", "load", "user", "on_error", "on_message"];

/// Keeps the sum of the weights below 2^32 for up to four thousand classes.
const WEIGHT_MAX: u32 = 1_000_000;

/// Returns the steps of all protocols whose time is measured as an operation.
fn measured_steps() -> Vec<(&'static str, Operation)> {
    let all = Protocol::ALL.iter().flat_map(|protocol| of_user(*protocol)).copied().flatten();
    let measured = all.filter_map(|kind| match kind.measured {
        StepMeasure::As(operation) => Some((kind.name, operation)),
        StepMeasure::No | StepMeasure::ByName => None,
    });
    measured.collect()
}

#[cfg(test)]
mod tests;
