//! `receive` on a channel: waits for an event that comes unasked.

use super::event_pattern::EventPattern;
use super::topic::{REPLY_TIMEOUT_DEFAULT, read_event, read_topic};
use crate::program::{MessagePattern, Pattern};
use crate::scenario::reader::Fields;
use crate::steps::expect::{Answer, Expect, check_steady, read_captures, read_payload};
use crate::steps::prelude::*;

pub(crate) const KIND: StepKind = StepKind::new(
    "receive",
    "receive: {topic: \"rooms:lobby\", event: new_msg}",
    StepForm::Value(read),
)
.measured(StepMeasure::ByName);

/// A `receive` of a channel: other events may come before it.
#[derive(Debug)]
struct ReceiveEvent {
    topic: Template,
    event: Expect,
}

impl Action for ReceiveEvent {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_topic(&self.topic);
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let op = self.event.op(compiler);
        compiler.push(op, OpFacts::of_role(OpRole::Receives));
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let what = "`receive`";
    let fields = reader.fields(node, what, &["topic", "event", "payload", "capture", "timeout"])?;
    let pattern = read_pattern(reader, &fields, what);
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    let (topic, rule) = pattern?;
    let event = Expect { answer: Answer::Message(rule), timeout: timeout? };
    Some(Box::new(ReceiveEvent { topic, event }))
}

/// Reads the keys of a rule of `on_message` for an event, and its pattern.
pub(crate) fn read_rule_event<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    what: &str,
) -> Option<(Fields<'n>, Option<MessagePattern>)> {
    let fields = reader.fields(node, what, &["topic", "event", "payload", "capture", "do"])?;
    let pattern = read_pattern(reader, &fields, what);
    if let (Some((topic, _)), Some(node)) = (&pattern, fields.get("topic"))
        && !reader.joined.contains(topic)
    {
        let label = "no `join` has exactly this topic";
        reader.error(node.span.clone(), "no step joins this topic", label);
        return None;
    }
    Some((fields, pattern.map(|(_, pattern)| pattern)))
}

/// Reads an event, and the parts of it that a user keeps. Returns its topic, too.
fn read_pattern(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    what: &str,
) -> Option<(Template, MessagePattern)> {
    let topic = read_topic(reader, fields, what);
    let event = read_steady_event(reader, fields, what);
    let payload = read_payload(reader, fields);
    let captures = read_captures(reader, fields);
    let topic = topic?;
    let event = EventPattern { topic: topic.clone(), event: event?, payload: payload? };
    let pattern = MessagePattern::new(Pattern::Event(Box::new(event)), captures?, true);
    Some((topic, pattern))
}

/// Reads the name of an event, which must be the same each time that an event is compared with it.
fn read_steady_event(reader: &mut Reader<'_>, fields: &Fields<'_>, what: &str) -> Option<Template> {
    let event = read_event(reader, fields, what)?;
    let node = fields.get("event")?;
    check_steady(reader, node, node.scalar()?, &event)?;
    Some(event)
}
