//! Trials: whether throng accepts a part of a scenario, before the whole is written.
//!
//! A trial opens no file and reads no environment: the values of both are stored texts in it. Each
//! import ends with a trial of the whole scenario. Only where throng refuses the whole, or a part
//! has another mistake, the steps are tried one by one: each is then a mistake of its own, at its
//! place in the source.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use throng_load::scenario::{Diagnostic, Scenario};

use crate::draft::{Draft, DraftClass};
use crate::phase::Arrivals;
use crate::source::Span;
use crate::step;
use crate::yaml::Yaml;

/// What is known where the part of the scenario stands.
#[derive(Clone, Copy)]
pub(crate) struct Trial<'a> {
    /// The target of the scenario.
    pub(crate) target: &'a str,
    /// Reports whether the part may use a variable beside those that it stores: `token`,
    /// `row.name`.
    pub(crate) is_known: &'a dyn Fn(&str) -> bool,
}

impl Trial<'_> {
    /// Returns why throng refuses these steps; `None` if it accepts them. Over WebSockets the user
    /// has connected before them.
    fn of_steps(&self, steps: &[Yaml]) -> Option<Diagnostic> {
        let has_connect = steps.iter().any(Yaml::is_connect);
        let is_http = self.target.starts_with("http");
        let is_request = steps.first().is_some_and(Yaml::is_request);
        let is_connected = !is_http && !has_connect && !is_request;
        let connect = is_connected.then(|| Yaml::text("connect"));
        let steps = connect.into_iter().chain(steps.iter().cloned()).collect();
        self.of_draft(&draft(self.target, one_user(), steps))
    }

    /// Returns why throng refuses a `connect` or another first step.
    fn of_first_step(&self, step: &Yaml) -> Option<Diagnostic> {
        self.of_draft(&draft(self.target, one_user(), vec![step.clone()]))
    }

    /// Returns why throng refuses this load; `None` if it accepts it.
    pub(crate) fn of_load(&self, load: &[Yaml]) -> Option<Diagnostic> {
        let steps = vec![step::wait("1s")];
        self.of_draft(&draft(self.target, load.to_vec(), steps))
    }

    fn of_draft(&self, draft: &Draft) -> Option<Diagnostic> {
        self.of_written(draft, &draft.write())
    }

    /// Returns why throng refuses the scenario of this draft, which is `written`; `None` if it
    /// accepts it.
    pub(crate) fn of_written(&self, draft: &Draft, written: &str) -> Option<Diagnostic> {
        let tables: BTreeSet<_> = draft.tables().into_iter().collect();
        let (of_files, others): (BTreeSet<_>, BTreeSet<_>) =
            names_in(written).partition(|name| name.contains('.'));
        let is_of_file = |name: &&str| {
            let place = name.split_once('.').map_or(*name, |(place, _)| place);
            place == "env" || tables.contains(place) || (self.is_known)(name)
        };
        let stand_ins = StandIns::of(of_files.into_iter().filter(is_of_file));
        let stored = others.into_iter().filter(|name| (self.is_known)(name));
        let set: Vec<_> = stored
            .map(str::to_owned)
            .chain(stand_ins.0.values().cloned())
            .map(|name| (name, Yaml::text("x")))
            .collect();
        let mut text = Cow::Borrowed(written);
        if !set.is_empty() || draft.data.is_some() {
            let mut draft = Draft { data: None, ..draft.clone() };
            let set = (!set.is_empty()).then(|| Yaml::entry("set", Yaml::map(set)));
            let lists = [&mut draft.setup, &mut draft.teardown].into_iter();
            let lists = lists.filter(|steps| !steps.is_empty());
            lists
                .chain(draft.classes.iter_mut().map(|class| &mut class.steps))
                .for_each(|steps| drop(steps.splice(0..0, set.clone())));
            text = Cow::Owned(stand_ins.in_place(&draft.write()));
        }
        let mistakes = Scenario::parse(&text, NAME).err()?;
        let mistake = mistakes.iter().next()?;
        let above = text.get(..mistake.span.start).unwrap_or_default().matches('\n').count();
        let line = text.lines().nth(above).unwrap_or_default().trim();
        let help = format!("in the scenario it is the line `{}`", stand_ins.back(line));
        Some(Diagnostic { help: Some(help), ..mistake.clone() })
    }
}

/// Steps that are tried where the whole scenario is not accepted.
#[derive(Debug)]
pub(crate) struct StepTrial {
    span: Span,
    target: String,
    steps: Vec<Yaml>,
    /// Whether the user takes them first.
    is_first: bool,
    /// Variables that have values here.
    known: BTreeSet<String>,
}

impl StepTrial {
    /// Returns the trial of steps that stand at `span`. `is_known` reports whether they may use a
    /// variable beside those that they store.
    pub(crate) fn of_steps(
        span: &Span,
        target: &str,
        steps: &[Yaml],
        is_known: impl Fn(&str) -> bool,
    ) -> Self {
        let mut known = BTreeSet::new();
        let mut add = |text: &str| {
            known.extend(names_in(text).filter(|name| is_known(name)).map(str::to_owned));
        };
        steps.iter().for_each(|step| step.each_text(&mut add));
        let (span, target, steps) = (span.clone(), target.to_owned(), steps.to_vec());
        Self { span, target, steps, is_first: false, known }
    }

    /// Returns the trial of a `connect` or another first step.
    pub(crate) fn of_first_step(
        span: &Span,
        target: &str,
        step: &Yaml,
        is_known: impl Fn(&str) -> bool,
    ) -> Self {
        let steps = std::slice::from_ref(step);
        Self { is_first: true, ..Self::of_steps(span, target, steps, is_known) }
    }

    /// Returns the mistake at the place of the steps, if throng refuses them.
    pub(crate) fn mistake(&self) -> Option<Diagnostic> {
        let trial = Trial { target: &self.target, is_known: &|name| self.known.contains(name) };
        let refusal = match self.is_first {
            true => trial.of_first_step(&self.steps[0]),
            false => trial.of_steps(&self.steps),
        }?;
        Some(Diagnostic::new(self.span.clone(), refusal.title, refusal.label))
    }
}

/// Names of stored values in the place of those that files and the environment have: in a trial
/// there is neither.
struct StandIns(HashMap<String, String>);

impl StandIns {
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let stand_in = |(index, name): (usize, &str)| (name.to_owned(), format!("trial_{index}"));
        Self(names.enumerate().map(stand_in).collect())
    }

    /// Returns the text with the stand-ins in their places.
    fn in_place(&self, text: &str) -> String {
        let mut parts = text.split("${");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (inner, rest) = part.split_at(part.find('}').unwrap_or(part.len()));
            out.push_str("${");
            for word in inner.split_inclusive(is_between) {
                let (name, sign) = word.split_at(word.trim_end_matches(is_between).len());
                out.push_str(self.0.get(name).map_or(name, String::as_str));
                out.push_str(sign);
            }
            out.push_str(rest);
        }
        out
    }

    /// Returns the text with the names themselves.
    fn back(&self, text: &str) -> String {
        let by_stand_in: HashMap<_, _> = self.0.iter().map(|(name, own)| (own, name)).collect();
        let mut names: Vec<_> = names_in(text).map(str::to_owned).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.dedup();
        names.iter().fold(text.to_owned(), |text, name| match by_stand_in.get(name) {
            Some(known) => text.replace(&format!("{{{name}"), &format!("{{{known}")),
            None => text,
        })
    }
}

/// Iterates over the names in the variables of a text: `users.name` in `${users.name}`.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let inner = text.split("${").skip(1).filter_map(|rest| rest.split('}').next());
    inner.flat_map(|inner| inner.split(is_between)).filter(|name| !name.is_empty())
}

/// Reports whether the character stands between names in a variable.
fn is_between(sign: char) -> bool {
    !(sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.'))
}

/// Returns a load for steps that are tried.
fn one_user() -> Vec<Yaml> {
    vec![Arrivals::even("1/s", Duration::from_secs(1)).write()]
}

fn draft(target: &str, load: Vec<Yaml>, steps: Vec<Yaml>) -> Draft {
    let class = DraftClass { name: "user".to_owned(), weight: 1, steps, on_error: None };
    let target = target.to_owned();
    Draft { target, load, classes: vec![class], ..Draft::default() }
}

/// What a trial is called.
const NAME: &str = "trial.yaml";
