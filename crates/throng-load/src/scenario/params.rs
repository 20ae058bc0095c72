//! The parameters of a scenario: named values with arithmetic, which the rest of the file uses as
//! `$(name)`.
//!
//! They are put in their places before the scenario is read. A phase, a step or a class of users
//! with `when: EXPRESSION` is left out if the expression does not hold. A file without `params` is
//! not touched.

use std::ops::Range;

use throng_base::units::nearest;

use super::expression::{ExpressionError, evaluate};
use super::node::{Kind, Node};
use super::quantity::Quantity;
use super::reader::Reader;
use super::{Diagnostic, Diagnostics};

/// The name and the value of each parameter, in the order of the file.
pub type Params = Vec<(String, Quantity)>;

/// Returns the parameters of the scenario `source`, which diagnostics call `name`.
///
/// # Errors
/// [`Diagnostics`] for each parameter without a value.
pub fn read_params(source: &str, name: &str) -> Result<Params, Diagnostics> {
    let fail = |mistakes| Diagnostics::new(name, source, mistakes);
    let root = Node::parse(source).map_err(|mistake| fail(vec![mistake]))?;
    let mut reader = Reader::new(source);
    let params = read(&mut reader, &root);
    if reader.mistakes.is_empty() { Ok(params) } else { Err(fail(reader.mistakes)) }
}

/// Returns the scenario `source` with other values for the parameters that it has. Names that it
/// does not have are ignored.
pub fn with_params(source: &str, values: &[(String, Quantity)]) -> String {
    let mut text = source.to_owned();
    let Ok(root) = Node::parse(source) else { return text };
    for (key, node) in entries(&root).iter().rev() {
        let value = values.iter().rev().find(|(name, _)| key.scalar() == Some(name));
        if let Some((_, value)) = value {
            text.replace_range(node.span.clone(), &value.to_string());
        }
    }
    text
}

/// Puts the values of the parameters in their places.
pub(super) fn substitute(reader: &mut Reader<'_>, root: &mut Node) {
    let params = read(reader, root);
    let Kind::Map(fields) = &mut root.kind else { return };
    if fields.iter().any(|(key, _)| key.scalar() == Some("params")) {
        let rest = fields.iter_mut().filter(|(key, _)| !is_ours(key));
        rest.for_each(|(key, node)| fill_field(reader, key.scalar(), node, &params));
    }
}

fn is_ours(key: &Node) -> bool {
    matches!(key.scalar(), Some("params" | "lab"))
}

fn entries(root: &Node) -> &[(Node, Node)] {
    let Kind::Map(fields) = &root.kind else { return &[] };
    let params = fields.iter().find(|(key, _)| key.scalar() == Some("params"));
    match params.map(|(_, node)| &node.kind) {
        Some(Kind::Map(entries)) => entries,
        _ => &[],
    }
}

fn read(reader: &mut Reader<'_>, root: &Node) -> Params {
    let mut params = Params::new();
    if let Kind::Map(fields) = &root.kind
        && let Some((_, node)) = fields.iter().find(|(key, _)| key.scalar() == Some("params"))
        && !matches!(node.kind, Kind::Map(_))
    {
        reader.wrong_kind(node, "`params`", "a mapping such as `users: 100k`");
    }
    for (key, node) in entries(root) {
        if params.len() == PARAMS_MAX {
            let label = format!("at most {PARAMS_MAX}");
            reader.error(key.span.clone(), "too many parameters", label);
            break;
        }
        let name = reader.text(key, "the key of a parameter", "a name");
        let text = reader.text(node, "a parameter", "an expression such as users / rate");
        let Some((name, text)) = name.zip(text) else { continue };
        let value = value_of(reader, node, text, 0, &params).unwrap_or(Quantity::Unknown);
        params.push((name.to_owned(), value));
    }
    params
}

/// Evaluates `text`, which begins at `from` in the scalar `node`.
fn value_of(
    reader: &mut Reader<'_>,
    node: &Node,
    text: &str,
    from: usize,
    params: &[(String, Quantity)],
) -> Option<Quantity> {
    let find = |name: &str| params.iter().find(|(known, _)| known == name);
    let value = evaluate(text, &|name| find(name).map(|(_, value)| value.clone()));
    let problem = match value {
        Ok(Quantity::Number { value, .. }) if value < 0.0 => {
            ExpressionError { span: 0..text.len(), problem: "this is less than 0".to_owned() }
        }
        Ok(Quantity::Unknown) => {
            // A parameter without a value has had its own mistake.
            if params.iter().any(|(_, value)| *value == Quantity::Unknown) {
                return None;
            }
            let problem = "a division by zero, or a number that is too large".to_owned();
            ExpressionError { span: 0..text.len(), problem }
        }
        Ok(Quantity::Number { time, .. }) if !(-1..=1).contains(&time) => {
            let problem = "this is no number, no duration and no rate".to_owned();
            ExpressionError { span: 0..text.len(), problem }
        }
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    let place = problem.span;
    let help = match text.get(place.clone()).unwrap_or_default() {
        "" if text[place.start..].starts_with("$(") => {
            Some("a parameter in `params` names others without `$()`: `users * 2`".to_owned())
        }
        name => nearest(name, params.iter().map(|(known, _)| known.as_str()))
            .map(|near| format!("did you mean `{near}`?")),
    };
    let span = reader.inner_span(node, from + place.start..from + place.end);
    let mistake = Diagnostic::new(span, "this expression has no value", problem.problem);
    reader.mistakes.push(Diagnostic { help, ..mistake });
    None
}

/// Fills in the field `key` of the scenario, of a class or of a loop. Only phases, steps and
/// classes may have a `when`: any other mapping is the user's own, such as a payload.
fn fill_field(
    reader: &mut Reader<'_>,
    key: Option<&str>,
    node: &mut Node,
    params: &[(String, Quantity)],
) {
    match (key, &mut node.kind) {
        (Some("load"), Kind::List(phases)) => {
            phases.retain_mut(|phase| is_wanted(reader, phase, params));
            phases.iter_mut().for_each(|phase| fill_step(reader, phase, params));
        }
        (Some("user" | "do"), Kind::List(steps)) => {
            steps.retain_mut(|step| is_wanted(reader, step, params));
            steps.iter_mut().for_each(|step| fill_step(reader, step, params));
        }
        (Some("users"), Kind::Map(classes)) => {
            classes.retain_mut(|(_, class)| is_wanted(reader, class, params));
            classes.iter_mut().for_each(|(_, class)| fill_fields(reader, class, params));
        }
        _ => fill(reader, node, params),
    }
}

/// Fills in a step or a phase. The value of a loop has the field `do`.
fn fill_step(reader: &mut Reader<'_>, step: &mut Node, params: &[(String, Quantity)]) {
    match &mut step.kind {
        Kind::Map(entries) => {
            entries.iter_mut().for_each(|(_, value)| fill_fields(reader, value, params));
        }
        _ => fill(reader, step, params),
    }
}

fn fill_fields(reader: &mut Reader<'_>, node: &mut Node, params: &[(String, Quantity)]) {
    match &mut node.kind {
        Kind::Map(fields) => fields
            .iter_mut()
            .for_each(|(key, value)| fill_field(reader, key.scalar(), value, params)),
        _ => fill(reader, node, params),
    }
}

/// Fills in `node` and everything in it.
fn fill(reader: &mut Reader<'_>, node: &mut Node, params: &[(String, Quantity)]) {
    match &mut node.kind {
        Kind::Nothing => {}
        Kind::Scalar(_) => fill_scalar(reader, node, params),
        Kind::List(items) => items.iter_mut().for_each(|item| fill(reader, item, params)),
        Kind::Map(entries) => {
            entries.iter_mut().for_each(|(_, value)| fill(reader, value, params));
        }
    }
}

/// Removes `when` from a mapping, and reports whether it holds.
fn is_wanted(reader: &mut Reader<'_>, node: &mut Node, params: &[(String, Quantity)]) -> bool {
    let Kind::Map(entries) = &mut node.kind else { return true };
    let Some(at) = entries.iter().position(|(key, _)| key.scalar() == Some("when")) else {
        return true;
    };
    let (_, condition) = entries.remove(at);
    let Some(text) = reader.text(&condition, "`when`", "an expression such as users > 10k") else {
        return true;
    };
    let is_wanted = value_of(reader, &condition, text, 0, params).is_none_or(|value| value.holds());
    reader.leaves_out |= !is_wanted;
    is_wanted
}

fn fill_scalar(reader: &mut Reader<'_>, node: &mut Node, params: &[(String, Quantity)]) {
    let Some(text) = node.scalar() else { return };
    let (mut filled, mut from) = (String::new(), 0);
    while let Some(place) = next_place(text, from) {
        let place = match place {
            Ok(place) => place,
            Err(start) => {
                let span = reader.inner_span(node, start..text.len());
                let label = "`)` is missing".to_owned();
                let problem = "this `$(` has no end; write `$$(` for a `$(` that is sent";
                return reader.mistakes.push(Diagnostic::new(span, problem, label));
            }
        };
        let inner = place.start + 2..place.end - 1;
        let value = value_of(reader, node, &text[inner.clone()], inner.start, params);
        filled += &text[from..place.start];
        filled += &value.unwrap_or(Quantity::number(1.0)).to_string();
        from = place.end;
    }
    if from > 0 {
        filled += &text[from..];
        // What stands alone and without quotes is a number for YAML.
        let is_alone = next_place(text, 0) == Some(Ok(0..text.len()));
        node.is_typed = is_alone && reader.is_plain(&node.span);
        node.kind = Kind::Scalar(filled);
    }
}

/// Returns the span of the next `$(…)` in `text`, or where it begins if it has no end. `$$` is a
/// template's dollar sign.
fn next_place(text: &str, from: usize) -> Option<Result<Range<usize>, usize>> {
    let mut starts = text[from..].match_indices("$(").map(|(at, _)| from + at);
    let start = starts.find(|at| !text[..*at].ends_with('$'))?;
    let (mut depth, mut is_quoted) = (0, false);
    for (at, c) in text[start..].char_indices() {
        is_quoted ^= c == '\'';
        if is_quoted {
            continue;
        }
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ')' && depth == 0 {
            return Some(Ok(start..start + at + 1));
        }
    }
    Some(Err(start))
}

/// The most parameters of a file.
const PARAMS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use crate::scenario::Scenario;

    const SOURCE: &str = "\
target: tcp://h:1
params:
  users: 200k
  rate: 1000/s
  ramp: users / rate
  many: users > 100k
load:
  - ramp: {to: $(users), over: $(ramp)}
  - when: many
    hold: {for: $(ramp / 2)}
user:
  - connect
  - send: \"$(users) $$(x) ${user.id % $(users / 2)}\"
  - close
";

    #[test]
    fn a_file_with_params_is_the_file_with_their_values() {
        // The steps are on the lines that they have below `params`.
        let plain = "\n\n\n\n\n\n\
target: tcp://h:1
load:
  - ramp: {to: 200k, over: 200s}
  - hold: {for: 100s}
user:
  - connect
  - send: \"200000 $$(x) ${user.id % 100000}\"
  - close
";
        let [with, without] = [SOURCE, plain].map(|text| {
            Scenario::parse(text, "test").unwrap_or_else(|mistakes| panic!("{mistakes}"))
        });
        let steps = |scenario: &Scenario| format!("{:#?}", Program::compile(scenario));
        assert_eq!(steps(&with), steps(&without));
        assert_eq!(with.load, without.load);
    }

    #[test]
    fn a_mapping_of_the_users_own_keeps_its_when() {
        let source = "\
target: ws://h:1/socket/websocket
protocol: phoenix
params:
  users: 10
load: [{arrivals: {rate: $(users / 1s), for: 1s}}]
user:
  - connect
  - join: {topic: a, payload: {when: 0, do: [{when: never}], users: {x: {when: 1}}}}
";
        let plain =
            source.replace("params:\n  users: 10\n", "\n\n").replace("$(users / 1s)", "10/s");
        let [with, without] = [source, &plain].map(|text| {
            let scenario = Scenario::parse(text, "t").unwrap_or_else(|error| panic!("{error}"));
            format!("{:?}", Program::compile(&scenario))
        });
        assert_eq!(with, without);
    }

    #[test]
    fn a_place_without_an_end_and_a_value_without_a_name_are_mistakes() {
        let check = |from: &str, to: &str, says: &str| {
            let error = Scenario::parse(&SOURCE.replace(from, to), "t").unwrap_err().render(false);
            assert!(error.contains(says), "{error}");
        };
        check("$(users) $$", "$(users $$", "`)` is missing");
        check("$(ramp)", "$(ramp * ramp)", "no number, no duration and no rate");
        check("to: $(users)", "to: $(1e300 * 1e300)", "too large");
    }

    #[test]
    fn other_values_stand_in_the_file() {
        let values = [("users", Quantity::number(50_000.0)), ("no", Quantity::number(1.0))];
        let text = with_params(SOURCE, &values.map(|(name, value)| (name.to_owned(), value)));
        assert!(text.contains("  users: 50000\n  rate: 1000/s\n"), "{text}");
        let params = read_params(&text, "test").unwrap();
        assert_eq!(params[2], ("ramp".to_owned(), Quantity::seconds(50.0)));
        let load = Scenario::parse(&text, "test").unwrap().load;
        assert_eq!(load.shared().len(), 1, "the hold is left out");
    }

    #[test]
    fn a_mistake_has_its_line_and_a_caret() {
        let source =
            SOURCE.replace("users / rate", "users / rat").replace("$(ramp)", "$(ramp + 1)");
        let error = Scenario::parse(&source, "test.yaml").unwrap_err().render(false);
        assert!(
            error.contains("test.yaml:5:17") && error.contains("`rat` is not known"),
            "{error}"
        );
        let source = SOURCE.replace("$(ramp)", "$(ramp + 1)");
        let error = Scenario::parse(&source, "test.yaml").unwrap_err().render(false);
        assert!(error.contains("a duration and a number do not match"), "{error}");
        assert!(error.contains("test.yaml:8:"), "{error}");
        let error = Scenario::parse(&SOURCE.replace("1000/s", "0"), "t").unwrap_err();
        assert!(error.to_string().contains("a division by zero"), "{error}");
        let error = Scenario::parse("params: 7\ntarget: tcp://h:1", "t").unwrap_err();
        assert!(error.to_string().contains("`params` must be a mapping"), "{error}");
    }

    #[test]
    fn a_file_without_params_is_not_touched() {
        let source =
            "target: tcp://h:1\nload: [ramp: {to: 1, over: 1s}]\nuser: [connect, send: $(x)]\n";
        let scenario = Scenario::parse(source, "t").unwrap();
        assert!(format!("{scenario:?}").contains("[36, 40, 120, 41]"), "{scenario:?}");
    }
}
