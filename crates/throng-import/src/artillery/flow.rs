//! `flow`: the steps of a scenario.

use std::time::Duration;

use crate::expected::one_of;
use throng_load::scenario::{YamlKind, YamlNode};

use crate::source::Span;
use crate::step;
use crate::translator::Translator;
use crate::trial::StepTrial;
use crate::yaml::Yaml;

use super::address::Part;
use super::condition;
use super::engine::Engine;
use super::loops::LOOP_KEYS;
use super::scalar::Scalar;
use super::settings::Settings;
use super::template::{self, only_variable, random_number};
use super::time;
use super::variables::Variables;
use crate::fields::{Fields, list};
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
    /// Whether the user has ended: Artillery takes none of the steps that follow.
    pub(super) is_over: bool,
    /// Where the value of the first step of the flow stands.
    pub(super) first_step: Option<usize>,
    /// Whether a body has no type.
    pub(super) has_untyped: bool,
    /// Whether a variable stands in a form, or in `qs`.
    pub(super) has_encoded: bool,
    /// Whether a step of the load waits for the answer to a message.
    pub(super) has_answers: bool,
}

impl Flow<'_, '_, '_> {
    /// Returns the steps in `node`, a list.
    pub(super) fn steps(&mut self, node: &YamlNode) -> Vec<Yaml> {
        let mut steps = Vec::new();
        for node in list(self.translator, node, "a list of steps").unwrap_or_default() {
            if self.is_over {
                break;
            }
            // Lists in a flow are those of aliases.
            if let YamlKind::List(_) = &node.kind {
                steps.extend(self.steps(node));
                continue;
            }
            let before = steps.len();
            self.step(node, &mut steps);
            let comments = self.translator.source.comments_above(node.span.start, "#");
            Yaml::comment_first(&mut steps[before..], comments);
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
            "parallel" if self.engine == Engine::Http => {
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
            (Engine::Ws, "connect") => {
                let is_first = self.first_step == Some(value.span.start);
                steps.extend(self.connect(span, value, is_first));
            }
            (Engine::Ws, "send" | "wait") => self.send(name, span, value, steps),
            (Engine::Ws, "sendBytes" | "parallel") => {
                self.end(span, name, "the engine ws has no such step");
            }
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
        Some(template::text_of(&self.parts(node, what)?))
    }

    /// Returns the parts of a text.
    pub(super) fn parts(&mut self, node: &YamlNode, what: &str) -> Option<Vec<Part>> {
        let text = crate::fields::text(self.translator, node, what)?;
        let text = Scalar::of(&self.translator.source, node, text).into_text();
        Some(template::parts(self.translator, &mut self.variables, &node.span, &text))
    }

    /// Returns a text of `config`, in which the user's variables have no values.
    pub(super) fn config_text(&mut self, node: &YamlNode, what: &str) -> Option<String> {
        self.variables.is_config = true;
        let text = self.text(node, what);
        self.variables.is_config = false;
        text
    }

    /// Ends the user here, as Artillery does. The steps that follow are left out.
    pub(super) fn end(&mut self, span: &Span, construct: impl Into<String>, why: &str) {
        let why = format!(
            "{why}: Artillery ends the user with an error before this step; the scenario leaves \
             out this step and those that follow"
        );
        self.translator.suspicious(span, construct, why);
        self.is_over = true;
    }

    /// Reports a mistake at `span` if throng refuses these steps, or these first steps.
    pub(super) fn check(&mut self, span: &Span, steps: &[Yaml], is_first: bool) {
        let (target, steps) = (self.target.clone(), steps.to_vec());
        self.translator.trials.push(StepTrial { span: span.clone(), target, steps, is_first });
    }

    /// Translates a think time (`engine_util.ts`, `createThink`): a whole number is of seconds, and
    /// a fraction without a unit of milliseconds.
    fn think(&mut self, span: &Span, node: &YamlNode) -> Option<Yaml> {
        let random = node.scalar().and_then(only_variable).and_then(random_number);
        if let Some((least, most)) = random.filter(|(least, most)| least < most) {
            let how = "think times are evenly distributed, and not whole seconds";
            self.translator.approximated(span, "think", how);
            return Some(step::wait(format!("uniform({least}s, {most}s)")));
        }
        let text = node.scalar().unwrap_or_default();
        let known = only_variable(text).and_then(|name| self.variables.known_text(name));
        let text = known.as_deref().unwrap_or(text);
        if text.contains("{{") {
            let remedy = "a think time is a number here; write `wait: uniform(1s, 3s)`";
            return self.translator.omit(span, "think", remedy);
        }
        let text = Scalar::of(&self.translator.source, node, text).into_text();
        let Some(mut think) = time::parse(&text) else {
            return time::duration(self.translator, node, "`think`").map(|_| Yaml::text(""));
        };
        let is_fraction = text.trim().parse::<f64>().is_ok_and(|number| number.fract() != 0.0);
        if is_fraction {
            let why = "Artillery takes a number with a fraction for milliseconds: write `500ms`, \
                       and not `0.5`";
            self.translator.suspicious(span, "think", why);
            think = (think / 1000).max(Duration::from_millis(1));
        } else {
            self.translator.translated(span, "think");
        }
        if think.is_zero() {
            return self.translator.skip(span, "think", "it takes no time");
        }
        let wait = match self.settings.jitter {
            Some(jitter) => jitter.around(think),
            None => throng_base::units::show_duration(think),
        };
        Some(step::wait(wait))
    }

    /// Returns the step within the condition of `ifTrue`.
    pub(super) fn guarded(&mut self, fields: &Fields<'_>, step: Yaml) -> Yaml {
        let Some((span, node)) = fields.entry("ifTrue") else { return step };
        let value = |name: &str| {
            let value = self.variables.text(name)?;
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
        step::branch(condition, vec![step])
    }
}
