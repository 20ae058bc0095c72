//! `receive` on a channel: waits for an event that comes unasked.

use super::expect::{Answer, Expect, check_steady, read_captures, read_payload};
use super::prelude::*;
use crate::program::{EventPattern, MessagePattern, Pattern};
use crate::scenario::channel::{REPLY_TIMEOUT_DEFAULT, read_event, read_topic};
use crate::scenario::reader::Fields;

pub(super) const KIND: StepKind = StepKind {
    name: "receive",
    example: "receive: {topic: \"rooms:lobby\", event: new_msg}",
    protocols: &[Protocol::Phoenix],
    form: StepForm::Value(read),
};

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
    let topic = read_topic(reader, &fields, what);
    let event = read_steady_event(reader, &fields, what);
    let payload = read_payload(reader, &fields);
    let captures = read_captures(reader, &fields);
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    let topic = topic?;
    let event = EventPattern { topic: topic.clone(), event: event?, payload: payload? };
    let rule = MessagePattern::new(Pattern::Event(Box::new(event)), captures?, true);
    let event = Expect { answer: Answer::Message(rule), timeout: timeout? };
    Some(Box::new(ReceiveEvent { topic, event }))
}

/// Reads the name of an event, which must be the same each time that an event is compared with it.
fn read_steady_event(reader: &mut Reader<'_>, fields: &Fields<'_>, what: &str) -> Option<Template> {
    let event = read_event(reader, fields, what)?;
    let node = fields.get("event")?;
    check_steady(reader, node, node.scalar()?, &event)?;
    Some(event)
}
