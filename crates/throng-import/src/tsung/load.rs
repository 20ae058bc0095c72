//! `load`: the phases, and the moments at which users arrive.

use std::time::Duration;

use throng_base::units::{show_count, show_duration};

use super::element::{Child, Element};
use super::think::{SECONDS_MAX, StepsTime, seconds};
use crate::phase::{self, Arrivals};
use crate::rate::show_whole;
use crate::translator::Translator;
use crate::yaml::Yaml;

/// The load, as far as it does not depend on the sessions.
#[derive(Debug)]
pub(super) struct Load<'d> {
    phases: Vec<LoadPhase>,
    /// Comments behind the last phase.
    pub(super) comments: Vec<String>,
    /// How often the phases run.
    turns: u64,
    /// When tsung stops all users.
    duration: Option<Duration>,
    /// Session weights of the only phase.
    pub(super) setups: Vec<Element<'d>>,
}

#[derive(Clone, Debug)]
struct LoadPhase {
    /// tsung runs the phases in the order of their numbers.
    number: u64,
    comments: Vec<String>,
    rate: Rate,
    span: Duration,
    most: Option<u64>,
    /// True if the next phase begins when the users of this one have finished.
    waits: bool,
    is_even: bool,
}

/// A rate of arrivals.
#[derive(Clone, Debug, PartialEq)]
struct Rate {
    per_second: f64,
    /// How a scenario says it.
    text: String,
}

impl<'d> Load<'d> {
    pub(super) fn read(translator: &mut Translator<'_>, root: Element<'d>) -> Option<Self> {
        let Some(element) = root.child("load") else {
            let label = "expected `<load>` with its phases";
            return translator.fail(&root.span(), "there is no load", label);
        };
        let mistakes = translator.mistakes.len();
        let turns = translator.integer(element, "loop", 0..=PHASES_MAX as u64 - 1).unwrap_or(0) + 1;
        let duration = read_span(translator, element, "duration", "second");
        for name in ["loop", "duration"].into_iter().filter(|name| element.get(name).is_some()) {
            translator.translated(&element.span(), element.with(name));
        }
        let mut load =
            Self { phases: Vec::new(), comments: Vec::new(), turns, duration, setups: Vec::new() };
        let phases = element.elements().filter(|child| child.name() == "arrivalphase").count();
        let mut users = Vec::new();
        for child in element.children() {
            match child {
                Child::Comment(text) => load.comments.push(text.to_owned()),
                Child::Element(child) if child.name() == "user" => users.push(child),
                Child::Element(child) => load.read_phase(translator, child, phases == 1),
            }
        }
        load.phases.sort_by_key(|phase| phase.number);
        load.read_static(translator, &users);
        if load.phases.is_empty() && translator.mistakes.len() == mistakes {
            let label = "expected an `arrivalphase` with `users`";
            translator.mistake(&element.span(), "no users arrive", label);
        }
        if load.phases.len() as u64 * turns > PHASES_MAX as u64 {
            let label = format!("expected at most {PHASES_MAX} phases, each turn counted");
            translator.mistake(&element.span(), "there are too many phases", label);
        }
        let total = load.phases.iter().map(|phase| phase.span.as_secs_f64()).sum::<f64>();
        if total * turns as f64 > 10.0 * SECONDS_MAX {
            let label = "expected at most ten years";
            translator.mistake(&element.span(), "the phases take too long", label);
        }
        (translator.mistakes.len() == mistakes).then_some(load)
    }

    fn read_phase(&mut self, translator: &mut Translator<'_>, phase: Element<'d>, is_only: bool) {
        let comments = std::mem::take(&mut self.comments);
        let number = translator.require(phase, "phase", "1");
        let number = number.and_then(|_| translator.integer(phase, "phase", 0..=USERS_MAX));
        if number.is_some_and(|number| self.phases.iter().any(|other| other.number == number)) {
            let label = "expected a number that no other phase has: tsung refuses the file";
            let found = phase.get("phase").map_or(phase.span(), |found| found.span);
            translator.mistake(&found, "there is a phase with this number already", label);
        }
        let span = translator.require(phase, "duration", "60");
        let span = span.and_then(|_| read_span(translator, phase, "duration", "second"));
        let waits = translator.flag(phase, "wait_all_sessions_end").unwrap_or(false);
        translator.translated(&phase.span(), "arrivalphase");
        if waits {
            let why = "the next phase begins when nearly all users must have finished by their \
                       think times; throng does not wait for the last one";
            translator.approximated(&phase.span(), phase.with("wait_all_sessions_end"), why);
        }
        for setup in phase.elements().filter(|child| child.name() == "session_setup") {
            self.read_setup(translator, setup, is_only);
        }
        let mut all = phase.elements().filter(|child| child.name() == "users");
        let Some(users) = all.next() else {
            let label = "expected `<users arrivalrate=\"10\" unit=\"second\"/>` in it";
            return translator.mistake(&phase.span(), "no users arrive in this phase", label);
        };
        if let Some(second) = all.next() {
            let label = "expected one for each phase";
            translator.mistake(&second.span(), "this phase has `users` already", label);
        }
        let rate = read_rate(translator, users);
        let most = translator.integer(users, "maxnumber", 1..=USERS_MAX);
        let (Some(rate), Some(span), Some(number)) = (rate, span, number) else { return };
        let planned = (rate.per_second * span.as_secs_f64()).round();
        let planned = most.map_or(planned, |most| planned.min(most as f64));
        let how = format!(
            "tsung cuts the times between arrivals to whole milliseconds, and starts {} in this \
             phase at most; the scenario keeps the moments exactly, and their number varies as \
             that of independent people does",
            show_count(planned as u64),
        );
        translator.approximated(&users.span(), "users", how);
        let phase = LoadPhase { number, comments, rate, span, most, waits, is_even: false };
        self.phases.push(phase);
    }

    fn read_setup(&mut self, translator: &mut Translator<'_>, setup: Element<'d>, is_only: bool) {
        if is_only {
            translator.translated(&setup.span(), "session_setup");
            self.setups.push(setup);
            return;
        }
        let remedy = "the classes of a scenario have the same weights in all phases; make a \
                      scenario of each phase";
        translator.not_supported(&setup.span(), "session_setup", remedy);
    }

    /// Reads users with a moment of their own.
    fn read_static(&mut self, translator: &mut Translator<'_>, users: &[Element<'d>]) {
        let mut last = 0.0f64;
        for user in users {
            translator.require(*user, "session", "name");
            let at = translator.number(*user, "start_time", 0.0..=SECONDS_MAX).unwrap_or(0.0);
            let unit = translator.word(*user, "unit", &UNITS).unwrap_or("second");
            last = last.max(at * unit_seconds(unit));
        }
        if last > SECONDS_MAX {
            return translator.mistake(
                &users[0].span(),
                "`start_time` is too late",
                "expected a year",
            );
        }
        if !self.phases.is_empty() {
            let remedy = "a scenario has no single users beside its arrivals; run them as a \
                          scenario of their own, with `most: 1`";
            for user in users {
                translator.not_supported(&user.span(), "user", remedy);
            }
            return;
        }
        for user in users {
            let how = "the scenario starts all such users at equal distances, up to the last \
                       `start_time`, and deals the sessions out by their weights";
            translator.approximated(&user.span(), "user", how);
        }
        if !users.is_empty() {
            let span = seconds(last.max(1.0));
            let per_second = users.len() as f64 / span.as_secs_f64();
            self.phases.push(LoadPhase {
                number: 0,
                comments: std::mem::take(&mut self.comments),
                rate: Rate::new(per_second, "second"),
                span,
                most: Some(users.len() as u64),
                waits: false,
                is_even: true,
            });
        }
    }

    /// Returns how many users the load starts at least, nearly always.
    pub(super) fn users_min(&self) -> u64 {
        let planned = |phase: &LoadPhase| {
            let planned = (phase.rate.per_second * phase.span.as_secs_f64()).floor();
            (planned as u64).min(phase.most.unwrap_or(u64::MAX))
        };
        self.phases.iter().map(planned).fold(0, u64::saturating_add).max(1)
    }

    /// Writes the phases, and a phase in which the users finish, who take `time`.
    pub(super) fn write(&self, translator: &mut Translator<'_>, time: StepsTime) -> Vec<Yaml> {
        let finish = time.nearly_all();
        let mut written = Vec::new();
        let mut left = self.duration.unwrap_or(Duration::MAX);
        let has_end = self.duration.is_some();
        // With an end, the turns are written one by one, because the last ones may be cut off.
        let turns = if has_end { self.turns } else { 1 };
        // The last phase is followed by the one that ends with the users.
        let is_last = |turn, at| turn + 1 == self.turns && at + 1 == self.phases.len();
        for turn in 0..turns {
            for (at, phase) in self.phases.iter().enumerate() {
                if left.is_zero() {
                    break;
                }
                written.push(phase.write(phase.span.min(left)));
                left = left.saturating_sub(phase.span);
                if phase.waits && !is_last(turn, at) && !finish.is_zero() && !left.is_zero() {
                    let hold = finish.min(left);
                    written.push(phase::hold(hold).comment("The users of this phase finish."));
                    left = left.saturating_sub(hold);
                }
            }
        }
        if !has_end && self.turns > 1 {
            let turns = ("times", Yaml::plain(self.turns));
            written = vec![Yaml::entry("loop", Yaml::map([turns, ("do", Yaml::list(written))]))];
        }
        if has_end && !left.is_zero() {
            let text = "No more users arrive; tsung stops all of them after its `duration`.";
            written.push(phase::finish(show_duration(left)).comment(text));
        } else if !has_end && time.is_open {
            let hold = finish.max(OPEN_HOLD);
            let text = "tsung runs until its users have finished, and these may never.";
            written.push(phase::finish(show_duration(hold)).comment(text));
            let how = format!(
                "tsung runs until the last user has finished; the scenario ends {} after the \
                 last arrival at the latest",
                show_duration(hold)
            );
            translator.approximated(&(0..0), "load", how);
        } else if !has_end && finish > GRACE {
            let text = "tsung runs until the last user has finished.";
            written.push(phase::finish(show_duration(finish)).comment(text));
        }
        written
    }
}

impl LoadPhase {
    fn write(&self, span: Duration) -> Yaml {
        let arrivals = Arrivals::random(&self.rate.text, span).most(self.most);
        Arrivals { is_even: self.is_even, ..arrivals }.write().comments(&self.comments)
    }
}

impl Rate {
    /// Returns a rate, in the unit in which it is a whole number, or else in `unit`.
    fn new(per_second: f64, unit: &str) -> Self {
        let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let own = match unit {
            "hour" => 2,
            "minute" => 1,
            _ => 0,
        };
        let in_own = per_second * units[own].1;
        let thousandths = (in_own * 1e3).round();
        if thousandths >= 1.0 && (thousandths / 1e3 - in_own).abs() < 1e-12 * in_own {
            let whole = in_own.fract() == 0.0 && in_own < 1e12;
            let text =
                if whole { show_count(in_own as u64) } else { (thousandths / 1e3).to_string() };
            return Self { per_second, text: format!("{text}/{}", units[own].0) };
        }
        if let Some(text) = show_whole(per_second) {
            return Self { per_second, text };
        }
        // Six digits of a rate that is not whole, whatever its size.
        let large = |(_, seconds): &&(&str, f64)| per_second * seconds >= 1.0;
        let (unit, seconds) = units[own..].iter().find(large).unwrap_or(&units[2]);
        let digits = format!("{:.9}", per_second * seconds);
        Self { per_second, text: format!("{}/{unit}", digits.trim_end_matches('0')) }
    }
}

/// Reads `arrivalrate` or `interarrival`.
fn read_rate(translator: &mut Translator<'_>, users: Element<'_>) -> Option<Rate> {
    let unit = translator.require(users, "unit", "second");
    let unit = unit.and_then(|_| translator.word(users, "unit", &UNITS))?;
    let given = (users.get("arrivalrate"), users.get("interarrival"));
    let per_second = match given {
        (Some(_), None) => {
            let rate = translator.number(users, "arrivalrate", RATE_MIN..=RATE_MAX)?;
            rate / unit_seconds(unit)
        }
        (None, Some(_)) => {
            let between = translator.number(users, "interarrival", RATE_MIN..=RATE_MAX)?;
            1.0 / (between * unit_seconds(unit))
        }
        (Some(_), Some(second)) => {
            let label = "expected one of `arrivalrate` and `interarrival`";
            return translator.fail(&second.span, "the rate is written twice", label);
        }
        (None, None) => {
            let label = "expected `arrivalrate` or `interarrival`";
            return translator.fail(&users.span(), "these users have no rate", label);
        }
    };
    if !(RATE_MIN..=RATE_MAX).contains(&per_second) {
        let label = "expected from one in a few months to a thousand million a second";
        return translator.fail(&users.span(), "this rate is out of range", label);
    }
    Some(Rate::new(per_second, unit))
}

/// Reads a time in the unit of the same element: a whole number, as tsung reads it.
fn read_span(
    translator: &mut Translator<'_>,
    element: Element<'_>,
    name: &str,
    default: &str,
) -> Option<Duration> {
    let number = translator.integer(element, name, 1..=(SECONDS_MAX * 1e3) as u64)?;
    let unit = match element.get("unit") {
        Some(_) => translator.word(element, "unit", &UNITS)?,
        None => default,
    };
    let value = number as f64 * unit_seconds(unit);
    if !(1e-3..=SECONDS_MAX).contains(&value) {
        let span = element.get(name).map_or(element.span(), |found| found.span);
        let label = "expected from a millisecond to a year";
        return translator.fail(&span, format!("this `{name}` is out of range"), label);
    }
    Some(seconds(value))
}

fn unit_seconds(unit: &str) -> f64 {
    match unit {
        "hour" => 3600.0,
        "minute" => 60.0,
        "millisecond" => 1e-3,
        _ => 1.0,
    }
}

const UNITS: [&str; 4] = ["hour", "minute", "second", "millisecond"];

/// Lowest and highest rate or time between arrivals.
const RATE_MIN: f64 = 1e-7;
const RATE_MAX: f64 = 1e9;

/// Most phases of a scenario, each turn of a loop counted.
const PHASES_MAX: usize = 5_000;

const USERS_MAX: u64 = 1_000_000_000;

/// Time that throng gives users to finish.
const GRACE: Duration = Duration::from_secs(8);

/// How long the scenario runs on where users may never finish.
const OPEN_HOLD: Duration = Duration::from_secs(300);

/// Checks a number that the scenario does without.
pub(super) fn unit_free_number(translator: &mut Translator<'_>, element: Element<'_>, name: &str) {
    translator.number(element, name, 0.0..=RATE_MAX);
}
