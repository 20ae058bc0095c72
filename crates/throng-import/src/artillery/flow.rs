//! `flow`: the steps of a scenario.

use crate::expected::one_of;
use crate::text::escape;
use throng_load::scenario::{YamlKind, YamlNode};

use crate::source::Span;
use crate::translator::Translator;
use crate::trial::Trial;
use crate::yaml::Yaml;

use super::condition;
use super::engine::Engine;
use super::fields::{Fields, list, one_or_more};
use super::settings::Settings;
use super::template::{self, only_variable, random_number};
use super::time;
use super::variables::{Kind, Variables};
use crate::step_names::StepNames;

/// The translation of the steps of one scenario after another.
pub(super) struct Flow<'t, 's, 'n> {
    pub(super) translator: &'t mut Translator<'s>,
    pub(super) engine: Engine,
    /// The target of the scenario.
    pub(super) target: String,
    /// The target in the file, with its path.
    pub(super) base: String,
    pub(super) settings: Settings<'n>,
    pub(super) variables: Variables,
    pub(super) names: StepNames,
    /// Whether the steps are taken once, before or after the load.
    pub(super) is_once: bool,
    /// Whether a step of the load waits for the answer to a message.
    pub(super) has_answers: bool,
}

impl Flow<'_, '_, '_> {
    /// Returns the steps in `node`, a list.
    pub(super) fn steps(&mut self, node: &YamlNode) -> Vec<Yaml> {
        let mut steps = Vec::new();
        for node in list(self.translator, node, "a list of steps").unwrap_or_default() {
            let before = steps.len();
            self.step(node, &mut steps);
            let comments = self.translator.source.comments_above(node.span.start);
            if let (Some(step), false) = (steps.get_mut(before), comments.is_empty()) {
                let with_comments = |step, comment: &String| Yaml::comment(step, comment);
                *step = comments.iter().fold(step.clone(), with_comments);
            }
        }
        steps
    }

    fn step(&mut self, node: &YamlNode, steps: &mut Vec<Yaml>) {
        let action = match &node.kind {
            YamlKind::Map(entries) => entries.iter().find_map(|(key, value)| {
                let name = key.scalar().filter(|name| !LOOP_KEYS.contains(name))?;
                Some((name, key.span.clone(), value))
            }),
            _ => None,
        };
        let Some((name, span, value)) = action else {
            let label = "expected a mapping such as `think: 1`";
            return self.translator.mistake(&node.span, "this is not a step", label);
        };
        match name {
            "think" => steps.extend(self.think(&span, value)),
            "loop" => self.repeat(&span, node, value, steps),
            "log" => self.translator.not_needed(&span, "log", "see `--log` of `throng run`"),
            "function" => {
                let remedy = "JavaScript is not run; write what the function does as steps";
                self.translator.not_supported(&span, "function", remedy);
            }
            "parallel" => {
                let remedy = "a user does one step at a time; they follow one another here";
                self.translator.not_supported(&span, "parallel", remedy);
                steps.extend(self.steps(value));
            }
            _ => self.action(name, &span, value, steps),
        }
    }

    /// Translates a step of the engine.
    fn action(&mut self, name: &str, span: &Span, value: &YamlNode, steps: &mut Vec<Yaml>) {
        match (self.engine, name) {
            (Engine::Http, "get" | "post" | "put" | "delete" | "patch" | "head" | "options") => {
                steps.extend(self.request(name, span, value))
            }
            (Engine::Ws, "connect") => steps.extend(self.connect(span, value)),
            (Engine::Ws, "send") => self.send(span, value, steps),
            (Engine::Ws, "sendBytes") => self.send_bytes(span, value, steps),
            _ => {
                let known = self.engine.actions();
                let label = one_of(name, known);
                let title = format!("the engine {} has no step `{name}`", self.engine.name());
                self.translator.mistake(span, title, label);
            }
        }
    }

    /// Returns the text with its variables in the scenario's form.
    pub(super) fn text(&mut self, node: &YamlNode, what: &str) -> Option<String> {
        let text = super::fields::text(self.translator, node, what)?;
        Some(template::translate(self.translator, &mut self.variables, &node.span, text))
    }

    /// Reports a mistake at `span` if throng refuses these steps.
    pub(super) fn check(&mut self, span: &Span, steps: &[Yaml]) {
        let is_known = |name: &str| self.variables.knows(name);
        let trial = Trial { target: &self.target, is_known: &is_known };
        if let Some(refusal) = trial.of_steps(steps) {
            self.translator.mistake(span, refusal.title, refusal.label);
        }
    }

    /// Reports a mistake at `span` if throng refuses this step as the first one.
    pub(super) fn check_first(&mut self, span: &Span, step: &Yaml) {
        let is_known = |name: &str| self.variables.knows(name);
        let trial = Trial { target: &self.target, is_known: &is_known };
        if let Some(refusal) = trial.of_first_step(step) {
            self.translator.mistake(span, refusal.title, refusal.label);
        }
    }

    fn think(&mut self, span: &Span, node: &YamlNode) -> Option<Yaml> {
        let random = node.scalar().and_then(only_variable).and_then(random_number);
        if let Some((least, most)) = random.filter(|(least, most)| least < most) {
            let how = "think times are evenly distributed, and not whole seconds";
            self.translator.approximated(span, "think", how);
            return Some(Yaml::entry("wait", Yaml::plain(format!("uniform({least}s, {most}s)"))));
        }
        if node.scalar().is_some_and(|text| text.contains("{{")) {
            let remedy = "a think time is a number here; write `wait: uniform(1s, 3s)`";
            self.translator.not_supported(span, "think", remedy);
            return None;
        }
        let think = time::duration(self.translator, node, "`think`")?;
        if think.is_zero() {
            self.translator.not_needed(span, "think", "it takes no time");
            return None;
        }
        self.translator.translated(span, "think");
        let wait = match self.settings.jitter {
            Some(jitter) => jitter.around(think),
            None => throng_base::units::show_duration(think),
        };
        Some(Yaml::entry("wait", Yaml::plain(wait)))
    }

    fn repeat(&mut self, span: &Span, node: &YamlNode, body: &YamlNode, steps: &mut Vec<Yaml>) {
        let keys: Vec<_> = LOOP_KEYS.iter().copied().chain(["loop"]).collect();
        let Some(fields) = Fields::read(self.translator, node, "`loop`", &keys) else { return };
        if let Some((over_span, over)) = fields.entry("over") {
            return self.over(&over_span, over, &fields, body, steps);
        }
        if let Some((span, _)) = fields.entry("whileTrue") {
            let remedy = "its condition is JavaScript; write `repeat: {while, do}`; the steps \
                          stand here once";
            self.translator.not_supported(&span, "loop whileTrue", remedy);
            return steps.extend(self.steps(body));
        }
        let Some(count) = fields.get("count") else {
            let label = "expected `count`, `over` or `whileTrue`";
            return self.translator.mistake(span, "this loop has no end", label);
        };
        let is_variable = count.scalar().is_some_and(|text| text.contains("{{"));
        if is_variable {
            let remedy = "a loop has a number of turns here; its steps stand here once";
            self.translator.not_supported(&count.span, "loop count", remedy);
            return steps.extend(self.steps(body));
        }
        let times = count.scalar().and_then(|text| text.parse::<u32>().ok());
        let Some(times) = times.filter(|times| (1..=TIMES_MAX).contains(times)) else {
            let label = format!("expected a whole number from 1 to {TIMES_MAX}");
            return self.translator.mistake(&count.span, "`count` cannot be read", label);
        };
        let counter = fields.get("loopValue").and_then(YamlNode::scalar).unwrap_or("$loopCount");
        let is_counted = self.translator.source.slice(&body.span).contains(counter);
        if is_counted && times <= VALUES_MAX {
            self.translator.translated(span, "loop");
            let values = (1..=times).map(Yaml::plain).collect();
            return self.foreach(counter, "loop_count", values, body, steps);
        }
        let turn = self.steps(body);
        if turn.is_empty() {
            return self.translator.not_needed(span, "loop", "it has no steps");
        }
        self.translator.translated(span, "loop");
        let turns = [("times", Yaml::plain(times)), ("do", Yaml::list(turn))];
        steps.push(Yaml::entry("repeat", Yaml::map(turns)));
    }

    /// Translates a loop over values.
    fn over(
        &mut self,
        span: &Span,
        node: &YamlNode,
        fields: &Fields<'_>,
        body: &YamlNode,
        steps: &mut Vec<Yaml>,
    ) {
        let of_variable = node.scalar().and_then(|name| self.variables.list(name));
        let bytes = of_variable.into_iter().flatten().map(String::len).sum();
        if of_variable.is_some() && !self.translator.expansion.charge(&node.span, bytes) {
            return;
        }
        let of_variable = of_variable.map(<[String]>::to_vec);
        let values = of_variable.or_else(|| match &node.kind {
            YamlKind::List(_) => {
                let values = one_or_more(node).into_iter();
                values.map(|value| value.scalar().map(str::to_owned)).collect()
            }
            _ => None,
        });
        let fits = |values: &Vec<String>| (1..=VALUES_MAX as usize).contains(&values.len());
        let Some(values) = values.filter(fits) else {
            let remedy = "a loop goes over 1 to 100 texts that stand in the file; the steps \
                          stand here once";
            self.translator.not_supported(span, "loop over", remedy);
            return steps.extend(self.steps(body));
        };
        self.translator.translated(span, "loop over");
        let name = ["loopElement", "loopValue"].iter().find_map(|key| fields.get(key));
        let name = name.and_then(YamlNode::scalar).unwrap_or("$loopElement").to_owned();
        let inner = if name == "$loopElement" { "element".to_owned() } else { name.clone() };
        let is_number = match node.scalar() {
            Some(list) => self.variables.kind(list) == Kind::Any,
            None => one_or_more(node).iter().all(|value| value.is_typed),
        };
        let value = |value: &String| match is_number {
            true => Yaml::plain(value),
            false => Yaml::text(escape(value)),
        };
        let values = values.iter().map(value).collect();
        self.foreach(&name, &inner, values, body, steps);
    }

    fn foreach(
        &mut self,
        name: &str,
        inner: &str,
        values: Vec<Yaml>,
        body: &YamlNode,
        steps: &mut Vec<Yaml>,
    ) {
        let inner = self.variables.store_as(name, inner);
        if !values.iter().any(Yaml::is_text) {
            self.variables.is(name, Kind::Any);
        }
        let turn = self.steps(body);
        self.variables.forget(name);
        if !turn.is_empty() {
            let entries =
                [("name", Yaml::text(inner)), ("in", Yaml::list(values)), ("do", Yaml::list(turn))];
            steps.push(Yaml::entry("foreach", Yaml::map(entries)));
        }
    }

    /// Returns the step within the condition of `ifTrue`.
    pub(super) fn guarded(&mut self, fields: &Fields<'_>, step: Yaml) -> Yaml {
        let Some((span, node)) = fields.entry("ifTrue") else { return step };
        let value = |name: &str| {
            let value = self.variables.value(name)?;
            self.translator.expansion.charge(&node.span, value.len()).then_some(value)
        };
        let condition = node.scalar().and_then(|text| condition::translate(text, value));
        let Some(condition) = condition else {
            let remedy = "a condition compares two values here: `\"${page} < 10\"`; the step is \
                          taken each time";
            self.translator.not_supported(&span, "ifTrue", remedy);
            return step;
        };
        self.translator.translated(&span, "ifTrue");
        let entries = [("condition", Yaml::text(condition)), ("do", Yaml::list([step]))];
        Yaml::entry("if", Yaml::map(entries))
    }
}

/// Keys beside the name of a step.
const LOOP_KEYS: [&str; 5] = ["count", "over", "whileTrue", "loopValue", "loopElement"];

/// The most turns of a loop.
const TIMES_MAX: u32 = 1_000_000_000;

/// The most values of a loop.
const VALUES_MAX: u32 = 100;
