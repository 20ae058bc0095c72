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
use crate::names::{identifier, is_reserved};
use crate::phase::Arrivals;
use crate::source::Span;
use crate::step;
use crate::yaml::Yaml;

/// Returns why throng refuses the scenario of this draft, which is `written`; `None` if it accepts
/// it.
pub(crate) fn refusal(draft: &Draft, written: &str) -> Option<Diagnostic> {
    let tables: BTreeSet<_> = draft.data.iter().map(|(name, _)| &**name).chain(["env"]).collect();
    let is_there = |name: &str| name.split_once('.').is_some_and(|it| tables.contains(it.0));
    refusal_of(draft, written, &is_there)
}

/// Returns why throng refuses this load; `None` if it accepts it.
pub(crate) fn refusal_of_load(target: &str, load: &[Yaml]) -> Option<Diagnostic> {
    let draft = draft(target, load.to_vec(), vec![step::wait("1s")]);
    refusal_of(&draft, &draft.write(), &|_| false)
}

/// Returns why throng refuses a scenario, in which the names that `is_there` accepts have values.
fn refusal_of(draft: &Draft, written: &str, is_there: &dyn Fn(&str) -> bool) -> Option<Diagnostic> {
    let (of_files, stored): (BTreeSet<_>, BTreeSet<_>) =
        names_in(written).filter(|name| is_there(name)).partition(|name| name.contains('.'));
    let stand_ins = StandIns::of(of_files.into_iter());
    let set: Vec<_> = stored
        .into_iter()
        .map(str::to_owned)
        .chain(stand_ins.0.values().cloned())
        .map(|name| (name, Yaml::text("x")))
        .collect();
    let mut text = Cow::Borrowed(written);
    if !set.is_empty() || !draft.data.is_empty() || draft.tls.client.is_some() {
        let mut draft = Draft { data: Vec::new(), ..draft.clone() };
        draft.tls.client = None;
        let set = (!set.is_empty()).then(|| step::set_all(set));
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

/// Steps that are tried where the whole scenario is not accepted.
#[derive(Debug)]
pub(crate) struct StepTrial {
    pub(crate) span: Span,
    pub(crate) target: String,
    pub(crate) steps: Vec<Yaml>,
    /// Whether the user takes them first.
    pub(crate) is_first: bool,
}

impl StepTrial {
    /// Returns the mistake at the place of the steps, if throng refuses them. Over WebSockets the
    /// user has connected before them, unless they come first. Each variable in them has a value.
    pub(crate) fn mistake(&self) -> Option<Diagnostic> {
        let has_connect = self.steps.iter().any(Yaml::is_connect);
        let is_http = self.target.starts_with("http");
        let is_request = self.steps.first().is_some_and(Yaml::is_request);
        let is_connected = !self.is_first && !is_http && !has_connect && !is_request;
        let connect = is_connected.then(|| Yaml::text("connect"));
        let steps = connect.into_iter().chain(self.steps.iter().cloned()).collect();
        let load = vec![Arrivals::even("1/s", Duration::from_secs(1)).write()];
        let draft = draft(&self.target, load, steps);
        let refusal = refusal_of(&draft, &draft.write(), &|name| match name.split_once('.') {
            Some((place, _)) => ["env", "row", "setup"].contains(&place) || !is_reserved(place),
            None => identifier(name) == name,
        })?;
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
    let unquoted = inner.flat_map(|inner| inner.split(['\'', '"']).step_by(2));
    unquoted.flat_map(|part| part.split_inclusive(is_between)).filter_map(|word| {
        let name = word.trim_end_matches(is_between);
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic());
        (is_name && !word.ends_with('(')).then_some(name)
    })
}

/// Reports whether the character stands between names in a variable.
fn is_between(sign: char) -> bool {
    !(sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.'))
}

fn draft(target: &str, load: Vec<Yaml>, steps: Vec<Yaml>) -> Draft {
    let class = DraftClass { name: "user".to_owned(), weight: 1, steps, on_error: None };
    let target = target.to_owned();
    Draft { target, load, classes: vec![class], ..Draft::default() }
}

/// What a trial is called.
const NAME: &str = "trial.yaml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_quoted_texts_are_no_names() {
        let text = "a ${x} ${choice('b c', 'd')}-${raw(users.name)} ${n + 1} ${random(1,9)}";
        assert_eq!(names_in(text).collect::<Vec<_>>(), ["x", "users.name", "n"]);
    }

    /// The steps are refused for what they are, and not for their variables.
    #[test]
    fn each_variable_of_tried_steps_has_a_value() {
        let trial = |step: Yaml| {
            let target = "ws://127.0.0.1:80".to_owned();
            StepTrial { span: 3..5, target, steps: vec![step], is_first: false }.mistake()
        };
        let send = |text: &str| step::send(("text", Yaml::text(text)), false);
        assert!(trial(send("${token} ${users.name} ${env.HOST} ${user.id} ${uuid()}")).is_none());
        assert_eq!(trial(step::wait("soon")).map(|mistake| mistake.span), Some(3..5));
    }
}
