//! Reading a tree of nodes key by key, collecting all mistakes.
//!
//! A function that reads something returns `None` after it has reported a mistake. Its caller
//! continues with the next thing, so that one run shows all mistakes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use throng_base::units::{Problem, UnitError};

use super::cue_use::CueUses;
use super::expanded_size::ExpandedSize;
use super::inputs::ScenarioInputs;
use super::measured::MeasuredWork;
use super::node::{Kind, Node};
use super::step_name::{self, StepNames};
use super::template::{PieceReader, Template};
use super::template_error::TemplateError;
use super::variable_names::VariableNames;
use super::{Diagnostic, Protocol, meant};
use crate::program::LimitedAction;

/// The source and the mistakes found so far.
pub(crate) struct Reader<'s> {
    source: &'s str,
    /// Offset of each line in the source.
    lines: Vec<usize>,
    pub(crate) mistakes: Vec<Diagnostic>,
    /// Protocol of the scenario, which decides the valid steps and their keys.
    pub(crate) protocol: Protocol,
    /// The place that files are read from.
    pub(super) inputs: ScenarioInputs,
    /// Files that the scenario reads.
    pub(super) files: Vec<PathBuf>,
    /// Topics that the users of any class join.
    pub(crate) joined: Vec<Template>,
    /// Names of steps so far.
    pub(super) step_names: StepNames,
    /// Kinds of steps so far.
    pub(super) step_kinds: BTreeSet<&'static str>,
    /// Names of barriers and cues so far.
    pub(super) cues: CueUses,
    /// What a run measures. `None` if only a part of the scenario is read: a threshold may be about
    /// any step.
    pub(super) measured: Option<MeasuredWork>,
    /// Places of the limits, in the order of their indexes.
    pub(super) limit_spans: Vec<Range<usize>>,
    /// What the steps so far do that a limit may count.
    pub(super) limited_actions: Vec<LimitedAction>,
    /// Key of the list of steps that is read, if one user takes them once.
    pub(super) solo_key: Option<&'static str>,
    /// Size of the steps so far.
    pub(super) size: ExpandedSize,
    /// True if a `when` leaves out a step, a class or a phase.
    pub(super) leaves_out: bool,
    /// Kind of the step that is read, if such steps may have a name; and the name.
    named: Option<(&'static str, Option<String>)>,
    /// Names that variables may use here.
    pub(crate) names: VariableNames,
    /// Mappings that were read, each with its known keys.
    #[cfg(test)]
    pub(super) mappings: std::collections::BTreeMap<String, std::collections::BTreeSet<String>>,
}

/// Entries of a mapping whose keys are all known.
pub(crate) struct Fields<'n> {
    /// Span of the whole mapping.
    pub(crate) span: Range<usize>,
    entries: Vec<(&'n str, &'n Node, &'n Node)>,
    /// Keys suggested for unknown ones. They are not reported as missing, too.
    suggested: Vec<String>,
}

impl<'n> Fields<'n> {
    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(name, ..)| *name == key).map(|(.., value)| *value)
    }

    /// Reports whether the mapping has `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the span of `key` itself.
    pub(crate) fn key_span(&self, key: &str) -> Range<usize> {
        let entry = self.entries.iter().find(|(name, ..)| *name == key);
        entry.map_or(self.span.clone(), |(_, key, _)| key.span.clone())
    }
}

impl<'s> Reader<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        let breaks = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self {
            source,
            lines,
            mistakes: Vec::new(),
            protocol: Protocol::default(),
            inputs: ScenarioInputs::default(),
            files: Vec::new(),
            joined: Vec::new(),
            step_names: StepNames::default(),
            step_kinds: BTreeSet::new(),
            cues: CueUses::default(),
            measured: None,
            limit_spans: Vec::new(),
            limited_actions: Vec::new(),
            size: ExpandedSize::default(),
            leaves_out: false,
            solo_key: None,
            named: None,
            names: VariableNames::default(),
            #[cfg(test)]
            mappings: Default::default(),
        }
    }

    /// Begins to read a step of this kind: if such steps may have a name, its fields have a key
    /// `name`, which its reader does not see.
    pub(super) fn begin_step(&mut self, kind: &'static str, may_be_named: bool) {
        self.step_kinds.insert(kind);
        self.named = may_be_named.then_some((kind, None));
    }

    /// Reports whether the step that is read has a name.
    pub(crate) fn has_named_step(&self) -> bool {
        self.named.as_ref().is_some_and(|(_, name)| name.is_some())
    }

    /// Returns the name of the step that was read.
    pub(super) fn end_step(&mut self) -> Option<String> {
        self.named.take()?.1
    }

    /// Reports a mistake.
    pub(crate) fn error(
        &mut self,
        span: Range<usize>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> &mut Diagnostic {
        self.mistakes.push(Diagnostic::new(span, title, label));
        self.last()
    }

    /// Returns the mistake that was reported last.
    fn last(&mut self) -> &mut Diagnostic {
        self.mistakes.last_mut().expect("one was just pushed")
    }

    /// Reads the mapping `node`, whose keys must be among `known`. Reports an unknown key and
    /// continues with the others.
    pub(crate) fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        known: &[&str],
    ) -> Option<Fields<'n>> {
        let Kind::Map(pairs) = &node.kind else {
            self.wrong_kind(node, what, &format!("a mapping with {}", list_of(known)));
            return None;
        };
        if self.has_object_of_json(node, what, known, pairs) {
            return None;
        }
        let (mut entries, mut suggested) = (Vec::new(), Vec::new());
        let of_step = self.named.as_ref().map(|(kind, _)| *kind);
        let of_step = of_step.filter(|kind| what == format!("`{kind}`"));
        let known: Vec<&str> = known.iter().copied().chain(of_step.map(|_| NAME)).collect();
        let known = known.as_slice();
        #[cfg(test)]
        {
            let keys = self.mappings.entry(what.to_owned()).or_default();
            keys.extend(known.iter().map(|key| (*key).to_owned()));
        }
        for (key, value) in pairs {
            if let (Some(NAME), Some(kind)) = (key.scalar(), of_step) {
                self.named = Some((kind, step_name::read(self, value, kind)));
                continue;
            }
            match key.scalar() {
                Some(name) if known.contains(&name) => entries.push((name, key, value)),
                Some(name) => {
                    self.unknown(key.span.clone(), &format!("key `{name}` in {what}"), name, known);
                    if let (WHOLE, Some(place)) = (what, meant::place(name)) {
                        self.last().label = place.to_owned();
                    }
                    suggested.extend(meant::key(name, known).map(str::to_owned));
                }
                None => {
                    self.error(
                        key.span.clone(),
                        format!("a key of {what} must be a name"),
                        "this is not a name",
                    );
                }
            }
        }
        Some(Fields { span: node.span.clone(), entries, suggested })
    }

    /// Reports an object as JSON has it, with quotes around its keys, where a mapping with the key
    /// `json` is expected.
    fn has_object_of_json(
        &mut self,
        node: &Node,
        what: &str,
        known: &[&str],
        pairs: &[(Node, Node)],
    ) -> bool {
        let is_member = |(key, _): &(Node, Node)| {
            let name = key.scalar().unwrap_or_default();
            !self.is_plain(&key.span) && !known.contains(&name)
        };
        let is_object = known.contains(&"json") && !pairs.is_empty() && pairs.iter().all(is_member);
        if is_object {
            let span = self.first_line(&node.span);
            let label = "put this object under `json`";
            self.error(span, format!("{what} has none of its keys"), label).help =
                Some("for example `{json: {a: 1}}`".to_owned());
        }
        is_object
    }

    /// Reports a name that is not among `known`.
    pub(crate) fn unknown(&mut self, span: Range<usize>, thing: &str, name: &str, known: &[&str]) {
        let label = match meant::key(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "not known here".to_owned(),
        };
        self.error(span, format!("unknown {thing}"), label).help =
            Some(format!("expected one of: {}", list_of(known)));
    }

    /// Returns the value of `key`. Reports a mistake if it is missing.
    pub(crate) fn require<'n>(
        &mut self,
        fields: &Fields<'n>,
        key: &str,
        what: &str,
        example: &str,
    ) -> Option<&'n Node> {
        let value = fields.get(key);
        if value.is_none() && !fields.suggested.iter().any(|meant| meant == key) {
            let span = self.first_line(&fields.span);
            self.error(
                span,
                format!("{what} has no `{key}`"),
                format!("`{key}` is missing, for example `{example}`"),
            );
        }
        value
    }

    /// Reads the value of `key`; `default` if it is missing.
    pub(crate) fn value_or<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        default: T,
        read: impl FnOnce(&mut Self, &Node) -> Option<T>,
    ) -> Option<T> {
        fields.get(key).map_or(Some(default), |node| read(self, node))
    }

    /// Reads the value of `key`, which may be missing.
    pub(crate) fn optional<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        read: impl FnOnce(&mut Self, &Node) -> Option<T>,
    ) -> Option<Option<T>> {
        self.value_or(fields, key, None, |reader, node| read(reader, node).map(Some))
    }

    /// Reports a node whose kind differs from `expected`.
    pub(crate) fn wrong_kind(&mut self, node: &Node, what: &str, expected: &str) {
        let span = self.first_line(&node.span);
        self.error(
            span,
            format!("{what} must be {expected}"),
            format!("found {}", node.describe()),
        );
    }

    /// Reads the text of a scalar.
    pub(crate) fn text<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        expected: &str,
    ) -> Option<&'n str> {
        let text = node.scalar();
        if text.is_none() {
            self.wrong_kind(node, what, expected);
        }
        text
    }

    /// Parses `text`, a part of the scalar `node`, as a template.
    pub(crate) fn template(&mut self, node: &Node, text: &str) -> Option<Template> {
        let parsed = Template::parse_with(text, &mut self.names);
        self.parsed_template(node, text, parsed)
    }

    /// Parses the scalar `node`, whose text is `text`, as a template of bytes. `read` returns those
    /// of a piece between variables.
    pub(super) fn binary_template(
        &mut self,
        node: &Node,
        text: &str,
        read: &PieceReader<'_>,
    ) -> Option<Template> {
        self.names.set_binary(true);
        let parsed = Template::parse_pieces(text, &mut self.names, read);
        self.names.set_binary(false);
        self.parsed_template(node, text, parsed)
    }

    fn parsed_template(
        &mut self,
        node: &Node,
        text: &str,
        parsed: Result<Template, Vec<TemplateError>>,
    ) -> Option<Template> {
        let errors = match parsed {
            Ok(template) => return Some(template),
            Err(errors) => errors,
        };
        let at = node.scalar().and_then(|whole| whole.find(text)).unwrap_or(0);
        for TemplateError { span, title, label } in errors {
            let span = self.inner_span(node, at + span.start..at + span.end);
            self.error(span, title, label);
        }
        None
    }

    /// Adds the name `name` of `node` under which a later step may use a value. Returns its place
    /// among the values of a user.
    pub(crate) fn define(&mut self, node: &Node, name: &str, is_number: bool) -> u16 {
        if !is_number && self.names.is_computed(name) {
            let label = "a step above computes with it: store a whole number, or take another name";
            self.error(node.span.clone(), format!("`{name}` may be a text here"), label);
        }
        self.names.define(name, is_number)
    }

    /// Reads a scalar that must be one of `known`.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        known: &[(&str, T)],
    ) -> Option<T> {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let text = self.text(node, what, &format!("one of {}", list_of(&names)))?;
        let found = known.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            self.unknown(node.span.clone(), &format!("{what} `{text}`"), text, &names);
        }
        found.map(|(_, value)| *value)
    }

    /// Reads the value of `key`, `true` or `false`; `default` if it is missing.
    pub(crate) fn flag(&mut self, fields: &Fields<'_>, key: &str, default: bool) -> Option<bool> {
        self.value_or(fields, key, default, |reader, node| {
            reader.one_of(node, &format!("`{key}`"), &[("true", true), ("false", false)])
        })
    }

    /// Reads the one of `forms` that is there; each has a key and the reader of its value.
    pub(crate) fn one_form<T>(
        &mut self,
        fields: &Fields<'_>,
        what: &str,
        needs: &str,
        forms: &[Form<T>],
    ) -> Option<T> {
        let mut given =
            forms.iter().filter_map(|(key, read)| fields.get(key).map(|node| (node, read)));
        match (given.next(), given.next()) {
            (Some((node, read)), None) => read(self, node),
            _ => {
                let names: Vec<&str> = forms.iter().map(|(key, _)| *key).collect();
                let (last, others) = names.split_last()?;
                let label = format!("one of {} and `{last}`", list_of(others));
                let span = self.first_line(&fields.span);
                self.error(span, format!("{what} needs exactly one {needs}"), label);
                None
            }
        }
    }

    /// Reads a scalar with a unit.
    pub(crate) fn quantity<T>(
        &mut self,
        node: &Node,
        what: &str,
        parse: fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let expected = parse("").err().map_or("", |error| error.expected);
        let text = self.text(node, what, expected)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let span = node.inner_span(self.source, error.span.clone());
                let label = match &error.problem {
                    Problem::UnitUnknown { meant: Some(meant), .. } => {
                        format!("did you mean `{meant}`?")
                    }
                    problem => problem.to_string(),
                };
                self.error(span, format!("{what} must be {expected}"), label);
                None
            }
        }
    }

    /// Returns the span in the source of `inner`, a part of a scalar's text.
    pub(crate) fn inner_span(&self, node: &Node, inner: Range<usize>) -> Range<usize> {
        node.inner_span(self.source, inner)
    }

    /// Reports whether the scalar at `span` has no quotes.
    pub(super) fn is_plain(&self, span: &Range<usize>) -> bool {
        !self.source[span.clone()].starts_with(['"', '\''])
    }

    /// Returns the number of the line with the byte at `offset`, from 1.
    pub(super) fn line_number(&self, offset: usize) -> u32 {
        self.lines.partition_point(|begin| *begin <= offset) as u32
    }

    /// Returns the first line of a span, to point at a long mapping.
    pub(crate) fn first_line(&self, span: &Range<usize>) -> Range<usize> {
        let text = &self.source[span.clone()];
        span.start..span.start + text.lines().next().map_or(0, str::len)
    }
}

/// The key of a step's own name.
const NAME: &str = "name";

/// What a mistake at the top of a scenario calls it.
pub(super) const WHOLE: &str = "a scenario";

/// A key, and the reader of its value.
pub(crate) type Form<T> = (&'static str, fn(&mut Reader<'_>, &Node) -> Option<T>);

/// Formats names as `a`, `b`, `c`.
fn list_of(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
