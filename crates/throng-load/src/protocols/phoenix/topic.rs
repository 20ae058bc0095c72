//! Reading what names a place in Phoenix Channels: a topic, and an event.

use std::time::Duration;

use crate::scenario::Template;
use crate::scenario::Variable;
use crate::scenario::reader::{Fields, Reader};

/// Default time-out of the reply to a join, a push or a leave, as in phoenix.js.
pub(crate) const REPLY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Reads the name of an event.
pub(crate) fn read_event(
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
pub(crate) fn read_topic(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    what: &str,
) -> Option<Template> {
    let node = reader.require(fields, "topic", what, "topic: \"rooms:lobby\"")?;
    let text = reader.text(node, "`topic`", "a name such as rooms:lobby")?;
    let topic = reader.template(node, text)?;
    if text.is_empty() {
        reader.error(node.span.clone(), "the topic is empty", "for example rooms:lobby");
        return None;
    }
    if topic.uses(|part| *part == Variable::Counter) {
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
pub(crate) fn read_fixed_topic(
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
