//! `push`: pushes an event to a joined channel.

use std::time::Duration;

use crate::program::{ChannelRequest, ChannelRequestKind, LatencyKind};
use crate::scenario::Template;
use crate::scenario::channel::{REPLY_TIMEOUT_DEFAULT, read_event, read_topic};
use crate::scenario::json;
use crate::scenario::step::{
    Action, Compiler, Flow, Node, Protocol, Reader, StepFacts, StepForm, StepKind, Traffic,
};
use crate::scenario::values::read_timeout;

pub(super) const KIND: StepKind = StepKind {
    name: "push",
    example: "push: {topic: \"rooms:lobby\", event: new_msg}",
    protocols: &[Protocol::Phoenix],
    form: StepForm::Value(read),
};

#[derive(Debug)]
struct Push {
    /// Name of the channel.
    topic: Template,
    event: Template,
    /// Text of a JSON object.
    payload: Template,
    /// True to wait for the reply.
    reply: bool,
    timeout: Duration,
}

impl Action for Push {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_topic(&self.topic);
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let request = ChannelRequest {
            kind: ChannelRequestKind::Push,
            topic: compiler.topic(&self.topic),
            event: self.event.clone(),
            payload: self.payload.clone(),
            awaits_reply: self.reply,
            timeout: self.timeout,
        };
        compiler.request(request, Some(LatencyKind::Push));
    }

    fn facts(&self) -> StepFacts {
        StepFacts::at_once(Traffic::Answered)
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let known = ["topic", "event", "payload", "reply", "timeout"];
    let fields = reader.fields(node, "`push`", &known)?;
    let topic = read_topic(reader, &fields, "`push`");
    let event = read_event(reader, &fields, "`push`");
    let payload = json::read_object(reader, fields.get("payload"), "`payload`");
    let reply = reader.flag(&fields, "reply", true);
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    Some(Box::new(Push {
        topic: topic?,
        event: event?,
        payload: payload?,
        reply: reply?,
        timeout: timeout?,
    }))
}
