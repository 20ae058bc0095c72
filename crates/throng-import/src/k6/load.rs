//! `options`: how many users, or how many arrivals.

use std::time::Duration;

use throng_base::units::{show_count, show_duration};

use crate::expected::one_of;
use crate::phase::{Arrivals, finish, hold, ramp};
use crate::source::Span;
use crate::translator::Translator;
use crate::yaml::Yaml;

use super::syntax::{Expression, ExpressionKind};

/// The load of one scenario of k6.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) phases: Vec<Yaml>,
    /// How long it takes.
    pub(super) length: Duration,
    /// Whether users arrive by the clock, and do their steps once.
    pub(super) is_open: bool,
    /// How often a user does its steps, if that is set.
    pub(super) iterations: Option<Iterations>,
}

/// Iterations of a set number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Iterations {
    /// How often each user does its steps.
    pub(super) each: u64,
    pub(super) users: u64,
    /// How many users do them once more.
    pub(super) more: u64,
}

/// The members of an object of options.
pub(super) struct Members<'e> {
    span: Span,
    members: &'e [(String, Expression)],
}

impl<'e> Members<'e> {
    /// Returns the members of `value`. Reports a mistake if it is no object.
    pub(super) fn read(
        translator: &mut Translator<'_>,
        value: &'e Expression,
        what: &str,
    ) -> Option<Self> {
        let members = value.object();
        if members.is_none() {
            let title = format!("{what} is no object");
            translator.mistake(&value.span, title, "expected `{...}` with literals");
        }
        Some(Self { span: value.span.clone(), members: members? })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'e Expression> {
        self.members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'e str, &'e Expression)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// Reports the keys that are not in `keys`.
    pub(super) fn check(&self, translator: &mut Translator<'_>, what: &str, keys: &[&str]) {
        for (name, value) in self.iter().filter(|(name, _)| !keys.contains(name)) {
            let label = one_of(name, keys);
            let before = translator.source.text.get(..value.span.start).unwrap_or_default();
            let span = before.rfind(name).map_or(value.span.clone(), |at| at..at + name.len());
            translator.mistake(&span, format!("{what} has no key `{name}`"), label);
        }
    }

    fn count(&self, translator: &mut Translator<'_>, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        let count = value.number().filter(|n| n.fract() == 0.0 && (0.0..=COUNT_MAX).contains(n));
        if count.is_none() {
            let title = format!("`{key}` cannot be read");
            translator.mistake(&value.span, title, "expected a whole number, up to 100m");
        }
        count.map(|count| count as u64)
    }

    fn duration(&self, translator: &mut Translator<'_>, key: &str) -> Option<Duration> {
        let value = self.get(key)?;
        // A number is of milliseconds (`lib/types`, `types.NullDuration`).
        let ms = value.number().filter(|ms| (0.0..=MS_MAX).contains(ms));
        let ms = ms.map(|ms| Duration::from_micros((ms * 1e3) as u64));
        let duration = value.text().and_then(parse_duration).or(ms);
        if duration.is_none() {
            let title = format!("`{key}` cannot be read");
            translator.mistake(&value.span, title, "expected a text such as '30s' or '1h30m'");
        }
        duration
    }

    /// Returns a duration that must be there.
    fn length(&self, translator: &mut Translator<'_>, key: &str) -> Option<Duration> {
        if self.get(key).is_none() {
            let label = format!("expected `{key}: '30s'`");
            return translator.fail(&self.span, "this load has no length", label);
        }
        let length = self.duration(translator, key)?;
        if length.is_zero() {
            let label = "expected a duration of more than 0";
            return translator.fail(&self.get(key)?.span, format!("`{key}` is too short"), label);
        }
        Some(length)
    }
}

/// Reads the load in `options`, or in one of its scenarios.
pub(super) fn read(
    translator: &mut Translator<'_>,
    options: &Members<'_>,
    executor: &str,
) -> Option<Load> {
    let mistakes = translator.mistakes.len();
    let load = match executor {
        "constant-vus" => constant_users(translator, options),
        "ramping-vus" => ramping_users(translator, options),
        "constant-arrival-rate" => constant_rate(translator, options),
        "ramping-arrival-rate" => ramping_rate(translator, options),
        "per-vu-iterations" | "shared-iterations" => iterations(translator, options, executor),
        _ => {
            let label = "expected one of constant-vus, ramping-vus, constant-arrival-rate, \
                         ramping-arrival-rate, per-vu-iterations, shared-iterations";
            let value = options.get("executor").map_or(options.span.clone(), |e| e.span.clone());
            translator.fail(&value, format!("no executor `{executor}` is imported"), label)
        }
    }?;
    (translator.mistakes.len() == mistakes).then_some(load)
}

fn constant_users(translator: &mut Translator<'_>, options: &Members<'_>) -> Option<Load> {
    let users = options.count(translator, "vus").unwrap_or(1).max(1);
    let length = options.length(translator, "duration")?;
    translator.translated(&options.span, "constant-vus");
    let phases = vec![jump(users), hold(length)];
    Some(Load { phases, length, is_open: false, iterations: None })
}

fn ramping_users(translator: &mut Translator<'_>, options: &Members<'_>) -> Option<Load> {
    let key = if options.get("startVUs").is_some() { "startVUs" } else { "vus" };
    let mut present = options.count(translator, key).unwrap_or(1);
    let mut phases = Vec::new();
    phases.extend((present > 0).then(|| jump(present)));
    let mut length = Duration::ZERO;
    for (over, target, span) in stages(translator, options)? {
        length += over;
        if target == present && phases.is_empty() {
            translator.not_needed(&span, "stage", "a load begins with its first users");
            continue;
        }
        translator.translated(&span, "stage");
        phases.push(match over.is_zero() {
            _ if target == present => hold(over.max(JUMP)),
            true => jump(target),
            false => ramp(target, over),
        });
        present = target;
    }
    no_user(translator, options, &phases)?;
    Some(Load { phases, length, is_open: false, iterations: None })
}

fn constant_rate(translator: &mut Translator<'_>, options: &Members<'_>) -> Option<Load> {
    let length = options.length(translator, "duration")?;
    let Some(rate) = options.count(translator, "rate").filter(|rate| *rate > 0) else {
        return translator.fail(&options.span, "no user arrives", "expected `rate: 10`");
    };
    let unit = options.duration(translator, "timeUnit").unwrap_or(SECOND);
    translator.translated(&options.span, "constant-arrival-rate");
    most_users(translator, options);
    let phases = vec![Arrivals::even(show_rate(rate, unit), length).write()];
    Some(Load { phases, length, is_open: true, iterations: None })
}

fn ramping_rate(translator: &mut Translator<'_>, options: &Members<'_>) -> Option<Load> {
    let unit = options.duration(translator, "timeUnit").unwrap_or(SECOND);
    let mut present = options.count(translator, "startRate").unwrap_or(0);
    let mut phases = Vec::new();
    let mut length = Duration::ZERO;
    for (over, target, span) in stages(translator, options)? {
        length += over;
        translator.translated(&span, "stage");
        let [from, to] = [present, target].map(|rate| show_rate(rate, unit));
        match (present, target) {
            // The rate jumps.
            _ if over.is_zero() => {}
            (0, 0) => phases.extend((!phases.is_empty()).then(|| hold(over))),
            _ if target == present => phases.push(Arrivals::even(to, over).write()),
            _ => phases.push(Arrivals::between(from, to, over).write()),
        }
        present = target;
    }
    no_user(translator, options, &phases)?;
    most_users(translator, options);
    Some(Load { phases, length, is_open: true, iterations: None })
}

fn iterations(
    translator: &mut Translator<'_>,
    options: &Members<'_>,
    executor: &str,
) -> Option<Load> {
    let users = options.count(translator, "vus").unwrap_or(1).max(1);
    let all = options.count(translator, "iterations").unwrap_or(1).max(1);
    let length = options.duration(translator, "maxDuration");
    let length = length.or_else(|| options.duration(translator, "duration"));
    let length = length.unwrap_or(ITERATIONS_LENGTH).max(SECOND);
    let iterations = match executor {
        "per-vu-iterations" => Iterations { each: all, users, more: 0 },
        // Users that get none do nothing.
        _ if all < users => Iterations { each: 1, users: all, more: 0 },
        _ => Iterations { each: all / users, users, more: all % users },
    };
    translator.translated(&options.span, executor);
    if executor == "shared-iterations" && iterations.users > 1 {
        let how =
            "each user has the same share of the iterations, and in k6 a fast user takes more";
        translator.approximated(&options.span, executor, how);
    }
    Some(Load { phases: Vec::new(), length, is_open: true, iterations: Some(iterations) })
}

impl Load {
    /// Adds the phases of a set number of iterations.
    pub(super) fn add_iterations(&mut self) {
        let Some(Iterations { users, .. }) = self.iterations else { return };
        let rate = users.saturating_mul(1_000).min(RATE_MAX);
        let all = Duration::from_secs_f64(users as f64 / rate as f64);
        let rate = format!("{}/s", show_count(rate));
        self.phases.push(Arrivals::even(rate, all).most(Some(users)).write());
        self.phases.push(finish(show_duration(self.length)));
    }
}

/// Returns the durations and the targets of `stages`.
fn stages(
    translator: &mut Translator<'_>,
    options: &Members<'_>,
) -> Option<Vec<(Duration, u64, Span)>> {
    let stages = match options.get("stages").map(|stages| &stages.kind) {
        Some(ExpressionKind::List(stages)) if !stages.is_empty() => stages,
        _ => {
            let span = options.get("stages").map_or(options.span.clone(), |s| s.span.clone());
            let label = "expected `stages: [{ duration: '1m', target: 10 }]`";
            return translator.fail(&span, "this load has no stages", label);
        }
    };
    let mut read = Vec::new();
    for stage in stages {
        let members = Members::read(translator, stage, "a stage")?;
        members.check(translator, "a stage", &["duration", "target"]);
        for key in ["duration", "target"] {
            if members.get(key).is_none() {
                let label = format!("expected `{key}`");
                translator.mistake(&stage.span, "this stage is not whole", label);
            }
        }
        let duration = members.duration(translator, "duration");
        let target = members.count(translator, "target");
        if let (Some(duration), Some(target)) = (duration, target) {
            read.push((duration, target, stage.span.clone()));
        }
    }
    Some(read)
}

fn no_user(translator: &mut Translator<'_>, options: &Members<'_>, phases: &[Yaml]) -> Option<()> {
    if phases.is_empty() {
        let label = "expected a stage with a `target` above 0";
        translator.mistake(&options.span, "no user comes in these stages", label);
    }
    (!phases.is_empty()).then_some(())
}

/// Reports the limit of users of an arrival rate.
fn most_users(translator: &mut Translator<'_>, options: &Members<'_>) {
    for key in ["maxVUs", "preAllocatedVUs"] {
        if let Some(value) = options.get(key) {
            let how = "k6 drops an iteration for which it has no user; the scenario begins each";
            return translator.approximated(&value.span, key, how);
        }
    }
}

fn jump(users: u64) -> Yaml {
    ramp(users, JUMP)
}

fn show_rate(rate: u64, unit: Duration) -> String {
    for (name, seconds) in [("s", 1), ("m", 60), ("h", 3_600)] {
        if unit == Duration::from_secs(seconds) {
            return format!("{}/{name}", show_count(rate));
        }
    }
    throng_base::units::show_rate(rate as f64 / unit.as_secs_f64().max(1e-6))
}

/// Parses a duration of Go: `1h30m`, `1.5s`, `500ms`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    throng_base::units::parse_duration(text).ok().filter(|duration| *duration <= DURATION_MAX)
}

const SECOND: Duration = Duration::from_secs(1);

/// How long users take to come where k6 begins all at once.
const JUMP: Duration = Duration::from_millis(1);

/// How long k6 waits for a set number of iterations.
const ITERATIONS_LENGTH: Duration = Duration::from_secs(600);

const MS_MAX: f64 = 2.6e9;

const DURATION_MAX: Duration = Duration::from_secs(30 * 86_400);

const COUNT_MAX: f64 = 1e8;

/// The highest rate at which the users of a set number of iterations come.
const RATE_MAX: u64 = 1_000_000;
