//! `join`: joins a channel and waits for the reply.

use super::channel_request::{ChannelRequest, ChannelRequestKind};
use super::channels::Channel;
use super::topic::{REPLY_TIMEOUT_DEFAULT, read_topic};
use crate::program::MessagePattern;
use crate::steps::expect::read_response;
use crate::steps::prelude::*;

pub(crate) const KIND: StepKind =
    StepKind::new("join", "join: {topic: \"rooms:lobby\"}", StepForm::Value(read))
        .measured(StepMeasure::As(Operation::Join));

#[derive(Debug)]
struct Join {
    /// Name of the channel, the same text each time.
    topic: Template,
    /// Text of a JSON object.
    payload: Template,
    timeout: Duration,
    /// What the response of an ok must be.
    response: Option<MessagePattern>,
}

impl Action for Join {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_connection();
        if flow.has_joined(&self.topic) {
            let label = "add a `leave` before it, or use another topic";
            return flow.error("this topic is already joined", label);
        }
        flow.join(&self.topic);
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let request = ChannelRequest {
            kind: ChannelRequestKind::Join,
            topic: compiler.topic(&self.topic),
            event: Template::from_bytes(Vec::new()),
            payload: self.payload.clone(),
            awaits_reply: true,
            timeout: self.timeout,
            response: self.response.clone(),
        };
        request.compile(compiler, Some(Operation::Join));
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let fields =
        reader.fields(node, "`join`", &["topic", "payload", "timeout", "expect", "capture"])?;
    let topic = read_topic(reader, &fields, "`join`");
    let payload = json::read_object(reader, fields.get("payload"), "`payload`");
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    let response = read_response(reader, &fields);
    Some(Box::new(Join {
        topic: topic?,
        payload: payload?,
        timeout: timeout?,
        response: response?,
    }))
}

/// Notes a join that was sent with ref `join_ref`.
pub(crate) fn sent(cx: &mut UserContext<'_>, join_ref: u32, topic: u16, receives_probe: bool) {
    cx.user.channels.push(Channel { join_ref, topic, joined: false, receives_probe });
}

/// Notes that the server has answered the join ok.
pub(crate) fn answered(cx: &mut UserContext<'_>, join_ref: u32) {
    if let Some(channel) = cx.user.channels.of_join(join_ref) {
        channel.joined = true;
    }
}
