//! `push`: pushes an event to a joined channel.

use super::channel_request::{ChannelRequest, ChannelRequestKind};
use super::topic::{REPLY_TIMEOUT_DEFAULT, read_event, read_topic};
use crate::program::{LimitedAction, MessagePattern};
use crate::steps::expect::read_response;
use crate::steps::prelude::*;

pub(crate) const KIND: StepKind =
    StepKind::new("push", "push: {topic: \"rooms:lobby\", event: new_msg}", StepForm::Value(read))
        .measured(StepMeasure::As(Operation::Push));

/// A push of a rule of `on_message`.
pub(crate) const OF_RULE: StepKind = StepKind { form: StepForm::Value(read_of_rule), ..KIND };

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
    /// What the response of an ok must be.
    response: Option<MessagePattern>,
}

impl Action for Push {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.acts(LimitedAction::Send);
        flow.require_topic(&self.topic);
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.limit(LimitedAction::Send);
        let request = ChannelRequest {
            kind: ChannelRequestKind::Push,
            topic: compiler.topic(&self.topic),
            event: self.event.clone(),
            payload: self.payload.clone(),
            awaits_reply: self.reply,
            timeout: self.timeout,
            response: self.response.clone(),
        };
        request.compile(compiler, Some(Operation::Push));
    }
}

/// A push of a rule of `on_message`, which waits for no reply.
#[derive(Debug)]
struct PushOfRule(Push);

impl Action for PushOfRule {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_join_of(&self.0.topic);
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        self.0.compile(compiler);
    }
}

fn read_of_rule(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`push`", &["topic", "event", "payload", "reply"])?;
    if reader.flag(&fields, "reply", false) != Some(false) {
        let title = "a `push` of a rule waits for no reply";
        reader.error(fields.key_span("reply"), title, "leave it out");
        return None;
    }
    let topic = read_topic(reader, &fields, "`push`");
    let event = read_event(reader, &fields, "`push`");
    let payload = json::read_object(reader, fields.get("payload"), "`payload`");
    let (reply, timeout, response) = (false, REPLY_TIMEOUT_DEFAULT, None);
    let push = Push { topic: topic?, event: event?, payload: payload?, reply, timeout, response };
    Some(Box::new(PushOfRule(push)))
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let known = ["topic", "event", "payload", "reply", "timeout", "expect", "capture"];
    let fields = reader.fields(node, "`push`", &known)?;
    let topic = read_topic(reader, &fields, "`push`");
    let event = read_event(reader, &fields, "`push`");
    let payload = json::read_object(reader, fields.get("payload"), "`payload`");
    let reply = reader.flag(&fields, "reply", true);
    if reply == Some(false) && reader.has_named_step() {
        let span = fields.key_span("reply");
        let title = "a `push` that waits for no reply cannot have a `name`";
        reader.error(span, title, "there is no latency to measure; leave out one of the two");
    }
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    reader.names.define_sent();
    let response = read_response(reader, &fields);
    let ignored = ["expect", "capture"].into_iter().find(|key| fields.get(key).is_some());
    if let (Some(false), Some(key)) = (reply, ignored) {
        let title = format!("`reply: false` has no reply for `{key}`");
        reader.error(fields.key_span(key), title, "leave out one of them");
        return None;
    }
    Some(Box::new(Push {
        topic: topic?,
        event: event?,
        payload: payload?,
        reply: reply?,
        timeout: timeout?,
        response: response?,
    }))
}
