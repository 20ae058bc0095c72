//! Trials: whether throng accepts a part of a scenario, before the whole is written.
//!
//! A trial opens no file and reads no environment: the values of both are stored texts in it. Each
//! import ends with a trial of the whole scenario.

use std::time::Duration;

use throng_load::scenario::{Diagnostic, Scenario};

use crate::draft::{Draft, DraftClass};
use crate::fidelity::FidelityReport;
use crate::phase::Arrivals;
use crate::source::Source;
use crate::yaml::Yaml;

/// What is known where the part of the scenario stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial<'a> {
    /// The target of the scenario.
    pub(crate) target: &'a str,
    /// The variables that the part may use beside those that it stores: `token`, `row.name`.
    pub(crate) variables: &'a [String],
}

impl Trial<'_> {
    /// Returns why throng refuses these steps; `None` if it accepts them. Over WebSockets the user
    /// has connected before them.
    pub(crate) fn of_steps(&self, steps: &[Yaml]) -> Option<Diagnostic> {
        let has_connect = steps.iter().any(Yaml::is_connect);
        let is_http = self.target.starts_with("http");
        let is_request = steps.first().is_some_and(Yaml::is_request);
        let is_connected = !is_http && !has_connect && !is_request;
        let connect = is_connected.then(|| Yaml::text("connect"));
        let steps = connect.into_iter().chain(steps.iter().cloned()).collect();
        self.of_draft(&draft(self.target, one_user(), steps))
    }

    /// Returns why throng refuses a `connect` or another first step.
    pub(crate) fn of_first_step(&self, step: &Yaml) -> Option<Diagnostic> {
        self.of_draft(&draft(self.target, one_user(), vec![step.clone()]))
    }

    /// Returns why throng refuses this load; `None` if it accepts it.
    pub(crate) fn of_load(&self, load: &[Yaml]) -> Option<Diagnostic> {
        let steps = vec![Yaml::entry("wait", Yaml::plain("1s"))];
        self.of_draft(&draft(self.target, load.to_vec(), steps))
    }

    /// Returns why throng refuses the scenario of this draft; `None` if it accepts it.
    pub(crate) fn of_draft(&self, draft: &Draft) -> Option<Diagnostic> {
        let mut draft = draft.clone();
        let mut places = draft.tables();
        places.push("env".to_owned());
        let of_files = self.variables.iter().filter_map(|name| name.split_once('.'));
        places.extend(of_files.map(|(place, _)| place.to_owned()));
        draft.data = None;
        let source = Source { name: NAME, text: "" };
        let stand_ins = StandIns::of(&draft.write(&source, &NO_REPORT), &places);
        let stored = self.variables.iter().filter(|name| !name.contains('.')).cloned();
        let set: Vec<_> = stored
            .chain(stand_ins.0.iter().map(|(_, stand_in)| stand_in.clone()))
            .map(|name| (name, Yaml::text("x")))
            .collect();
        if !set.is_empty() {
            let set = Yaml::entry("set", Yaml::map(set));
            let lists = [&mut draft.setup, &mut draft.teardown].into_iter();
            let lists = lists.filter(|steps| !steps.is_empty());
            lists
                .chain(draft.classes.iter_mut().map(|class| &mut class.steps))
                .for_each(|steps| steps.insert(0, set.clone()));
        }
        let text = stand_ins.in_place(&draft.write(&source, &NO_REPORT));
        let mistakes = Scenario::parse(&text, NAME).err()?;
        let mistake = mistakes.iter().next()?;
        let above = text.get(..mistake.span.start).unwrap_or_default().matches('\n').count();
        let line = text.lines().nth(above).unwrap_or_default().trim();
        let help = format!("in the scenario it is the line `{}`", stand_ins.back(line));
        Some(Diagnostic { help: Some(help), ..mistake.clone() })
    }
}

/// Names of stored values in the place of those that files and the environment have: in a trial
/// there is neither.
struct StandIns(Vec<(String, String)>);

impl StandIns {
    /// Finds the variables of these places in a text: `${users.name}` is one of `users`.
    fn of(text: &str, places: &[String]) -> Self {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let inner = text.split("${").skip(1).filter_map(|rest| rest.split('}').next());
        let mut names: Vec<&str> = inner
            .flat_map(|inner| inner.split(|c| !is_name(c)))
            .filter(|name| {
                let place = name.split_once('.').map(|(place, _)| place);
                place.is_some_and(|place| places.iter().any(|known| known == place))
            })
            .collect();
        // A name may begin like another one.
        names.sort_by_key(|name| (std::cmp::Reverse(name.len()), *name));
        names.dedup();
        let stand_in = |(index, name): (usize, &&str)| (name.to_string(), format!("trial_{index}"));
        Self(names.iter().enumerate().map(stand_in).collect())
    }

    /// Returns the text with the stand-ins in their places.
    fn in_place(&self, text: &str) -> String {
        let mut parts = text.split("${");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (inner, rest) = part.split_at(part.find('}').unwrap_or(part.len()));
            let replace = |inner: String, (name, stand_in): &(String, String)| {
                inner.replace(&**name, stand_in)
            };
            out.push_str("${");
            out.push_str(&self.0.iter().fold(inner.to_owned(), replace));
            out.push_str(rest);
        }
        out
    }

    /// Returns the text with the names themselves.
    fn back(&self, text: &str) -> String {
        let replace = |text: String, (name, stand_in): &(String, String)| {
            text.replace(&format!("{{{stand_in}"), &format!("{{{name}"))
        };
        self.0.iter().rev().fold(text.to_owned(), replace)
    }
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

/// The report of a trial, which translates nothing.
const NO_REPORT: FidelityReport = FidelityReport { tool: "trial", entries: Vec::new() };
