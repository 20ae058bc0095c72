//! Reading the steps of Phoenix Channels.

use std::time::Duration;

use super::json;
use super::node::Node;
use super::reader::{Fields, Reader};
use super::steps::{Action, read_timeout};
use super::template::{Segment, Template};

/// Default time-out of the reply to a join, a push or a leave, as in phoenix.js.
pub const REPLY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

pub(super) fn read_join(reader: &mut Reader<'_>, node: &Node) -> Option<Action> {
    let fields = reader.fields(node, "`join`", &["topic", "payload", "timeout"])?;
    let topic = read_topic(reader, &fields, "`join`");
    let payload = json::read_object(reader, fields.get("payload"), "`payload`");
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    Some(Action::Join { topic: topic?, payload: payload?, timeout: timeout? })
}

pub(super) fn read_push(reader: &mut Reader<'_>, node: &Node) -> Option<Action> {
    let known = ["topic", "event", "payload", "reply", "timeout"];
    let fields = reader.fields(node, "`push`", &known)?;
    let topic = read_topic(reader, &fields, "`push`");
    let event = read_event(reader, &fields, "`push`");
    let payload = json::read_object(reader, fields.get("payload"), "`payload`");
    let reply = fields.get("reply").map_or(Some(true), |node| {
        reader.one_of(node, "`reply`", &[("true", true), ("false", false)])
    });
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    Some(Action::Push {
        topic: topic?,
        event: event?,
        payload: payload?,
        reply: reply?,
        timeout: timeout?,
    })
}

pub(super) fn read_leave(reader: &mut Reader<'_>, node: &Node) -> Option<Action> {
    let fields = reader.fields(node, "`leave`", &["topic", "timeout"])?;
    let topic = read_topic(reader, &fields, "`leave`");
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    Some(Action::Leave { topic: topic?, timeout: timeout? })
}

pub(super) fn read_event(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    what: &str,
) -> Option<Template> {
    let node = reader.require(fields, "event", what, "event: new_msg")?;
    let text = reader.text(node, "`event`", "a name such as new_msg")?;
    if text.is_empty() {
        reader.error(node.span.clone(), "the event is empty", "for example new_msg");
        return None;
    }
    reader.template(node, text)
}

/// Reads a topic. It must render to the same text each time.
fn read_topic(reader: &mut Reader<'_>, fields: &Fields<'_>, what: &str) -> Option<Template> {
    let node = reader.require(fields, "topic", what, "topic: \"rooms:lobby\"")?;
    let text = reader.text(node, "`topic`", "a name such as rooms:lobby")?;
    let topic = reader.template(node, text)?;
    if text.is_empty() {
        reader.error(node.span.clone(), "the topic is empty", "for example rooms:lobby");
        return None;
    }
    if topic.segments().contains(&Segment::Counter) {
        let at = text.find("${").unwrap_or(0);
        let span = reader.inner_span(node, at..text.len());
        reader
            .error(span, "a topic must stay the same", "`counter` changes with every message")
            .help = Some(
            "`${user.id % 100}` and `${random(1,100)}` give each user a fixed room".to_owned(),
        );
        return None;
    }
    Some(topic)
}

/// Reads a topic without variables.
pub(super) fn read_fixed_topic(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    what: &str,
) -> Option<String> {
    let topic = read_topic(reader, fields, what)?;
    let text = topic.as_literal().map(|text| String::from_utf8_lossy(text).into_owned());
    if text.is_none() {
        let span = fields.get("topic").map_or(fields.span.clone(), |node| node.span.clone());
        reader.error(span, "the topic of a probe cannot contain variables", "use a fixed topic");
    }
    text
}
