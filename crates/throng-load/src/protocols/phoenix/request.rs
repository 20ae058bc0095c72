//! What `join`, `push` and `leave` of Phoenix Channels have in common: the request and its reply.

use throng_engine::Deadline;
use throng_measure::ErrorKind;
use throng_proto::phoenix::client::{self, ChannelEnd, PushReply};
use throng_proto::phoenix::{Decimal, PhoenixPayload};

use super::channel_request::{ChannelRequest, ChannelRequestKind};
use super::channels::Channel;
use super::{join, leave, push};
use crate::program::{IncomingMessage, MessagePattern, Op, Variable, VariableScope};
use crate::steps::send;
use crate::user::context::{StepOutcome, UserContext};
use crate::user::encoder::as_text;
use crate::user::error::{refusal_error, timeout_error};
use crate::user::failure;
use crate::user::record::{Record, Sample};
use crate::user::state::{Packed, UserWait};

/// Sends a join, push or leave and waits for its reply.
pub(crate) fn begin(cx: &mut UserContext<'_>, index: u32) -> StepOutcome {
    if let Some(flow) = send::check_can_send(cx) {
        return flow;
    }
    let request = cx.rules.program.request(index);
    let channel = cx.user.channels.of_topic(request.topic);
    let is_joined = channel.is_some_and(|channel| channel.joined);
    if request.kind != ChannelRequestKind::Join && !is_joined {
        return failure::skip_step(cx, ErrorKind::NotJoined);
    }
    let number = cx.user.next_ref();
    let receives_probe = write(cx, request, number, channel);
    if request.kind == ChannelRequestKind::Push {
        for part in cx.rules.program.sent_parts() {
            part.store(&cx.encoder.payload, |slot, value| cx.user.memory.store(slot, value));
        }
    }
    match request.kind {
        ChannelRequestKind::Join => join::sent(cx, number, request.topic, receives_probe),
        ChannelRequestKind::Push => push::sent(cx, request.awaits_reply),
        ChannelRequestKind::Leave => leave::sent(cx, channel),
    }
    if !request.awaits_reply {
        cx.user.intended = cx.now;
        return StepOutcome::Next;
    }
    cx.user.set_wait(UserWait::Reply { number: Packed::new(number) });
    cx.wait_until(Deadline::Coarse(cx.now + request.timeout));
    StepOutcome::Wait
}

/// Appends a push to the output, beside the steps of the user: no step waits for its reply.
pub(crate) fn push_beside(cx: &mut UserContext<'_>, index: u32, channel: Channel) {
    let request = cx.rules.program.request(index);
    let number = cx.user.next_ref();
    write(cx, request, number, Some(channel));
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
    let (Some(UserWait::Reply { number: awaited }), Op::Request { request }) =
        (cx.user.wait(), cx.op())
    else {
        return StepOutcome::Wait;
    };
    if number != awaited.get() || !answers(cx, request, number, reply) {
        return StepOutcome::Wait;
    }
    let kind = cx.rules.program.request(request).kind;
    let (from, timing) = (cx.user.intended, cx.timing());
    let is_ok = &reply.status == "ok";
    if !is_ok {
        cx.sample(Sample::Refusal(refusal_error(kind), reply));
    }
    cx.record(Record::Replied { timing, from });
    if !is_ok {
        // Of a join; no channel has the ref of another request.
        cx.user.channels.remove(number);
        return failure::fail_step(cx, refusal_error(kind));
    }
    if let Some(rule) = &cx.rules.program.request(request).response
        && let Err(got) = take_response(cx, rule, &reply.response)
    {
        cx.sample(Sample::Mismatch { got, came_first: false });
        cx.user.channels.remove(number);
        return failure::fail_step(cx, ErrorKind::ExpectMismatch);
    }
    match kind {
        ChannelRequestKind::Join => join::answered(cx, number, from),
        ChannelRequestKind::Push => push::answered(cx, from),
        ChannelRequestKind::Leave => {}
    }
    cx.user.set_wait(UserWait::Yield);
    cx.user.intended = cx.now;
    cx.wait_until(Deadline::Never);
    StepOutcome::Next
}

/// Reports whether a reply is one in the channel of a request. Another one has the ref of the
/// request by accident, and phoenix.js drops it.
fn answers(cx: &mut UserContext<'_>, request: u32, number: u32, reply: &PushReply<'_>) -> bool {
    let ChannelRequest { kind, topic, .. } = *cx.rules.program.request(request);
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

/// Fails a request whose reply has not arrived in time.
pub(crate) fn timed_out(cx: &mut UserContext<'_>, number: u32) -> StepOutcome {
    let Op::Request { request } = cx.op() else { return StepOutcome::Wait };
    let kind = cx.rules.program.request(request).kind;
    cx.user.channels.remove(number);
    failure::fail_step(cx, timeout_error(kind))
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
    if let (Some(UserWait::Reply { .. }), Op::Request { request }) = (cx.user.wait(), cx.op())
        && cx.rules.program.request(request).topic == channel.topic
    {
        return failure::fail_step(cx, kind);
    }
    failure::fail_beside(cx, kind)
}
