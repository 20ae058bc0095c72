//! Probes: messages that are broadcast at regular intervals, to measure their delivery.

use std::time::Duration;

use throng_base::units::nearest;

use super::condition::read_condition;
use super::json;
use super::node::{Kind, Node};
use super::reader::{Form, Reader};
use super::template::Template;
use super::values::{positive_duration, read_message_text, read_timeout};
use super::variable::Variable;
use crate::program::Condition;
use crate::protocols::MessageForm;
use crate::protocols::phoenix::topic::{read_event, read_fixed_topic};

/// Default time-out of a delivery.
pub const PROBE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// A message that one user sends at regular intervals and that every subscriber must receive.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Period: probe k is due k periods after the first phase began, for k from 1.
    pub every: Duration,
    /// Message of the probe.
    pub broadcast: Broadcast,
    /// Time-out of a delivery, from the probe's due moment; after it the delivery is missing.
    pub timeout: Duration,
    /// True if the server also delivers it to its sender.
    pub to_sender: bool,
    /// Condition of the users that receive it; `None` for all.
    pub members: Option<Condition>,
}

impl Probe {
    /// Reports whether the message says where the mark stands.
    pub(crate) fn places_mark(&self) -> bool {
        let (Broadcast::Text(template)
        | Broadcast::Json(template)
        | Broadcast::Push { payload: template, .. }) = &self.broadcast;
        template.uses(|part| *part == Variable::Probe)
    }
}

/// The message of a probe. Unless it says where the mark stands, the generator adds the marker that
/// identifies its deliveries.
#[derive(Clone, Debug, PartialEq)]
pub enum Broadcast {
    /// A WebSocket text message, delivered to all members.
    Text(Template),
    /// A WebSocket text message that is a JSON object, delivered to all members.
    Json(Template),
    /// A push to a channel, delivered to all users that have joined its topic.
    Push {
        /// Topic, without variables.
        topic: String,
        /// Event of the push.
        event: Template,
        /// Text of a JSON object.
        payload: Template,
    },
}

/// Reads the probe of a scenario: a list with one item. If `knows_joins`, the steps of all users
/// were read, with the topics that they join.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, knows_joins: bool) -> Option<Probe> {
    let what = "`probe`";
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, what, "a list such as `- every: 10s`, with a `broadcast` in it");
        return None;
    };
    let [item] = &items[..] else {
        let (span, label) = match items.get(1) {
            Some(second) => (reader.first_line(&second.span), "this version supports one probe"),
            None => (node.span.clone(), "add one item"),
        };
        reader.error(span, "`probe` needs exactly one item", label);
        return None;
    };
    let fields = reader.fields(
        item,
        "a probe",
        &["every", "broadcast", "timeout", "to_sender", "members"],
    )?;
    let every = reader.require(&fields, "every", "a probe", "every: 10s");
    let every = every.and_then(|node| positive_duration(reader, node, "`every`"));
    let broadcast =
        reader.require(&fields, "broadcast", "a probe", example(reader.protocol.messages));
    let broadcast = broadcast.and_then(|node| read_broadcast(reader, node, knows_joins));
    let timeout = read_timeout(reader, fields.get("timeout"), PROBE_TIMEOUT_DEFAULT);
    let to_sender = reader.flag(&fields, "to_sender", true);
    let members = reader.optional(&fields, "members", read_members);
    if !reader.protocol.messages.come_unasked() {
        let title = format!("a probe needs messages, and {} has none", reader.protocol.title);
        reader.error(reader.first_line(&node.span), title, "use a `ws://` target");
        return None;
    }
    Some(Probe {
        every: every?,
        broadcast: broadcast?,
        timeout: timeout?,
        to_sender: to_sender?,
        members: members?,
    })
}

/// Reads the condition of the users that receive a probe. A user must not become another member
/// each time that one looks.
fn read_members(reader: &mut Reader<'_>, node: &Node) -> Option<Condition> {
    let condition = read_condition(reader, node)?;
    if condition.is_steady() {
        return Some(condition);
    }
    let title = "a user must stay a member";
    reader.error(node.span.clone(), title, "random, choice, uuid, time and counter change");
    None
}

fn read_broadcast(reader: &mut Reader<'_>, node: &Node, knows_joins: bool) -> Option<Broadcast> {
    let what = "`broadcast`";
    if reader.protocol.messages == MessageForm::Events {
        let fields = reader.fields(node, what, &["topic", "event", "payload"])?;
        let topic = read_fixed_topic(reader, &fields, what);
        let event = read_event(reader, &fields, what);
        let payload = json::read_object(reader, fields.get("payload"), "`payload`");
        if let Some((node, topic)) = fields.get("topic").zip(topic.as_ref())
            && knows_joins
        {
            check_joined(reader, node, topic);
        }
        return Some(Broadcast::Push { topic: topic?, event: event?, payload: payload? });
    }
    let fields = reader.fields(node, what, &["text", "json"])?;
    let forms: [Form<Broadcast>; 2] = [
        ("text", |reader, node| read_message_text(reader, node).map(Broadcast::Text)),
        ("json", |reader, node| {
            json::read_object(reader, Some(node), "`json`").map(Broadcast::Json)
        }),
    ];
    reader.one_form(&fields, what, "payload", &forms)
}

/// Reports a topic that no user joins: all its deliveries would be missing.
fn check_joined(reader: &mut Reader<'_>, node: &Node, topic: &str) {
    if reader.joined.iter().any(|joined| joined.may_be(topic.as_bytes())) {
        return;
    }
    let joined: Vec<_> = reader.joined.iter().map(ToString::to_string).collect();
    let label = match nearest(topic, joined.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "add a `join` of this topic to the users' steps".to_owned(),
    };
    let mistake = reader.error(node.span.clone(), "no user joins the topic of the probe", label);
    if !joined.is_empty() {
        let more = if joined.len() > TOPICS_SHOWN_MAX { ", …" } else { "" };
        let shown = joined[..joined.len().min(TOPICS_SHOWN_MAX)].join("`, `");
        mistake.help = Some(format!("the users join `{shown}`{more}"));
    }
}

/// Topics that a mistake lists.
const TOPICS_SHOWN_MAX: usize = 5;

const fn example(messages: MessageForm) -> &'static str {
    match messages {
        MessageForm::Events => "broadcast: {topic: \"rooms:lobby\", event: new_msg}",
        MessageForm::Bytes | MessageForm::Messages | MessageForm::Answers => {
            "broadcast: {text: hello}"
        }
    }
}
