//! Loops and branches.

use super::element::{Attribute, Child, Element};
use super::request::NO_VARIABLES;
use super::steps::{Plugin, StepsReader, Wire};
use super::variables::literal;
use crate::source::Source;
use crate::step;
use crate::yaml::Yaml;

/// A comparison, as a condition of a scenario.
struct Condition {
    holds: String,
    fails: String,
}

impl<'d> StepsReader<'_, '_, 'd> {
    /// Translates `for`: the body is before the comparison, so it runs at least once.
    pub(super) fn for_loop(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let span = element.span();
        let name = self.translator.require(element, "var", "i");
        let bounds = ["from", "to"].map(|name| self.translator.require(element, name, "1"));
        let [Some(from), Some(to)] = bounds else { return Vec::new() };
        let Some(name) = name.map(|name| name.value.trim()) else { return Vec::new() };
        if from.value.contains("%%") || to.value.contains("%%") {
            let remedy = "the number of turns is a number: write it as `times`; the scenario has \
                          the body once";
            self.translator.not_supported(&span, "for", remedy);
            let steps = self.set_to(&[name], "1");
            return self.body(element, 1.0, steps);
        }
        let numbers = [(&from, "from"), (&to, "to")].map(|(attribute, name)| {
            let number = attribute.value.trim().parse::<u64>().ok();
            let number = number.filter(|number| *number <= TURNS_MAX);
            if number.is_none() {
                let title = format!("`{name}` is not such a number");
                let label = "expected a whole number, without a sign";
                self.translator.mistake(&attribute.span, title, label);
            }
            number
        });
        let step = self.translator.integer(element, "incr", 1..=TURNS_MAX);
        let step = if element.get("incr").is_some() { step } else { Some(1) };
        let ([Some(from), Some(to)], Some(step)) = (numbers, step) else { return Vec::new() };
        let turns = if from >= to { 1 } else { (to - from).div_ceil(step) + 1 };
        if from > to {
            let why = "tsung compares behind the body: it runs once, although `from` is more \
                       than `to`; the scenario has it once, too";
            self.translator.suspicious(&span, "for", why);
        } else {
            self.translator.translated(&span, "for");
        }
        let mut steps = self.turns_of_for(element, name, (from, step), turns);
        // tsung keeps the number of the last turn.
        if self.over.is_none() && self.uses.outside(name) {
            steps.extend(self.set_to(&[name], &(from + (turns - 1) * step).to_string()));
            self.variables.is_number(name);
        }
        steps
    }

    fn turns_of_for(
        &mut self,
        element: Element<'d>,
        name: &str,
        (from, step): (u64, u64),
        turns: u64,
    ) -> Vec<Yaml> {
        let uses = element.uses(&self.translator.source, name);
        if turns > 1 && uses {
            return self.counted(element, name, (from, step), turns);
        }
        let before = if uses { self.set_to(&[name], &from.to_string()) } else { Vec::new() };
        let (many, enters) = (turns > 1, self.loops < LOOPS_MAX);
        if !many || !enters {
            if many {
                self.too_deep(element);
            }
            return self.body(element, 1.0, before);
        }
        self.repeat_body(element, turns)
    }

    /// Returns a loop whose body uses the number of the turn.
    fn counted(
        &mut self,
        element: Element<'d>,
        name: &str,
        (from, step): (u64, u64),
        turns: u64,
    ) -> Vec<Yaml> {
        if turns > VALUES_MAX || self.copies * turns > COPIES_MAX {
            let remedy = "a list of values has at most 100; the scenario has the first value in \
                          all turns: make lists of the others";
            self.translator.not_supported(&element.span(), element.with("var"), remedy);
            let steps = self.set_to(&[name], &from.to_string());
            if self.loops >= LOOPS_MAX {
                self.too_deep(element);
                return self.body(element, 1.0, steps);
            }
            let mut steps = steps;
            steps.extend(self.repeat_body(element, turns));
            return steps;
        }
        let values = (0..turns).map(|turn| from + turn * step);
        let values: Vec<_> = values.map(Yaml::plain).collect();
        let mut before = self.connect_for(element);
        let stored = self.variables.store(name, &self.shared.tables.ids);
        self.variables.is_number(name);
        self.copies *= turns;
        let body = self.body(element, turns as f64, Vec::new());
        self.copies /= turns;
        if self.over.is_some() || body.is_empty() {
            before.extend(body);
            return before;
        }
        before.push(step::foreach(stored, values, body));
        before
    }

    fn repeat_body(&mut self, element: Element<'d>, turns: u64) -> Vec<Yaml> {
        let mut before = self.connect_for(element);
        self.loops += 1;
        let body = self.body(element, turns as f64, Vec::new());
        self.loops -= 1;
        if self.over.is_some() || body.is_empty() {
            before.extend(body);
            return before;
        }
        before.push(step::repeat(turns, body));
        before
    }

    /// Translates the body of a loop, after which the user has the same connection as before.
    fn body(&mut self, element: Element<'d>, turns: f64, before: Vec<Yaml>) -> Vec<Yaml> {
        let mut steps = before;
        steps.extend(self.connect_for(element));
        let (was_connected, time) = (self.connected, std::mem::take(&mut self.time));
        self.depth += 1;
        steps.extend(self.steps(element));
        self.depth -= 1;
        let turns = if self.over.is_some() { 1.0 } else { turns };
        self.time = time.plus(self.time.times(turns));
        if turns > 1.0 {
            steps.extend(self.settle(element, was_connected));
        }
        steps
    }

    /// Connects before a loop or branch whose requests tsung connects for by itself.
    fn connect_for(&mut self, element: Element<'d>) -> Vec<Yaml> {
        match self.plugin {
            Plugin::Raw if element.contains("request") => self.connect_before(&element.span()),
            _ => Vec::new(),
        }
    }

    /// Returns the steps after which the user has a connection as it had before.
    fn settle(&mut self, element: Element<'d>, was_connected: bool) -> Vec<Yaml> {
        if self.connected == was_connected || self.wire == Wire::Http {
            return Vec::new();
        }
        let why = "its body leaves the user with another connection than it began with; the \
                   scenario closes or connects at its end";
        self.translator.suspicious(&element.span(), element.name(), why);
        match was_connected {
            true => vec![self.connect(None)],
            false => self.close(),
        }
    }

    fn too_deep(&mut self, element: Element<'d>) {
        let remedy = "loops are nested at most 4 deep; the scenario has its body once";
        self.translator.not_supported(&element.span(), element.name(), remedy);
    }

    pub(super) fn foreach(&mut self, element: Element<'d>) -> Vec<Yaml> {
        self.translator.require(element, "name", "item");
        self.translator.require(element, "in", "items");
        let remedy = "a user of throng keeps texts, and no lists; capture the members that you \
                      need, and name them in a `foreach`";
        self.translator.not_supported(&element.span(), "foreach", remedy);
        for inner in element.all("request") {
            self.translator.not_supported(&inner.span(), "request", "its `foreach` is left out");
        }
        Vec::new()
    }

    /// Translates `repeat`: the body is before the comparison.
    pub(super) fn repeat(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let span = element.span();
        let name = self.translator.require(element, "name", "again");
        let most = self.translator.integer(element, "max_repeat", 0..=1_000_000).unwrap_or(20);
        let ends: Vec<_> = element.elements().collect();
        let end = ends.last().filter(|end| matches!(end.name(), "while" | "until"));
        let (Some(name), Some(end)) = (name, end) else {
            if end.is_none() {
                let label = "expected `<while .../>` or `<until .../>` as its last element";
                self.translator.mistake(&span, "this loop has no end", label);
            }
            return Vec::new();
        };
        let name = name.value.trim();
        if self.uses.any(name) {
            let remedy = "the number of the turn is no variable of the scenario: count with `set`";
            self.translator.not_supported(&span, "repeat name", remedy);
        }
        let counter = self.counter(name);
        // What ends the loop may be set in its body.
        let goes_on = format!("{name} goes on");
        let mut before = self.connect_for(element);
        let set = self.set_to(&[&goes_on], "1");
        let stored = self.variables.find(&goes_on).unwrap_or_default().to_owned();
        let deep = self.loops >= LOOPS_MAX;
        self.loops += 1;
        let turns = if deep { 1.0 } else { most as f64 + 1.0 };
        let mut body = self.body(element, turns, Vec::new());
        self.loops -= 1;
        let condition = self.condition(*end, false);
        let once = match &condition {
            None => true,
            Some(_) if deep => {
                self.too_deep(element);
                true
            }
            Some(_) => self.over.is_some() || body.is_empty() || most == 0,
        };
        let Some(condition) = condition.filter(|_| !once) else {
            if !deep {
                self.translator.translated(&span, "repeat");
            }
            before.extend(body);
            return before;
        };
        self.translator.translated(&span, "repeat");
        self.translator.translated(&end.span(), end.name());
        let stops = if end.name() == "while" { condition.fails } else { condition.holds };
        let stop = || vec![step::set(&*stored, "0")];
        let end = step::branch(stops, stop());
        body.push(match counter {
            None => end,
            Some(counter) => {
                let counted = vec![step::set(&*counter, format!("${{{counter} + 1}}")), end];
                step::branch_else(format!("${{{counter}}} > {most}"), stop(), counted)
            }
        });
        let turn = vec![step::branch(format!("${{{stored}}} == 1"), body)];
        before.extend(set);
        before.push(step::repeat(most + 1, turn));
        before
    }

    /// Returns the name of the value that counts the turns of all loops of this name: tsung never
    /// begins anew. `None` if there is one such loop, which the user runs once.
    fn counter(&mut self, repeat: &str) -> Option<String> {
        if !self.is_repeated() && !self.uses.shares(repeat) {
            return None;
        }
        let own = format!("{repeat} turns");
        if self.variables.find(&own).is_none() {
            let set = self.set_to(&[&own], "1");
            self.counters.extend(set);
        }
        self.variables.find(&own).map(str::to_owned)
    }

    /// Translates `if`.
    pub(super) fn if_then(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let condition = self.condition(element, true);
        let mut before = self.connect_for(element);
        let (was_connected, was_over) = (self.connected, self.over);
        self.depth += 1;
        let mut steps = self.steps(element);
        self.depth -= 1;
        if self.over != was_over {
            self.over = was_over;
            let remedy = "no step ends the session of a user in the middle of a list: put what \
                          follows into an `else`";
            self.translator.not_supported(&element.span(), "abort", remedy);
        }
        let Some(condition) = condition else {
            before.extend(steps);
            return before;
        };
        steps.extend(self.settle(element, was_connected));
        self.translator.translated(&element.span(), "if");
        if !steps.is_empty() {
            before.push(step::branch(condition.holds, steps));
        }
        before
    }

    /// Reports whether this is an `if` whose body ends the session.
    pub(super) fn aborts_in(&self, element: Element<'d>) -> bool {
        let last = element.elements().last();
        let is_abort = |last: &Element<'_>| {
            last.name() == "abort" && last.value("type").unwrap_or("session") == "session"
        };
        element.name() == "if" && last.as_ref().is_some_and(is_abort)
    }

    /// Translates an `if` whose body ends the session: what follows it is the other branch.
    pub(super) fn if_else(&mut self, element: Element<'d>, rest: &[Child<'d>]) -> Vec<Yaml> {
        let mut before = self.connect_for(element);
        let Some(condition) = self.condition(element, true) else {
            before.extend(self.steps(element));
            return before;
        };
        self.translator.translated(&element.span(), "if");
        let (was_connected, time) = (self.connected, self.time);
        let mut body = self.steps(element);
        body.extend(self.close());
        let of_body = std::mem::replace(&mut self.time, time);
        (self.over, self.connected) = (None, was_connected);
        let mut rest = self.list(rest);
        rest.extend(self.close());
        self.time = self.time.max(of_body);
        before.extend(match (body.is_empty(), rest.is_empty()) {
            (true, true) => None,
            (true, false) => Some(step::branch(condition.fails, rest)),
            (false, true) => Some(step::branch(condition.holds, body)),
            (false, false) => Some(step::branch_else(condition.holds, body, rest)),
        });
        before
    }

    /// Reads a comparison, of an `if` or of the end of a loop. `None` if the scenario cannot have
    /// it, which is reported: tsung then goes through the steps once, as it does where a variable
    /// has no value.
    fn condition(&mut self, element: Element<'d>, is_if: bool) -> Option<Condition> {
        let span = element.span();
        let name = self.translator.require(element, "var", "name")?;
        let given: Vec<_> =
            RELATIONS.iter().filter_map(|row| Some((row, element.get(row.0)?))).collect();
        let [((relation, holds, fails), value)] = &given[..] else {
            let label = "expected one of eq, neq, gt, gte, lt and lte";
            return self.translator.fail(&span, "this comparison has not one relation", label);
        };
        if name.value.contains('[') {
            let remedy = "a user of throng keeps texts, and no lists; the scenario takes the \
                          steps always";
            return self.translator.omit(&span, element.with("var"), remedy);
        }
        let Some(known) = self.variables.find(name.value.trim()).map(str::to_owned) else {
            let why = "no step before it sets the variable: tsung goes through the steps once, \
                       and so does the scenario";
            self.translator.suspicious(&span, element.name(), why);
            return None;
        };
        self.report_relation(element, relation, value, is_if);
        let right = match is_if {
            true => self.variables.text(self.translator, value.value, true, &value.span),
            false => literal(self.translator, value.value, &value.span, NO_VARIABLES),
        };
        let right = right.trim();
        let has_relation = value.value.contains(['<', '>', '=', '!', '{', '}']);
        if right.is_empty() || has_relation || right.starts_with("$${") {
            let remedy = "a condition compares with a text that is not empty and has none of \
                          `< > = ! { }`; the scenario takes the steps always";
            return self.translator.omit(&span, element.name(), remedy);
        }
        Some(Condition {
            holds: format!("${{{known}}} {holds} {right}"),
            fails: format!("${{{known}}} {fails} {right}"),
        })
    }
}

impl<'d> StepsReader<'_, '_, 'd> {
    /// Reports how a comparison differs, in tsung as it is or in older ones.
    fn report_relation(
        &mut self,
        element: Element<'d>,
        relation: &str,
        value: &Attribute<'d>,
        is_if: bool,
    ) {
        let (text, span) = (value.value.trim(), element.span());
        let is_number = text.parse::<f64>().is_ok();
        let is_whole = text.parse::<i64>().is_ok_and(|whole| whole.to_string() == text);
        if matches!(relation, "gte" | "lte") {
            let how = "so compares tsung 1.8; up to 1.7 `gte` is `gt`, and `lte` is `lt`";
            self.approximated_once(&span, element.name(), how);
        } else if is_if && text.contains("%%") {
            let how = "tsung 1.8 fills in the variables of the value; up to 1.7 it compares with \
                       the text as it stands";
            self.approximated_once(&span, element.name(), how);
        } else if matches!(relation, "eq" | "neq") && is_number && !is_whole {
            let how = "tsung compares the texts, in which 1.0 is not 1; the scenario compares the \
                       numbers";
            self.approximated_once(&span, element.name(), how);
        }
    }
}

impl Element<'_> {
    /// Reports whether the text of the element uses the variable.
    fn uses(self, source: &Source<'_>, name: &str) -> bool {
        let text = source.slice(&self.range());
        text.contains(&format!("%%_{name}%%"))
            || text.contains(&format!("var=\"{name}\""))
                && self.elements().any(|inner| inner.compares(name))
    }

    fn compares(self, name: &str) -> bool {
        let is_own = matches!(self.name(), "if" | "while" | "until");
        is_own && self.value("var") == Some(name)
            || self.elements().any(|inner| inner.compares(name))
    }
}

/// Relations, as a condition has them, and their opposites.
const RELATIONS: [(&str, &str, &str); 6] = [
    ("eq", "==", "!="),
    ("neq", "!=", "=="),
    ("gt", ">", "<="),
    ("gte", ">=", "<"),
    ("lt", "<", ">="),
    ("lte", "<=", ">"),
];

/// Deepest nesting of loops.
const LOOPS_MAX: usize = 4;

/// Most values of a list.
const VALUES_MAX: u64 = 100;

/// How often steps may stand in the program, because of lists of values.
const COPIES_MAX: u64 = 1_000;

/// Most turns of a loop.
const TURNS_MAX: u64 = 1_000_000_000;
