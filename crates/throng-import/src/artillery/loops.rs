//! `loop`: steps that a user takes several times (`engine_util.ts`, `createLoopWithCount`).
//!
//! Artillery keeps the number of the turn and the element in variables of the user, which stay
//! after the loop, and which a loop within the loop writes, too.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::source::Span;
use crate::step;
use crate::yaml::Yaml;

use super::engine::Engine;
use super::flow::Flow;
use super::scalar::Scalar;
use super::template::UNDEFINED;
use super::variables::Kind;
use crate::fields::Fields;

/// The turns of a loop with `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    /// The number of the first turn.
    from: u64,
    /// How many there are; `None` for a loop without an end.
    times: Option<u64>,
}

/// A loop, and the names of its variables.
struct Loop<'n> {
    span: Span,
    body: &'n YamlNode,
    /// The name of the number of the turn.
    index: String,
    /// The name of the element.
    element: String,
}

impl Flow<'_, '_, '_> {
    /// Translates a loop.
    pub(super) fn repeat(
        &mut self,
        span: &Span,
        node: &YamlNode,
        body: &YamlNode,
        steps: &mut Vec<Yaml>,
    ) {
        let keys: Vec<_> = LOOP_KEYS.iter().copied().chain(["loop"]).collect();
        let Some(fields) = Fields::read(self.translator, node, "`loop`", &keys) else { return };
        let named = |key: &str| fields.get(key).and_then(YamlNode::scalar);
        if self.engine == Engine::Ws && named("loopElement").is_some() {
            let why = "the engine ws does not read it: the element is `$loopElement`";
            self.translator.suspicious(span, "loopElement", why);
        }
        let element = named("loopElement").filter(|_| self.engine == Engine::Http);
        let turn = Loop {
            span: span.clone(),
            body,
            index: named("loopValue").unwrap_or("$loopCount").to_owned(),
            element: element.unwrap_or("$loopElement").to_owned(),
        };
        if let Some((span, over)) = fields.entry("over") {
            return self.over(&turn, &span, over, steps);
        }
        if let Some((span, _)) = fields.entry("whileTrue") {
            let remedy = "its condition is JavaScript; write `repeat: {while, do}`; the steps \
                          stand here once";
            self.translator.not_supported(&span, "loop whileTrue", remedy);
            self.variables.store_known(&turn.index, "0");
            return steps.extend(self.steps(body));
        }
        match self.turns(fields.get("count")) {
            Ok(turns) => self.counted(&turn, turns, steps),
            Err(count) => {
                let remedy = "a loop has a number of turns here; its steps stand here once";
                self.translator.not_supported(&count, "loop count", remedy);
                self.variables.store_known(&turn.index, "0");
                self.variables.store_known(&turn.element, "0");
                steps.extend(self.steps(body));
            }
        }
    }

    /// Returns the turns of a loop, or the place of a count that is not known before the run
    /// (`engine_util.ts`, `parseLoopCount`; without a count, or with 0, `step` says -1).
    fn turns(&mut self, count: Option<&YamlNode>) -> Result<Turns, Span> {
        let endless = Turns { from: 0, times: None };
        let Some(node) = count else { return Ok(endless) };
        let Some(text) = node.scalar() else { return Ok(endless) };
        let source = self.translator.source;
        if let Scalar::Typed { json, .. } = Scalar::of(&source, node, text) {
            let count: f64 = json.parse().unwrap_or(0.0);
            if count == 0.0 || count == -1.0 {
                return Ok(endless);
            }
            return Ok(Turns { from: 0, times: Some(count.max(0.0).ceil() as u64) });
        }
        let text = match super::template::only_variable(text) {
            Some(name) => self.variables.known_text(name).ok_or(node.span.clone())?,
            None if text.contains("{{") => return Err(node.span.clone()),
            None => text.to_owned(),
        };
        if let Ok(count) = text.trim().parse::<f64>() {
            let times = (count != -1.0).then(|| count.max(0.0).ceil() as u64);
            return Ok(Turns { from: 0, times });
        }
        let bounds: Vec<_> = text.split('-').map(str::trim).collect();
        let bound = |at: usize| bounds.get(at).and_then(|text| text.parse::<u64>().ok());
        let (from, to) = (bound(0).unwrap_or(0), bound(1).unwrap_or(0));
        Ok(Turns { from, times: Some(to.saturating_sub(from)) })
    }

    fn counted(&mut self, turn: &Loop<'_>, turns: Turns, steps: &mut Vec<Yaml>) {
        let Turns { from, times } = turns;
        self.variables.store_known(&turn.element, &from.to_string());
        if times == Some(0) {
            self.variables.store_known(&turn.index, &from.to_string());
            let why = "Artillery takes no turn: its count is no number, or not above 0";
            return self.translator.not_needed(&turn.span, "loop", why);
        }
        // A loop within this one leaves its own number, from which this one goes on.
        let of_inner = number_after(turn.body, &turn.index, self);
        let next = of_inner.map(|number| number + 1);
        let is_named = names(turn.body, &turn.index);
        match times {
            Some(times) if is_named && times <= VALUES_MAX => {
                let number = |turn: u64| match (turn, next) {
                    (0, _) | (_, None) => from + turn,
                    (_, Some(next)) => next,
                };
                let values = (0..times).map(|turn| Yaml::plain(number(turn))).collect();
                self.foreach((&turn.index, "loop_count"), values, turn.body, None, steps);
                self.translator.translated(&turn.span, "loop");
            }
            _ if is_named => self.numbered(turn, turns, next, steps),
            _ => self.unnumbered(turn, times, steps),
        }
        let end = match (next, times) {
            (Some(next), _) => next,
            (None, times) => from + times.unwrap_or_default(),
        };
        self.variables.store_known(&turn.index, &end.to_string());
    }

    /// Translates a loop whose steps do not name the number of the turn.
    fn unnumbered(&mut self, turn: &Loop<'_>, times: Option<u64>, steps: &mut Vec<Yaml>) {
        let body = self.steps(turn.body);
        if body.is_empty() {
            return self.translator.not_needed(&turn.span, "loop", "it has no steps");
        }
        self.push_repeat(turn, times, body, steps);
    }

    /// Translates a loop that counts its turns in a value of the user.
    fn numbered(
        &mut self,
        turn: &Loop<'_>,
        turns: Turns,
        next: Option<u64>,
        steps: &mut Vec<Yaml>,
    ) {
        let ours = self.variables.store_number(&turn.index, "loop_count");
        let set = |value: String| step::set(&*ours, value);
        steps.push(set(turns.from.to_string()));
        let mut body = self.steps(turn.body);
        body.push(set(match next {
            Some(next) => next.to_string(),
            None => format!("${{{ours} + 1}}"),
        }));
        self.push_repeat(turn, turns.times, body, steps);
    }

    fn push_repeat(
        &mut self,
        turn: &Loop<'_>,
        times: Option<u64>,
        body: Vec<Yaml>,
        steps: &mut Vec<Yaml>,
    ) {
        steps.push(match times {
            Some(times) => {
                self.translator.translated(&turn.span, "loop");
                // The first turn is the last one, if the user ends in it.
                step::repeat(if self.is_over { 1 } else { times }, body)
            }
            None => {
                let how = "Artillery takes turns without end; in the scenario the end of the run \
                           ends them, 10s after the last arrival";
                self.translator.approximated(&turn.span, "loop", how);
                // A condition that always holds: one without a variable is a mistake.
                step::repeat_while("${user.id} >= 0", body)
            }
        });
    }

    /// Translates a loop over values.
    fn over(&mut self, turn: &Loop<'_>, span: &Span, node: &YamlNode, steps: &mut Vec<Yaml>) {
        if let YamlKind::Scalar(name) = &node.kind
            && self.variables.value(name).is_some()
            && self.variables.kind(name) != Kind::Any
        {
            let why = "the variable has one value for each user, also if the file has a list of \
                       them, and Artillery loops over no text: it takes no turn";
            self.translator.suspicious(span, "loop over", why);
            self.variables.store_known(&turn.index, "0");
            return;
        }
        let values = match &node.kind {
            YamlKind::List(items) => self.values(items),
            _ => None,
        };
        let fits = |values: &Vec<Yaml>| values.len() as u64 <= VALUES_MAX;
        let Some(values) = values.filter(fits) else {
            let remedy = "a loop goes over 1 to 100 texts that stand in the file; the steps \
                          stand here once";
            self.translator.not_supported(span, "loop over", remedy);
            self.variables.store_known(&turn.index, "0");
            let ours = self.variables.store(&turn.element);
            steps.push(step::set(ours, ""));
            return steps.extend(self.steps(turn.body));
        };
        let times = values.len() as u64;
        if times == 0 {
            self.variables.store_known(&turn.index, "0");
            return self.translator.not_needed(span, "loop over", "the list is empty");
        }
        self.translator.translated(span, "loop over");
        let inner = match &*turn.element {
            "$loopElement" => "element",
            name => name,
        };
        let of_inner = number_after(turn.body, &turn.index, self);
        let next = of_inner.map(|number| number + 1);
        let is_numbered = names(turn.body, &turn.index) && turn.index != turn.element;
        let mut add = None;
        if is_numbered {
            let ours = self.variables.store_number(&turn.index, "loop_count");
            let set = |value: String| step::set(&*ours, value);
            steps.push(set("0".to_owned()));
            add = Some(set(next.map_or(format!("${{{ours} + 1}}"), |next| next.to_string())));
        }
        self.foreach((&turn.element, inner), values, turn.body, add, steps);
        self.variables.store_known(&turn.index, &next.unwrap_or(times).to_string());
        self.variables.store_known(&turn.element, UNDEFINED);
    }

    /// Returns the values of a list; `None` if one of them is no text and no number.
    fn values(&mut self, items: &[YamlNode]) -> Option<Vec<Yaml>> {
        let mut values = Vec::new();
        for item in items {
            let source = self.translator.source;
            values.push(match Scalar::of(&source, item, item.scalar()?) {
                Scalar::Typed { text, .. } => Yaml::plain(text),
                Scalar::Text(text) => {
                    let translator = &mut *self.translator;
                    let variables = &mut self.variables;
                    Yaml::text(super::template::translate(translator, variables, &item.span, &text))
                }
            });
        }
        Some(values)
    }

    /// Adds a step that takes the body once for each value, with `last` at its end. The value has
    /// `name` in the source and looks like `inner` in the scenario.
    fn foreach(
        &mut self,
        (name, inner): (&str, &str),
        mut values: Vec<Yaml>,
        body: &YamlNode,
        last: Option<Yaml>,
        steps: &mut Vec<Yaml>,
    ) {
        let ours = self.variables.store_as(name, inner);
        if !values.iter().any(Yaml::is_text) {
            self.variables.is(name, Kind::Number);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        if values.iter().flat_map(Yaml::scalars).all(|value| value.chars().all(is_plain)) {
            self.variables.is_plain(&ours);
        }
        let mut turn = self.steps(body);
        if turn.is_empty() {
            return;
        }
        turn.extend(last);
        if self.is_over {
            values.truncate(1);
        }
        steps.push(step::foreach(ours, values, turn));
    }
}

/// Reports whether a variable stands in a text of these steps.
fn names(node: &YamlNode, name: &str) -> bool {
    match &node.kind {
        YamlKind::Nothing => false,
        YamlKind::Scalar(text) => text.contains(name),
        YamlKind::List(items) => items.iter().any(|item| names(item, name)),
        YamlKind::Map(entries) => {
            entries.iter().any(|(key, value)| names(key, name) || names(value, name))
        }
    }
}

/// Returns the number that the last loop in these steps leaves in the variable `name`; `None` if
/// no loop writes it.
fn number_after(body: &YamlNode, name: &str, flow: &mut Flow<'_, '_, '_>) -> Option<u64> {
    let YamlKind::List(steps) = &body.kind else { return None };
    steps.iter().rev().find_map(|step| {
        let YamlKind::Map(entries) = &step.kind else { return None };
        let entry = |key: &str| {
            entries.iter().find(|(known, _)| known.scalar() == Some(key)).map(|(_, value)| value)
        };
        let inner = entry("loop")?;
        let index = entry("loopValue").and_then(YamlNode::scalar).unwrap_or("$loopCount");
        let of_inner = number_after(inner, name, flow);
        if index != name {
            return of_inner;
        }
        if let Some(number) = of_inner {
            return Some(number + 1);
        }
        if let Some(YamlKind::List(items)) = entry("over").map(|over| &over.kind) {
            return Some(items.len() as u64);
        }
        let turns = flow.turns(entry("count")).ok()?;
        Some(turns.from + turns.times?)
    })
}

/// Keys beside the name of a step.
pub(super) const LOOP_KEYS: [&str; 5] = ["count", "over", "whileTrue", "loopValue", "loopElement"];

/// The most values of a loop.
const VALUES_MAX: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_in_keys_and_values() {
        let node = YamlNode::parse("- get: {url: '/{{ $loopCount }}', '{{ k }}': 1}").unwrap();
        assert!(names(&node, "$loopCount") && names(&node, "k") && !names(&node, "$loopElement"));
    }
}
