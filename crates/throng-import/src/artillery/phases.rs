//! `config.phases`: when users arrive.

use std::time::Duration;

use throng_base::units::{show_duration, show_rate};
use throng_load::scenario::YamlNode;

use crate::phase::{Arrivals, finish, hold};
use crate::rate::show_whole;
use crate::source::Span;
use crate::translator::Translator;
use crate::yaml::Yaml;

use super::time::duration;
use crate::fields::{Fields, list, number};

/// Reads the phases. Without any, one user arrives, as in Artillery.
pub(super) fn read(translator: &mut Translator<'_>, node: Option<&YamlNode>) -> Vec<Yaml> {
    let Some(node) = node else {
        let how = "the file has no phases: one user arrives, within a second";
        translator.approximated(&(0..0), "phases", how);
        let one = Arrivals::even("1/s", Duration::from_secs(1)).most(Some(1));
        return vec![one.write(), finish_all()];
    };
    let mut phases: Vec<Yaml> = Vec::new();
    for phase in list(translator, node, "`phases`").unwrap_or_default() {
        let Some(phase) = Phase::read(translator, phase) else { continue };
        if let Some(yaml) = phase.write(translator, phases.is_empty()) {
            let comments = translator.source.comments_above(phase.span.start, "#");
            let comments = comments.into_iter().chain(phase.name.clone());
            phases.push(yaml.comments(comments));
        }
    }
    if !phases.is_empty() {
        let how = "Artillery gives each of its workers a share of the rate, at equal distances; \
                   the scenario's users all arrive at equal distances";
        translator.approximated(&node.span, "phases", how);
        phases.push(finish_all());
    } else if translator.mistakes.is_empty() {
        let label = "expected a phase with `duration` and `arrivalRate`";
        translator.mistake(&node.span, "no user arrives in these phases", label);
    }
    phases
}

/// Returns the phase in which the users finish: Artillery waits for the last one.
fn finish_all() -> Yaml {
    finish(show_duration(FINISH_TIME)).comment("Artillery runs until the last user has finished.")
}

/// A phase, as the file has it.
struct Phase {
    span: Span,
    name: Option<String>,
    duration: Option<Duration>,
    rate: Option<f64>,
    ramp_to: Option<(Span, f64)>,
    count: Option<u64>,
    pause: Option<Duration>,
    users_max: Option<Span>,
    /// Whether users arrive at random distances.
    is_random: bool,
}

impl Phase {
    fn read(translator: &mut Translator<'_>, node: &YamlNode) -> Option<Self> {
        let mistakes = translator.mistakes.len();
        let fields = Fields::read(translator, node, "a phase", &KEYS)?;
        let mut rate = |key: &str| {
            fields.entry(key).and_then(|(span, node)| {
                number(translator, node, &format!("`{key}`"), (0.0, RATE_MAX)).map(|n| (span, n))
            })
        };
        let (arrival_rate, ramp_to) = (rate("arrivalRate"), rate("rampTo"));
        let mut span = |key: &str| {
            fields.get(key).and_then(|node| duration(translator, node, &format!("`{key}`")))
        };
        let (length, pause) = (span("duration"), span("pause"));
        let count = fields.get("arrivalCount").and_then(|node| {
            let count = number(translator, node, "`arrivalCount`", (1.0, COUNT_MAX))?;
            if count.fract() != 0.0 {
                let label = "expected a whole number of users";
                translator.mistake(&node.span, "`arrivalCount` cannot be read", label);
            }
            Some(count as u64)
        });
        let phase = Self {
            span: translator.source.char_at(node.span.start),
            name: fields.get("name").and_then(YamlNode::scalar).map(str::to_owned),
            duration: length,
            rate: arrival_rate.map(|(_, rate)| rate),
            ramp_to,
            count,
            pause,
            users_max: fields.entry("maxVusers").map(|(span, _)| span),
            is_random: fields.get("mode").and_then(YamlNode::scalar) == Some("poisson"),
        };
        if translator.mistakes.len() > mistakes {
            return None;
        }
        phase.check(translator, node).then_some(phase)
    }

    /// Reports a phase without what every phase has.
    fn check(&self, translator: &mut Translator<'_>, node: &YamlNode) -> bool {
        if self.pause.is_some() {
            return true;
        }
        let (title, label) = if self.duration.is_none_or(|duration| duration.is_zero()) {
            ("a phase has no duration", "expected `duration: 60`, or `pause: 10`")
        } else if self.rate.is_none() && self.ramp_to.is_none() && self.count.is_none() {
            ("no user arrives in this phase", "expected `arrivalRate` or `arrivalCount`")
        } else {
            return true;
        };
        let line = translator.source.text.get(node.span.clone()).unwrap_or_default();
        let length = line.lines().next().unwrap_or_default().len().max(1);
        translator.fail(&(node.span.start..node.span.start + length), title, label)
    }

    /// Returns the phase in the scenario's words. A load does not begin with a pause.
    fn write(&self, translator: &mut Translator<'_>, is_first: bool) -> Option<Yaml> {
        let construct = match &self.name {
            Some(name) => format!("phase {name}"),
            None => "phase".to_owned(),
        };
        if let Some(span) = &self.users_max {
            let remedy = "users arrive however many are there; a closed model has a set number \
                          of users: `ramp: {to, over}`";
            translator.not_supported(span, "maxVusers", remedy);
        }
        let length = self.pause.or(self.duration)?;
        let from = self.rate.unwrap_or(0.0);
        let to = self.ramp_to.as_ref().map_or(from, |(_, rate)| *rate);
        if self.pause.is_some() || (self.count.is_none() && from == 0.0 && to == 0.0) {
            if is_first || length.is_zero() {
                let why = "a load begins with its first users";
                return translator.skip(&self.span, construct, why);
            }
            translator.translated(&self.span, construct);
            return Some(hold(length));
        }
        if let Some(count) = self.count {
            translator.translated(&self.span, construct);
            let arrivals = Arrivals::even(show_pace(count, length), length);
            return Some(arrivals.most(Some(count)).write());
        }
        if from == to {
            translator.translated(&self.span, construct);
            let arrivals = Arrivals::even(show_rate(from), length);
            return Some(Arrivals { is_even: !self.is_random, ..arrivals }.write());
        }
        let how = "Artillery changes the rate in steps, the scenario linearly";
        translator.approximated(&self.span, construct, how);
        Some(Arrivals::between(show_rate(from), show_rate(to), length).write())
    }
}

/// Returns a rate at which at least `count` users arrive in `length`.
fn show_pace(count: u64, length: Duration) -> String {
    let rate = count as f64 / length.as_secs_f64();
    show_whole(rate).unwrap_or_else(|| format!("{}/s", (rate * 1e6).ceil() / 1e6))
}

/// How long the scenario waits for the last user at most. Artillery waits without a limit.
const FINISH_TIME: Duration = Duration::from_secs(3_600);

const KEYS: [&str; 8] =
    ["duration", "arrivalRate", "rampTo", "arrivalCount", "maxVusers", "pause", "name", "mode"];

/// The highest rate of a phase, in users a second.
const RATE_MAX: f64 = 1e6;

/// The most users of a phase.
const COUNT_MAX: f64 = 1e8;
