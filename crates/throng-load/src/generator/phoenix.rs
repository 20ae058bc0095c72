//! Phoenix Channels users: joins, pushes and leaves, their replies, heartbeats, and channels that
//! end.

use throng_base::{Instant, Prng};
use throng_driver::Driver;
use throng_engine::{Conn, Deadline};
use throng_proto::phoenix::client::{self, PhoenixClientEvent, PushReply};
use throng_proto::phoenix::{Decimal, PhoenixPayload, Vsn, names};

use super::channels::Channel;
use super::encode_buffers::as_text;
use super::steps::StepOutcome;
use super::timing::AnswerTiming;
use super::user::{IterationOutcome, User, UserState};
use super::{ErrorKind, Generator, GeneratorMessage, printable};
use crate::program::{
    ChannelRequest, ChannelRequestKind, IncomingMessage, OnError, Op, TemplateVars,
};

impl Generator {
    /// Sends a join, push or leave and waits for its reply.
    pub(super) fn send_request<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        index: u32,
    ) -> StepOutcome {
        if let Some(step) = self.check_can_send(conn) {
            return step;
        }
        let config = std::sync::Arc::clone(&self.config);
        let request = config.program.request(index);
        let user = conn.state();
        let channel = user.channels.of_topic(request.topic);
        if request.kind != ChannelRequestKind::Join
            && !channel.is_some_and(|channel| channel.joined)
        {
            return self.skip_step(conn, ErrorKind::NotJoined);
        }
        let r#ref = user.next_ref();
        let receives_probe = self.write_request(conn, request, r#ref, channel);
        match request.kind {
            ChannelRequestKind::Join => {
                self.stats.counters.joins_started += 1;
                let (join_ref, topic) = (r#ref, request.topic);
                let channel = Channel { join_ref, topic, joined: false, receives_probe };
                conn.state().channels.push(channel);
            }
            ChannelRequestKind::Push => {
                self.stats.counters.pushes_sent += 1;
                self.stats.counters.pushes_without_reply += u64::from(!request.awaits_reply);
            }
            ChannelRequestKind::Leave => {
                if let Some(channel) = channel {
                    self.remove_channel(conn, channel.join_ref);
                }
            }
        }
        let now = conn.now();
        let user = conn.state();
        if !request.awaits_reply {
            user.intended = now;
            user.pc += 1;
            return StepOutcome::Next;
        }
        user.awaited = r#ref;
        user.state = UserState::AwaitingReply;
        conn.set_deadline(Deadline::Coarse(now + request.timeout));
        StepOutcome::Wait
    }

    /// Appends the request to the output. Returns whether the probe is delivered in its topic.
    fn write_request<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        request: &ChannelRequest,
        r#ref: u32,
        channel: Option<Channel>,
    ) -> bool {
        let vsn = self.vsn_of(conn);
        let user = conn.state();
        let topic = self.config.program.topic(request.topic);
        let buffers = &mut self.buffers;
        [&mut buffers.text, &mut buffers.topic, &mut buffers.event, &mut buffers.payload]
            .into_iter()
            .for_each(Vec::clear);
        // Rendering a user's topic gives the same text each time.
        let prng = Prng::derive(self.config.seed ^ TOPIC_SEED, user.id);
        topic
            .name
            .render(&mut TemplateVars { user_id: user.id, counter: 0, prng }, &mut buffers.topic);
        let counter = u64::from(user.counter);
        let mut vars = TemplateVars { user_id: user.id, counter, prng: user.prng };
        request.event.render(&mut vars, &mut buffers.event);
        request.payload.render(&mut vars, &mut buffers.payload);
        (user.counter, user.prng) = (vars.counter as u32, vars.prng);

        let (topic_text, payload) = (as_text(&buffers.topic), as_text(&buffers.payload));
        let r#ref = Decimal::new(r#ref.into());
        let join_ref = Decimal::new(channel.map_or(0, |channel| channel.join_ref).into());
        match request.kind {
            ChannelRequestKind::Join => {
                client::join(vsn, r#ref.as_str(), topic_text, payload, &mut buffers.text)
            }
            ChannelRequestKind::Push => {
                let event = as_text(&buffers.event);
                let payload = PhoenixPayload::Json(payload);
                // Every protocol version can carry JSON.
                let _ = client::push(
                    vsn,
                    Some(join_ref.as_str()),
                    r#ref.as_str(),
                    topic_text,
                    event,
                    payload,
                    &mut buffers.text,
                );
            }
            ChannelRequestKind::Leave => {
                let join_ref = Some(join_ref.as_str());
                client::leave(vsn, join_ref, r#ref.as_str(), topic_text, &mut buffers.text);
            }
        }
        let receives_probe = topic.receives_probe(&self.buffers.topic);
        self.write_text(conn);
        receives_probe
    }

    /// Sends the encoded probe as a push to `topic`. Returns false if the user has not joined it.
    pub(super) fn push_probe<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        topic: &str,
    ) -> bool {
        let vsn = self.vsn_of(conn);
        let user = conn.state();
        let joined = user.channels.iter().find(|channel| channel.joined && channel.receives_probe);
        let Some(join_ref) = joined.map(|channel| Decimal::new(channel.join_ref.into())) else {
            return false;
        };
        let number = user.next_ref();
        self.probe_push = Some((user.id, number));
        let buffers = &mut self.buffers;
        buffers.text.clear();
        // Every protocol version can carry JSON.
        let _ = client::push(
            vsn,
            Some(join_ref.as_str()),
            Decimal::new(number.into()).as_str(),
            topic,
            as_text(&buffers.event),
            PhoenixPayload::Json(as_text(&buffers.payload)),
            &mut buffers.text,
        );
        self.write_text(conn);
        true
    }

    /// Sends a heartbeat. If the last one is unanswered, closes the connection.
    pub(super) fn heartbeat_due<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let vsn = self.vsn_of(conn);
        let user = conn.state();
        if is_closing_or_stopped(user) {
            return;
        }
        if user.heartbeat != 0 {
            self.stats.counters.heartbeats_missed += 1;
            self.count_error(ErrorKind::HeartbeatTimeout);
            return self.close_after_error(conn);
        }
        let number = user.next_ref();
        user.heartbeat = number;
        self.stats.counters.heartbeats_sent += 1;
        self.buffers.text.clear();
        client::heartbeat(vsn, Decimal::new(number.into()).as_str(), &mut self.buffers.text);
        self.write_text(conn);
        self.set_heartbeat(conn, now);
    }

    fn set_heartbeat<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        from: Instant,
    ) {
        let handshake = self.config.program.handshake(conn.state().handshake.into());
        if let Some(heartbeat) = handshake.heartbeat {
            conn.session().0.set_heartbeat(from + heartbeat);
        }
    }

    /// Handles a message of the server.
    pub(super) fn phoenix_message_received<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: IncomingMessage<'_>,
    ) {
        let vsn = self.vsn_of(conn);
        let event = match message {
            IncomingMessage::Text(text) => client::decode_text(vsn, text),
            IncomingMessage::Binary(bytes) => client::decode_binary(bytes),
        };
        match event {
            Ok(PhoenixClientEvent::Reply(reply)) => self.reply_received(conn, &reply),
            Ok(PhoenixClientEvent::Message(event)) => {
                self.stats.incidents.unasked_received(conn.now());
                let ended = match &*event.event {
                    names::ERROR => Some(ErrorKind::ChannelError),
                    names::CLOSE => Some(ErrorKind::ChannelClosed),
                    _ => None,
                };
                match (ended, event.payload) {
                    (Some(kind), _) => {
                        self.channel_ended(conn, parse_ref(event.r#ref.as_deref()), kind);
                    }
                    (None, PhoenixPayload::Json(text)) => {
                        _ = self.receive_probe(conn, text.as_bytes())
                    }
                    (None, PhoenixPayload::Binary(bytes)) => _ = self.receive_probe(conn, bytes),
                }
            }
            Err(_) if conn.state().is_between_iterations() => self.close_after_error(conn),
            Err(_) => {
                let kind = ErrorKind::BadMessage;
                let expected = || "a message of Phoenix Channels".to_owned();
                let sample =
                    self.samples.first(kind.name(), expected, || printable(message.bytes()));
                self.stats.samples.extend(sample);
                self.count_error(kind);
                self.close_after_error(conn);
            }
        }
    }

    /// Handles a reply. Its ref says which request it answers, whatever else has arrived in
    /// between.
    fn reply_received<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        reply: &PushReply<'_>,
    ) {
        let number = parse_ref(reply.r#ref.as_deref());
        if number == 0 {
            return;
        }
        let now = conn.now();
        let user = conn.state();
        if number == user.heartbeat {
            user.heartbeat = 0;
            self.stats.counters.heartbeats_answered += 1;
            self.set_heartbeat(conn, now);
        } else if number == user.awaited && user.state == UserState::AwaitingReply {
            user.awaited = 0;
            if let Op::Request { request } = self.config.program.op(user.pc) {
                let ok = &reply.status == "ok";
                if !ok {
                    self.sample_refusal(request, reply);
                }
                self.request_answered(conn, request, number, ok);
            }
        } else if self.probe_push == Some((user.id, number)) {
            self.probe_push = None;
            if &reply.status != "ok" {
                self.count_error(ErrorKind::ProbeRefused);
            }
        }
    }

    /// Keeps a sample of the first reply of its kind whose status is not ok.
    fn sample_refusal(&mut self, request: u32, reply: &PushReply<'_>) {
        let kind = ErrorKind::refused(self.config.program.request(request).kind);
        let got = || match &reply.response {
            PhoenixPayload::Json(text) => {
                format!("{} {}", reply.status, printable(text.as_bytes()))
            }
            PhoenixPayload::Binary(bytes) => format!("{} {}", reply.status, printable(bytes)),
        };
        let sample = self.samples.first(kind.name(), || "status ok".to_owned(), got);
        self.stats.samples.extend(sample);
    }

    fn request_answered<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        index: u32,
        number: u32,
        ok: bool,
    ) {
        let now = conn.now();
        let kind = self.config.program.request(index).kind;
        let user_index = conn.key().index();
        let timing = AnswerTiming::of(conn);
        let user = conn.state();
        self.stats.incidents.answered(timing.arrived_at(), user.intended);
        if !ok {
            if kind == ChannelRequestKind::Join {
                user.channels.remove(number);
            }
            return self.fail_step(conn, ErrorKind::refused(kind));
        }
        match kind {
            ChannelRequestKind::Join => {
                self.stats.count_join(user.intended, timing);
                let channel = user.channels.of_join(number);
                let receives_probe = channel.is_some_and(|channel| {
                    channel.joined = true;
                    channel.receives_probe
                });
                if let Some(probes) = self.probes.as_mut().filter(|_| receives_probe) {
                    probes.join(user, user_index);
                }
            }
            ChannelRequestKind::Push => {
                self.stats.count_push(user.intended, timing);
            }
            ChannelRequestKind::Leave => {}
        }
        user.intended = now;
        user.pc += 1;
        conn.set_deadline(Deadline::Never);
        self.advance(conn);
    }

    /// Fails a request whose reply has not arrived in time.
    pub(super) fn request_timed_out<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let user = conn.state();
        let number = std::mem::take(&mut user.awaited);
        let Op::Request { request } = self.config.program.op(user.pc) else { return };
        let kind = self.config.program.request(request).kind;
        if kind == ChannelRequestKind::Join {
            user.channels.remove(number);
        }
        self.fail_step(conn, ErrorKind::timeout(kind));
    }

    /// Handles the end of a channel by the server. Ignores channels that the user has left.
    fn channel_ended<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        join_ref: u32,
        kind: ErrorKind,
    ) {
        let Some(channel) = self.remove_channel(conn, join_ref) else { return };
        let user = conn.state();
        if is_closing_or_stopped(user) {
            return;
        }
        let awaits_it = user.state == UserState::AwaitingReply
            && matches!(self.config.program.op(user.pc), Op::Request { request }
                if self.config.program.request(request).topic == channel.topic);
        if awaits_it || self.on_error(user.class) != OnError::Continue {
            user.awaited = 0;
            return self.fail_step(conn, kind);
        }
        // No step has failed: the user continues its present step without the channel.
        user.iteration = IterationOutcome::Erred;
        self.count_error(kind);
    }

    /// Removes a channel from the user.
    fn remove_channel<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        join_ref: u32,
    ) -> Option<Channel> {
        let user = conn.state();
        let channel = user.channels.remove(join_ref)?;
        self.stats.counters.joined -= u64::from(channel.joined);
        let still_receives = user.channels.iter().any(|other| other.joined && other.receives_probe);
        if let Some(probes) =
            self.probes.as_mut().filter(|_| channel.receives_probe && !still_receives)
        {
            probes.leave(user, &mut self.stats);
        }
        Some(channel)
    }

    fn vsn_of<D: Driver<Message = GeneratorMessage>>(&self, conn: &mut Conn<'_, D, Self>) -> Vsn {
        self.config.program.handshake(conn.state().handshake.into()).vsn
    }
}

impl ErrorKind {
    /// Returns the error of a request that the server refused.
    const fn refused(kind: ChannelRequestKind) -> Self {
        match kind {
            ChannelRequestKind::Join => Self::JoinRefused,
            ChannelRequestKind::Push => Self::PushRefused,
            ChannelRequestKind::Leave => Self::LeaveRefused,
        }
    }

    /// Returns the error of a request that the server did not answer in time.
    const fn timeout(kind: ChannelRequestKind) -> Self {
        match kind {
            ChannelRequestKind::Join => Self::JoinTimeout,
            ChannelRequestKind::Push => Self::PushTimeout,
            ChannelRequestKind::Leave => Self::LeaveTimeout,
        }
    }
}

/// Reports whether a user is closing its connection or is stopped.
fn is_closing_or_stopped(user: &User) -> bool {
    user.is_between_iterations()
        || matches!(
            user.state,
            UserState::Closing
                | UserState::ClosingFailedConnect
                | UserState::ClosingAfterError
                | UserState::Stopping
        )
}

/// Returns the number of a ref; 0 for none, and for a ref that no user sends.
fn parse_ref(r#ref: Option<&str>) -> u32 {
    r#ref.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Separates the random numbers of topics from all others of a user.
const TOPIC_SEED: u64 = 0x746f_7069_6373;
