//! The steps of a user.

use std::ops::Range;
use std::time::Duration;

use throng_base::units::{parse_count, parse_jitter};

use super::load::{bounded_rate, positive_duration, positive_rate};
use super::message::{self, Expectation, SendPayload};
use super::node::{Kind, Node};
use super::reader::Reader;
use super::template::Template;
use super::websocket::{self, ExpectStep, Pattern, UpgradeOptions};
use super::{Protocol, channel, flow};

/// Default time-out of a connect.
pub const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// Maximum depth of nested `every` and `repeat`: a user has this many counters.
pub const LOOPS_MAX: usize = 4;

/// A step and its position in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Bytes of the source.
    pub span: Range<usize>,
    /// Action of the step.
    pub action: Action,
}

/// Action of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Opens the connection.
    Connect {
        /// Time-out; more than zero.
        timeout: Duration,
        /// Options of the WebSocket upgrade; `None` on plain TCP.
        upgrade: Option<Box<UpgradeOptions>>,
    },
    /// Sends a message.
    Send(SendPayload),
    /// Waits for bytes of a TCP stream.
    ExpectBytes {
        /// Expected bytes.
        expected: Expectation,
        /// Time-out; more than zero.
        timeout: Duration,
    },
    /// Waits for a whole WebSocket message.
    ExpectMessage {
        /// Pattern of the message.
        pattern: Pattern,
        /// True to skip other messages; otherwise they are a mismatch.
        skip_others: bool,
        /// Time-out; more than zero.
        timeout: Duration,
    },
    /// Joins a channel and waits for the reply.
    Join {
        /// Name of the channel, the same text each time.
        topic: Template,
        /// Text of a JSON object.
        payload: Template,
        /// Time-out; more than zero.
        timeout: Duration,
    },
    /// Pushes an event to a joined channel.
    Push {
        /// Name of the channel.
        topic: Template,
        /// Name of the event.
        event: Template,
        /// Text of a JSON object.
        payload: Template,
        /// True to wait for the reply.
        reply: bool,
        /// Time-out; more than zero.
        timeout: Duration,
    },
    /// Leaves a channel and waits for the reply.
    Leave {
        /// Name of the channel.
        topic: Template,
        /// Time-out; more than zero.
        timeout: Duration,
    },
    /// Waits for a think time.
    Wait {
        /// Mean of the think time.
        span: Duration,
        /// Share of `span` by which it varies either way, evenly distributed; 0 to 1.
        jitter: f64,
    },
    /// Repeats steps by the clock.
    Every {
        /// Due moments of the turns.
        pace: Pace,
        /// Time after which no turn is due; `None` if the loop runs as long as its user.
        span: Option<Duration>,
        /// Steps of a turn; at least one.
        steps: Vec<Step>,
    },
    /// Repeats steps without a pause.
    Repeat {
        /// End of the loop.
        until: Repeat,
        /// Steps of a turn; at least one.
        steps: Vec<Step>,
    },
    /// Keeps the connection until the run ends or the server closes it.
    Stay,
    /// Closes the connection, or its sending side.
    Close(CloseAction),
}

/// Due moments of the turns of `every`, from the beginning of the loop. The first is due at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Turn k is due after k periods.
    Period(Duration),
    /// Turns per second, changing linearly over a time and then constant.
    Rate {
        /// Turns per second at the beginning.
        from: f64,
        /// Turns per second at the end; more than 0.
        to: f64,
        /// Time of the change; zero for a constant rate.
        over: Duration,
    },
}

/// End of a `repeat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Number of turns; at least 1.
    Times(u64),
    /// Time after which no turn begins; at least one turn is taken.
    For(Duration),
}

/// Way in which `close` closes a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloseAction {
    /// Sends a FIN after all data.
    #[default]
    Normal,
    /// Sends a RST at once. Unsent data is lost, and no port stays in TIME-WAIT.
    Reset,
    /// Sends a FIN, and still reads what the server sends.
    Half,
}

/// Reads the steps of a user and checks their order.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Step>> {
    let steps = read_list(reader, node, "`user`", 0)?;
    flow::check(reader, &steps);
    Some(steps)
}

fn read_list(reader: &mut Reader<'_>, node: &Node, what: &str, depth: usize) -> Option<Vec<Step>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, what, "a list of steps such as `- connect`");
        return None;
    };
    if items.is_empty() {
        reader.error(node.span.clone(), format!("{what} has no steps"), "add at least one");
        return None;
    }
    let steps: Vec<_> = items.iter().map(|item| read_step(reader, item, depth)).collect();
    steps.into_iter().collect()
}

fn read_step(reader: &mut Reader<'_>, item: &Node, depth: usize) -> Option<Step> {
    let (name, name_span, value) = match &item.kind {
        Kind::Scalar(name) => (name.as_str(), item.span.clone(), None),
        Kind::Map(entries) if !entries.is_empty() => {
            let (name, value) = &entries[0];
            if let [_, (second, _), ..] = &entries[..] {
                let second_name = second.scalar().unwrap_or("this");
                let label = if reader.protocol.steps().contains(&second_name) {
                    "start this one with `- `".to_owned()
                } else {
                    format!(
                        "if `{second_name}` belongs to the step, put it inside: {{..., \
                         {second_name}: ...}}"
                    )
                };
                reader.error(second.span.clone(), "each step needs its own list item", label);
                return None;
            }
            let text = reader.text(name, "a step", "a name")?;
            (
                text,
                name.span.clone(),
                Some(value).filter(|value| !matches!(value.kind, Kind::Nothing)),
            )
        }
        _ => {
            reader.wrong_kind(item, "a step", "a name such as `connect`, or `wait: 1s`");
            return None;
        }
    };
    if !reader.protocol.steps().contains(&name) {
        unknown_step(reader, name_span, name);
        return None;
    }
    let action = match (name, value) {
        ("connect", value) => read_connect(reader, value),
        ("stay", None) => Some(Action::Stay),
        ("close", value) => read_close(reader, value),
        ("send", Some(node)) if reader.protocol == Protocol::Tcp => {
            message::read_payload(reader, node).map(Action::Send)
        }
        ("send", Some(node)) => websocket::read_payload(reader, node).map(Action::Send),
        ("expect", Some(node)) => read_expect(reader, node),
        ("join", Some(node)) => channel::read_join(reader, node),
        ("push", Some(node)) => channel::read_push(reader, node),
        ("leave", Some(node)) => channel::read_leave(reader, node),
        ("wait", Some(node)) => read_wait(reader, node),
        ("every", Some(node)) => read_every(reader, node, &name_span, depth),
        ("repeat", Some(node)) => read_repeat(reader, node, &name_span, depth),
        ("stay", Some(node)) => {
            reader.error(node.span.clone(), "`stay` takes no value", "remove this").help =
                Some("to stay for a time, write `wait: 1m`".to_owned());
            None
        }
        (name, _) => {
            let (_, example) = EXAMPLES.iter().find(|(step, _)| *step == name)?;
            let title = format!("`{name}` needs a value");
            reader.error(name_span.clone(), title, format!("for example `{example}`"));
            None
        }
    };
    Some(Step { span: reader.first_line(&item.span), action: action? })
}

/// Reports a step that this protocol does not have, and names the protocol that has it.
fn unknown_step(reader: &mut Reader<'_>, span: Range<usize>, name: &str) {
    let own = reader.protocol;
    let others = [Protocol::Phoenix, Protocol::Ws];
    let Some(other) = others.iter().find(|other| other.steps().contains(&name)) else {
        return reader.unknown(span, &format!("step `{name}`"), name, own.steps());
    };
    let title = format!("`protocol: {}` has no step `{name}`", own.name());
    let label = format!("it belongs to `protocol: {}`", other.name());
    let mistake = reader.error(span, title, label);
    if own == Protocol::Phoenix {
        mistake.help = Some("use `push` to send to a channel; it waits for the reply".to_owned());
    }
}

fn read_connect(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Action> {
    let over_websocket = reader.protocol != Protocol::Tcp;
    let Some(node) = value else {
        let upgrade = over_websocket.then(Box::default);
        return Some(Action::Connect { timeout: CONNECT_TIMEOUT_DEFAULT, upgrade });
    };
    let fields = reader.fields(node, "`connect`", websocket::connect_keys(reader.protocol))?;
    let timeout = read_timeout(reader, fields.get("timeout"), CONNECT_TIMEOUT_DEFAULT);
    let upgrade = if over_websocket {
        Some(Box::new(websocket::read_upgrade(reader, &fields)?))
    } else {
        None
    };
    Some(Action::Connect { timeout: timeout?, upgrade })
}

fn read_expect(reader: &mut Reader<'_>, node: &Node) -> Option<Action> {
    if reader.protocol == Protocol::Tcp {
        let (expected, timeout) = message::read_expected(reader, node)?;
        return Some(Action::ExpectBytes { expected, timeout });
    }
    let ExpectStep { pattern, skip_others, timeout } = websocket::read_expected(reader, node)?;
    Some(Action::ExpectMessage { pattern, skip_others, timeout })
}

/// Reads a time-out.
pub(super) fn read_timeout(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    default: Duration,
) -> Option<Duration> {
    node.map_or(Some(default), |node| positive_duration(reader, node, "`timeout`"))
}

fn read_close(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Action> {
    let known = [
        ("normal", CloseAction::Normal),
        ("reset", CloseAction::Reset),
        ("half", CloseAction::Half),
    ];
    let Some(node) = value else { return Some(Action::Close(CloseAction::Normal)) };
    let how = reader.one_of(node, "way to close", &known)?;
    if how == CloseAction::Half && reader.protocol != Protocol::Tcp {
        let label = "use `normal` or `reset`; after a close frame nothing is sent or read";
        reader.error(node.span.clone(), "a WebSocket cannot be half-closed", label);
        return None;
    }
    Some(Action::Close(how))
}

fn read_wait(reader: &mut Reader<'_>, node: &Node) -> Option<Action> {
    let (span, jitter) = reader.quantity(node, "`wait`", parse_jitter)?;
    if jitter > 1.0 {
        reader.error(node.span.clone(), "`wait` varies by more than 100%", "at most ±100%");
        return None;
    }
    Some(Action::Wait { span, jitter })
}

fn read_every(
    reader: &mut Reader<'_>,
    node: &Node,
    name: &Range<usize>,
    depth: usize,
) -> Option<Action> {
    let fields = reader.fields(node, "`every`", &["period", "rate", "for", "do"])?;
    let pace = match (fields.get("period"), fields.get("rate")) {
        (Some(period), None) => positive_duration(reader, period, "`period`").map(Pace::Period),
        (None, Some(rate)) => read_pace(reader, rate),
        (Some(_), Some(_)) => {
            let span = fields.key_span("rate");
            reader.error(span, "`every` has both `period` and `rate`", "use only one of them");
            None
        }
        (None, None) => {
            let label = "for example `period: 1s`";
            reader.error(name.clone(), "`every` needs `period` or `rate`", label);
            None
        }
    };
    let span = match fields.get("for") {
        None => Some(None),
        Some(node) => positive_duration(reader, node, "`for`").map(Some),
    };
    let steps = read_body(reader, &fields, "`every`", name, depth);
    Some(Action::Every { pace: pace?, span: span?, steps: steps? })
}

/// Reads `10/s`, or `{from, to, over}` for a rate that changes linearly and then stays constant.
fn read_pace(reader: &mut Reader<'_>, node: &Node) -> Option<Pace> {
    if !matches!(node.kind, Kind::Map(_)) {
        let rate = positive_rate(reader, node)?;
        return Some(Pace::Rate { from: rate, to: rate, over: Duration::ZERO });
    }
    let fields = reader.fields(node, "`rate`", &["from", "to", "over"])?;
    let from = reader.require(&fields, "from", "`rate`", "from: 1/s");
    let from = from.and_then(|node| bounded_rate(reader, node, "`from`"));
    let to = reader.require(&fields, "to", "`rate`", "to: 10/s");
    let to = to.and_then(|node| positive_rate(reader, node));
    let over = reader.require(&fields, "over", "`rate`", "over: 10m");
    let over = over.and_then(|node| positive_duration(reader, node, "`over`"));
    Some(Pace::Rate { from: from?, to: to?, over: over? })
}

fn read_repeat(
    reader: &mut Reader<'_>,
    node: &Node,
    name: &Range<usize>,
    depth: usize,
) -> Option<Action> {
    let fields = reader.fields(node, "`repeat`", &["times", "for", "do"])?;
    let until = match (fields.get("times"), fields.get("for")) {
        (Some(times), None) => match reader.quantity(times, "`times`", parse_count) {
            Some(0) => {
                reader.error(times.span.clone(), "`times` is zero", "at least 1");
                None
            }
            times => times.map(Repeat::Times),
        },
        (None, Some(span)) => positive_duration(reader, span, "`for`").map(Repeat::For),
        (Some(_), Some(_)) => {
            let span = fields.key_span("for");
            reader.error(span, "`repeat` has both `times` and `for`", "use only one of them");
            None
        }
        (None, None) => {
            let label = "for example `times: 10`";
            reader.error(name.clone(), "`repeat` needs `times` or `for`", label);
            None
        }
    };
    let steps = read_body(reader, &fields, "`repeat`", name, depth);
    Some(Action::Repeat { until: until?, steps: steps? })
}

fn read_body(
    reader: &mut Reader<'_>,
    fields: &super::reader::Fields<'_>,
    what: &str,
    name: &Range<usize>,
    depth: usize,
) -> Option<Vec<Step>> {
    if depth >= LOOPS_MAX {
        let title = format!("loops are nested more than {LOOPS_MAX} deep");
        reader.error(name.clone(), title, "this one is too deep");
        return None;
    }
    let body = reader.require(fields, "do", what, "do: [send: ping]")?;
    read_list(reader, body, "`do`", depth + 1)
}

const EXAMPLES: [(&str, &str); 8] = [
    ("join", "join: {topic: \"rooms:lobby\"}"),
    ("push", "push: {topic: \"rooms:lobby\", event: new_msg}"),
    ("leave", "leave: {topic: \"rooms:lobby\"}"),
    ("send", "send: hello"),
    ("expect", "expect: ok"),
    ("wait", "wait: 1s ±10%"),
    ("every", "every: {period: 1s, do: [send: ping]}"),
    ("repeat", "repeat: {times: 10, do: [send: ping]}"),
];
