//! `leave`: leaves a channel and waits for the reply.

use super::channel_request::{ChannelRequest, ChannelRequestKind};
use super::channels::Channel;
use super::topic::{REPLY_TIMEOUT_DEFAULT, read_topic};
use crate::steps::prelude::*;

pub(crate) const KIND: StepKind =
    StepKind::new("leave", "leave: {topic: \"rooms:lobby\"}", StepForm::Value(read));

#[derive(Debug)]
struct Leave {
    /// Name of the channel.
    topic: Template,
    timeout: Duration,
}

impl Action for Leave {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.require_topic(&self.topic);
        flow.leave(&self.topic);
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let nothing = Template::from_bytes(Vec::new());
        let request = ChannelRequest {
            kind: ChannelRequestKind::Leave,
            topic: compiler.topic(&self.topic),
            event: nothing.clone(),
            payload: nothing,
            awaits_reply: true,
            timeout: self.timeout,
            response: None,
        };
        request.compile(compiler, None);
    }
}

fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`leave`", &["topic", "timeout"])?;
    let topic = read_topic(reader, &fields, "`leave`");
    let timeout = read_timeout(reader, fields.get("timeout"), REPLY_TIMEOUT_DEFAULT);
    Some(Box::new(Leave { topic: topic?, timeout: timeout? }))
}

/// Notes a leave that was sent: the user is no member any more, whatever the server answers.
pub(crate) fn sent(cx: &mut UserContext<'_>, channel: Option<Channel>) {
    if let Some(channel) = channel {
        cx.remove_channel(channel.join_ref);
    }
}
