//! Reading a list of steps, and the steps in its loops.

use std::ops::Range;

use super::Protocol;
use super::expanded_size::ExpandedSize;
use super::flow::Flow;
use super::node::{Kind, Node};
use super::reader::{Fields, Reader};
use super::step::{Step, StepForm, StepsOf, check_steps};
use crate::program::{LOOPS_MAX, TRANSACTIONS_MAX};

/// Place of a step: what the reader of a loop's body must know.
pub(crate) struct StepPlace {
    steps_of: StepsOf,
    nesting: Nesting,
    /// Bytes of its name in the source.
    name: Range<usize>,
}

/// The numbers of loops and of transactions around a step.
#[derive(Clone, Copy, Default)]
struct Nesting {
    loops: usize,
    transactions: usize,
}

impl StepPlace {
    /// Reports a mistake in the step's name, or in the step as a whole.
    pub(crate) fn error(&self, reader: &mut Reader<'_>, title: &str, label: &str) {
        reader.error(self.name.clone(), title, label);
    }

    /// Reads the steps under `do`.
    pub(crate) fn read_body(
        &self,
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        what: &str,
    ) -> Option<Vec<Step>> {
        if self.nesting.loops >= LOOPS_MAX {
            let title = format!("loops are nested more than {LOOPS_MAX} deep");
            self.error(reader, &title, "this one is too deep");
            return None;
        }
        let loops = self.nesting.loops + 1;
        self.read_steps(reader, fields, what, Nesting { loops, ..self.nesting })
    }

    /// Reads the steps of a transaction, under `do`.
    pub(crate) fn read_transaction(
        &self,
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
    ) -> Option<Vec<Step>> {
        if self.nesting.transactions >= TRANSACTIONS_MAX {
            let title = format!("transactions are nested more than {TRANSACTIONS_MAX} deep");
            self.error(reader, &title, "this one is too deep");
            return None;
        }
        let transactions = self.nesting.transactions + 1;
        let nesting = Nesting { transactions, ..self.nesting };
        self.read_steps(reader, fields, "`transaction`", nesting)
    }

    fn read_steps(
        &self,
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        what: &str,
        nesting: Nesting,
    ) -> Option<Vec<Step>> {
        let body = reader.require(fields, "do", what, "do: [send: ping]")?;
        read_list(reader, body, "`do`", self.steps_of, nesting)
    }

    /// Reads the steps under `key`, which are no loop.
    pub(crate) fn read_branch(
        &self,
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        what: &str,
        key: &str,
    ) -> Option<Vec<Step>> {
        let body = reader.require(fields, key, what, &format!("{key}: [send: ping]"))?;
        read_list(reader, body, &format!("`{key}`"), self.steps_of, self.nesting)
    }
}

/// The steps of a user.
pub(super) struct StepList {
    pub(super) steps: Vec<Step>,
    /// False if a user never comes to the end of the list.
    pub(super) ends: bool,
}

/// Reads the steps of a user, each of one of these kinds, and checks their order. `what` is the key
/// of the list.
pub(super) fn read(
    reader: &mut Reader<'_>,
    node: &Node,
    what: &str,
    steps_of: StepsOf,
) -> Option<StepList> {
    reader.names.announce(stored_names(node));
    let steps = read_list(reader, node, what, steps_of, Nesting::default())?;
    if !steps.iter().all(|step| add_size(reader, step)) {
        return None;
    }
    let mut flow = Flow::new(reader);
    check_steps(&steps, &mut flow);
    let ends = !flow.is_over();
    Some(StepList { steps, ends })
}

/// Reads steps that a user takes while it is connected.
pub(super) fn read_connected(
    reader: &mut Reader<'_>,
    node: &Node,
    what: &str,
    steps_of: StepsOf,
) -> Option<Vec<Step>> {
    let steps = read_list(reader, node, what, steps_of, Nesting::default())?;
    let mut flow = Flow::new(reader);
    flow.connect();
    check_steps(&steps, &mut flow);
    Some(steps)
}

/// Returns the names under which the steps below `node` store values.
fn stored_names(node: &Node) -> Vec<String> {
    match &node.kind {
        Kind::List(items) => items.iter().flat_map(stored_names).collect(),
        Kind::Map(entries) => {
            let of_entry = |(key, value): &(Node, Node)| match (key.scalar(), &value.kind) {
                (Some("capture" | "set"), Kind::Map(stored)) => {
                    stored.iter().filter_map(|(name, _)| name.scalar().map(str::to_owned)).collect()
                }
                _ => stored_names(value),
            };
            entries.iter().flat_map(of_entry).collect()
        }
        _ => Vec::new(),
    }
}

fn read_list(
    reader: &mut Reader<'_>,
    node: &Node,
    what: &str,
    steps_of: StepsOf,
    nesting: Nesting,
) -> Option<Vec<Step>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, what, "a list of steps such as `- connect`");
        return None;
    };
    if items.is_empty() {
        reader.error(node.span.clone(), format!("{what} has no steps"), "add at least one");
        return None;
    }
    let steps: Vec<_> =
        items.iter().map(|item| read_step(reader, item, steps_of, nesting)).collect();
    steps.into_iter().collect()
}

fn read_step(
    reader: &mut Reader<'_>,
    item: &Node,
    steps_of: StepsOf,
    nesting: Nesting,
) -> Option<Step> {
    let (name, span, value) = name_and_value(reader, item, steps_of)?;
    let mut kinds = steps_of(reader.protocol).iter().copied().flatten();
    let Some(kind) = kinds.find(|kind| kind.name == name) else {
        unknown_step(reader, span, name, steps_of);
        return None;
    };
    let name_span = span.clone();
    reader.begin_step(kind.name);
    let mistakes_before = reader.mistakes.len();
    let action = match (&kind.form, value) {
        (StepForm::Value(read), Some(value)) => read(reader, value),
        (StepForm::OptionalValue(read), value) => read(reader, value),
        (StepForm::Body(read), Some(value)) => {
            read(reader, value, &StepPlace { steps_of, nesting, name: span })
        }
        (StepForm::Value(_) | StepForm::Body(_), None) => {
            let label = format!("for example `{}`", kind.example);
            reader.error(span, format!("`{name}` needs a value"), label);
            None
        }
    };
    if let Some(Node { kind: Kind::Scalar(_), .. }) = value
        && let [mistake] = &mut reader.mistakes[mistakes_before..]
        && mistake.label.starts_with("found ")
    {
        mistake.help = Some(format!("for example `{}`", kind.example));
    }
    let own_name = reader.end_step();
    let action = action?;
    let (line, span) = (reader.line_number(item.span.start), reader.first_line(&item.span));
    let size = match kind.form {
        StepForm::Body(_) => ExpandedSize::of_body(action.inner_size()),
        _ => ExpandedSize::of_step(item),
    };
    let step = Step { name: kind.name, span, line, action: action.into(), size, own_name };
    check_size(reader, &step, name_span).then_some(step)
}

/// Adds the size of a step that stands in no other one. Reports the step with which the scenario is
/// too large.
fn add_size(reader: &mut Reader<'_>, step: &Step) -> bool {
    let was_small = reader.size.problem().is_none();
    reader.size = reader.size.plus(step.size);
    let problem = reader.size.problem().filter(|_| was_small);
    if let Some((title, label)) = &problem {
        let label = format!("{label}, and passes them here");
        reader.error(step.span.clone(), format!("the scenario has {title}"), label).help =
            Some(SIZE_HELP.to_owned());
    }
    problem.is_none()
}

/// Reports a step that is too large by itself. `name` is the place of its name.
fn check_size(reader: &mut Reader<'_>, step: &Step, name: Range<usize>) -> bool {
    let problem = step.size.problem();
    if let Some((title, label)) = &problem {
        let title = format!("this `{}` has {title}", step.name);
        reader.error(name, title, &**label).help = Some(SIZE_HELP.to_owned());
    }
    problem.is_none()
}

/// Reads the name of a step, where it stands, and the step's value if it has one.
fn name_and_value<'n>(
    reader: &mut Reader<'_>,
    item: &'n Node,
    steps_of: StepsOf,
) -> Option<(&'n str, Range<usize>, Option<&'n Node>)> {
    match &item.kind {
        Kind::Scalar(name) => Some((name, item.span.clone(), None)),
        Kind::Map(entries) if entries.len() > 1 => {
            let second = &entries[1].0;
            let (label, help) = key_beside_step(reader.protocol, &entries[0], second, steps_of);
            let span = second.span.clone();
            reader.error(span, "each step needs its own list item", label).help = help;
            None
        }
        Kind::Map(entries) if !entries.is_empty() => {
            let (name, value) = &entries[0];
            let text = reader.text(name, "a step", "a name")?;
            let value = Some(value).filter(|value| !matches!(value.kind, Kind::Nothing));
            Some((text, name.span.clone(), value))
        }
        _ => {
            reader.wrong_kind(item, "a step", "a name such as `connect`, or `wait: 1s`");
            None
        }
    }
}

/// Returns what is wrong with the key `second` that stands beside the step `first`, and perhaps an
/// example.
fn key_beside_step(
    protocol: Protocol,
    (first, value): &(Node, Node),
    second: &Node,
    steps_of: StepsOf,
) -> (String, Option<String>) {
    let (first, name) = (first.scalar().unwrap_or("it"), second.scalar().unwrap_or("this"));
    if names(steps_of, protocol).contains(&name) {
        return ("start this one with `- `".to_owned(), None);
    }
    if matches!(value.kind, Kind::Nothing) {
        let help = "two blanks more than the name of the step, or four more than its `-`";
        let label = format!("if `{name}` belongs to `{first}`, indent it further");
        return (label, Some(help.to_owned()));
    }
    let mut kinds = steps_of(protocol).iter().copied().flatten();
    let kind = kinds.find(|kind| kind.name == first);
    let example = kind.map(|kind| kind.example).filter(|it| it.contains(&format!("{name}: ")));
    let label = format!("if `{name}` belongs to `{first}`, put it inside: {{..., {name}: ...}}");
    (label, example.map(|example| format!("for example `{example}`")))
}

/// Reports a step that this protocol does not have, and names the protocol that has it.
fn unknown_step(reader: &mut Reader<'_>, span: Range<usize>, name: &str, steps_of: StepsOf) {
    if name == "on_message" {
        let label = match reader.solo_key {
            Some(_) => "the only user of these steps has no rules; `receive` and `expect` wait",
            None => "its rules belong beside `user`, and hold for the whole connection",
        };
        reader.error(span, "`on_message` is no step", label);
        return;
    }
    let own = reader.protocol;
    let others = Protocol::ALL.iter().filter(|other| names(steps_of, **other).contains(&name));
    let others: Vec<_> = others.map(|other| other.name()).collect();
    let others = match others.as_slice() {
        [] => return reader.unknown(span, &format!("step `{name}`"), name, &names(steps_of, own)),
        [one] => format!("`protocol: {one}`"),
        [first @ .., last] => format!("the protocols `{}` and `{last}`", first.join("`, `")),
    };
    let title = format!("`protocol: {}` has no step `{name}`", own.name());
    let label = format!("it belongs to {others}");
    let mistake = reader.error(span, title, label);
    mistake.help = (own.in_place_of)(name).map(str::to_owned);
}

/// Returns the names of the steps that a protocol has.
pub(super) fn names(steps_of: StepsOf, protocol: Protocol) -> Vec<&'static str> {
    steps_of(protocol).iter().copied().flatten().map(|kind| kind.name).collect()
}

/// What to do about too many steps.
const SIZE_HELP: &str = "the steps of a `foreach` count once for each value; `repeat` and `every` \
                    count their steps once, and a data file gives users values";
