//! What `join`, `push` and `leave` of Phoenix Channels have in common: the request and its reply.

use std::time::Duration;

use throng_measure::{ErrorKind, Operation};
use throng_proto::phoenix::client::{self, ChannelEnd, PushReply};
use throng_proto::phoenix::{Decimal, PhoenixPayload};

use super::channel_request::{ChannelRequest, ChannelRequestKind};
use super::channels::Channel;
use super::{join, leave};
use crate::program::compiler::Compiler;
use crate::program::{
    IncomingMessage, MessagePattern, OpFacts, OpRole, ProtocolOp, Template, Variable, VariableScope,
};
use crate::steps::send;
use crate::user::context::{StepOutcome, UserContext};
use crate::user::encoder::as_text;
use crate::user::record::Sample;
use crate::user::user_op::{self, UserOp};
use crate::user::{failure, on_message, requests};

impl ChannelRequest {
    /// Appends the request to a program. Its reply is found by its ref, so it is no answer to a
    /// `send`.
    pub(super) fn compile(self, compiler: &mut Compiler<'_>, latency: Option<Operation>) {
        let texts = [compiler.topic_name(self.topic), &self.event, &self.payload];
        let bytes_max = texts.map(Template::bytes_max).iter().sum();
        let facts = OpFacts { latency, bytes_max, ..OpFacts::of_role(OpRole::Neutral) };
        compiler.protocol_op(user_op::entry(self), facts);
    }
}

impl UserOp for ChannelRequest {
    /// Sends a join, push or leave and waits for its reply.
    fn begin(&self, cx: &mut UserContext<'_>) -> StepOutcome {
        if let Some(flow) = send::check_can_send(cx) {
            return flow;
        }
        let channel = cx.user.channels.of_topic(self.topic);
        let is_joined = channel.is_some_and(|channel| channel.joined);
        if self.kind != ChannelRequestKind::Join && !is_joined {
            return failure::skip_step(cx, ErrorKind::NotJoined);
        }
        let number = cx.user.next_ref();
        let receives_probe = write(cx, self, number, channel);
        requests::sent(cx);
        match self.kind {
            ChannelRequestKind::Join => join::sent(cx, number, self.topic, receives_probe),
            ChannelRequestKind::Push => {
                for part in cx.rules.program.sent_parts() {
                    part.store(&cx.encoder.payload, |slot, value| {
                        cx.user.memory.store(slot, value);
                    });
                }
            }
            ChannelRequestKind::Leave => leave::sent(cx, channel),
        }
        if !self.awaits_reply {
            cx.count(|c| c.pushes_without_reply += 1);
            cx.user.intended = cx.now;
            return StepOutcome::Next;
        }
        requests::await_answer(cx, number, self.timeout)
    }

    /// Pushes an event of a rule: no step waits for its reply. A user that has left the channel
    /// pushes none.
    fn send_of_rule(&self, cx: &mut UserContext<'_>) {
        match cx.user.channels.of_topic(self.topic).filter(|channel| channel.joined) {
            Some(channel) => {
                on_message::send_reply(cx, |cx| {
                    let number = cx.user.next_ref();
                    write(cx, self, number, Some(channel));
                    true
                });
            }
            None => cx.count(|c| c.rules_blocked += 1),
        }
    }

    fn timed_out(&self, cx: &mut UserContext<'_>, number: u32) -> StepOutcome {
        cx.user.channels.remove(number);
        failure::fail_step(cx, self.kind.timeout_error())
    }
}

impl ProtocolOp for ChannelRequest {
    fn describe(&self, shown: &dyn Fn(&[u8]) -> String) -> String {
        match (self.awaits_reply, &self.response) {
            (true, Some(rule)) => format!("a reply with status ok and {}", rule.describe(shown)),
            (true, None) => "a reply with status ok".to_owned(),
            (false, _) => "an open channel".to_owned(),
        }
    }

    fn timeout(&self) -> Option<Duration> {
        self.awaits_reply.then_some(self.timeout)
    }

    fn response(&self) -> Option<&MessagePattern> {
        self.response.as_ref()
    }
}

/// Appends the request to the output. Returns whether the probe is delivered in its topic.
fn write(
    cx: &mut UserContext<'_>,
    request: &ChannelRequest,
    number: u32,
    channel: Option<Channel>,
) -> bool {
    let vsn = cx.handshake().vsn;
    let topic = cx.rules.program.topic(request.topic);
    cx.encoder.clear();
    let encoder = &mut *cx.encoder;
    // Rendering a user's topic gives the same text each time.
    let program = cx.rules.program;
    let scope = VariableScope { seed: cx.rules.seed, ..cx.user.scope(program) };
    let mut scope = scope.of_topic();
    topic.name.render(&mut scope, &mut encoder.topic);
    cx.user.render(program, |scope| {
        request.event.render(scope, &mut encoder.event);
        request.payload.render(scope, &mut encoder.payload);
    });
    let (topic_text, payload) = (as_text(&encoder.topic), as_text(&encoder.payload));
    let r#ref = Decimal::new(number.into());
    let join_ref = Decimal::new(channel.map_or(0, |channel| channel.join_ref).into());
    match request.kind {
        ChannelRequestKind::Join => {
            client::join(vsn, r#ref.as_str(), topic_text, payload, &mut encoder.text);
        }
        ChannelRequestKind::Push => {
            // Every protocol version can carry JSON.
            let _ = client::push(
                vsn,
                Some(join_ref.as_str()),
                r#ref.as_str(),
                topic_text,
                as_text(&encoder.event),
                PhoenixPayload::Json(payload),
                &mut encoder.text,
            );
        }
        ChannelRequestKind::Leave => {
            let join_ref = Some(join_ref.as_str());
            client::leave(vsn, join_ref, r#ref.as_str(), topic_text, &mut encoder.text);
        }
    }
    let receives_probe = topic.receives_probe(&encoder.topic);
    cx.write_text();
    receives_probe
}

/// Handles a reply to request `number`, if the user waits for it.
pub(crate) fn reply_received(
    cx: &mut UserContext<'_>,
    number: u32,
    reply: &PushReply<'_>,
) -> StepOutcome {
    let Some((request, awaited)) = cx.asked::<ChannelRequest>() else { return StepOutcome::Wait };
    if number != awaited || !answers(cx, request, number, reply) {
        return StepOutcome::Wait;
    }
    let kind = request.kind;
    let is_ok = &reply.status == "ok";
    if !is_ok {
        cx.sample(Sample::Refusal(kind.refusal_error(), reply));
    }
    requests::arrived(cx);
    if !is_ok {
        // Of a join; no channel has the ref of another request.
        cx.user.channels.remove(number);
        return failure::fail_step(cx, kind.refusal_error());
    }
    if let Some(rule) = &request.response
        && let Err(got) = take_response(cx, rule, &reply.response)
    {
        cx.user.channels.remove(number);
        return requests::fail_with(cx, ErrorKind::ExpectMismatch, got);
    }
    if kind == ChannelRequestKind::Join {
        join::answered(cx, number);
    }
    requests::succeed(cx)
}

/// Reports whether a reply is one in the channel of a request. Another one has the ref of the
/// request by accident, and phoenix.js drops it.
fn answers(
    cx: &mut UserContext<'_>,
    request: &ChannelRequest,
    number: u32,
    reply: &PushReply<'_>,
) -> bool {
    let ChannelRequest { kind, topic, .. } = *request;
    let join_ref = match kind {
        ChannelRequestKind::Join => Some(number),
        ChannelRequestKind::Push => cx.user.channels.of_topic(topic).map(|own| own.join_ref),
        // The user has left the channel.
        ChannelRequestKind::Leave => None,
    };
    is_named(cx, topic, &reply.topic)
        && join_ref.is_none_or(|join_ref| reply.is_of(join_ref.into()))
}

/// Reports whether `name` is that of a topic of this user.
fn is_named(cx: &mut UserContext<'_>, topic: u16, name: &str) -> bool {
    let program = cx.rules.program;
    let scope = VariableScope { seed: cx.rules.seed, ..cx.user.scope(program) };
    let template = &program.topic(topic).name;
    template.is_rendered(name.as_bytes(), scope.of_topic(), &mut cx.encoder.comparison)
}

fn is_stored(variable: &Variable) -> bool {
    matches!(variable, Variable::Stored { .. })
}

/// Compares the response of an ok with what is expected, and stores its captures. Returns a
/// response that does not match.
fn take_response<'m>(
    cx: &mut UserContext<'_>,
    rule: &MessagePattern,
    response: &'m PhoenixPayload<'_>,
) -> Result<(), IncomingMessage<'m>> {
    let message = match response {
        PhoenixPayload::Json(text) => IncomingMessage::Text(text),
        PhoenixPayload::Binary(bytes) => IncomingMessage::Binary(bytes),
    };
    let scope = cx.user.scope_of_answer(cx.rules.program, cx.rules.seed);
    if !rule.matches(message, scope, &mut cx.encoder.comparison) {
        return Err(message);
    }
    rule.store_captures(message, |slot, value| cx.user.memory.store(slot, value));
    Ok(())
}

/// Handles the end of a channel by the server. Ignores channels that the user has left.
pub(crate) fn channel_ended(cx: &mut UserContext<'_>, end: &ChannelEnd<'_>) -> StepOutcome {
    let kind = if end.is_crash { ErrorKind::ChannelError } else { ErrorKind::ChannelClosed };
    let ends = |channel: &&Channel| end.ends(channel.join_ref.into());
    let found: Vec<_> = cx.user.channels.iter().filter(ends).copied().collect();
    // A topic of stored values may have another name by now.
    let is_own = |own: &Channel| {
        is_named(cx, own.topic, &end.topic)
            || end.has_join_ref() && cx.rules.program.topic(own.topic).name.uses(is_stored)
    };
    let Some(channel) = found.into_iter().find(is_own) else { return StepOutcome::Wait };
    cx.remove_channel(channel.join_ref);
    if cx.user.is_closing_or_stopped() {
        return StepOutcome::Wait;
    }
    if let Some((request, _)) = cx.asked::<ChannelRequest>()
        && request.topic == channel.topic
    {
        return failure::fail_step(cx, kind);
    }
    failure::fail_beside(cx, kind)
}
