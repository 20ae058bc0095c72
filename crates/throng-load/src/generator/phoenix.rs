//! Users that speak Phoenix Channels: joins, pushes and leaves, their answers, heartbeats, and channels that end.

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
use super::{ErrorKind, Generator, GeneratorMessage, shown};
use crate::program::{
    ChannelRequest, ChannelRequestKind, MessageTemplate, OnError, Op, TemplateVars,
};

impl Generator {
    /// The user joins, pushes or leaves.
    pub(super) fn ask<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        index: u32,
    ) -> StepOutcome {
        if let Some(step) = self.held_up(conn) {
            return step;
        }
        let config = std::sync::Arc::clone(&self.config);
        let ask = config.program.ask(index);
        let user = conn.state();
        let channel = user.channels.of_topic(ask.topic);
        if ask.asked != ChannelRequestKind::Join && !channel.is_some_and(|channel| channel.joined) {
            return self.passed_over(conn, ErrorKind::NotJoined);
        }
        let r#ref = user.next_ref();
        let hears_probe = self.write_ask(conn, ask, r#ref, channel);
        match ask.asked {
            ChannelRequestKind::Join => {
                self.stats.counters.joins_started += 1;
                let (join_ref, topic) = (r#ref, ask.topic);
                let channel = Channel { join_ref, topic, joined: false, hears_probe };
                conn.state().channels.push(channel);
            }
            ChannelRequestKind::Push => {
                self.stats.counters.pushes_sent += 1;
                self.stats.counters.pushes_without_reply += u64::from(!ask.awaits_reply);
            }
            ChannelRequestKind::Leave => {
                if let Some(channel) = channel {
                    self.leave_channel(conn, channel.join_ref);
                }
            }
        }
        let now = conn.now();
        let user = conn.state();
        if !ask.awaits_reply {
            user.intended = now;
            user.pc += 1;
            return StepOutcome::Next;
        }
        user.awaited = r#ref;
        user.doing = UserState::Asking;
        conn.set_deadline(Deadline::Coarse(now + ask.timeout));
        StepOutcome::Wait
    }

    /// Appends the question. Whether the probe is heard in its topic.
    fn write_ask<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        ask: &ChannelRequest,
        r#ref: u32,
        channel: Option<Channel>,
    ) -> bool {
        let vsn = self.vsn_of(conn);
        let user = conn.state();
        let topic = self.config.program.topic(ask.topic);
        let buffers = &mut self.buffers;
        [&mut buffers.text, &mut buffers.topic, &mut buffers.event, &mut buffers.payload]
            .into_iter()
            .for_each(Vec::clear);
        // A topic is the same text each time that its user names it.
        let prng = Prng::derive(self.config.seed ^ TOPIC_SEED, user.id);
        topic
            .name
            .render(&mut TemplateVars { user_id: user.id, counter: 0, prng }, &mut buffers.topic);
        let counter = u64::from(user.counter);
        let mut vars = TemplateVars { user_id: user.id, counter, prng: user.prng };
        ask.event.render(&mut vars, &mut buffers.event);
        ask.payload.render(&mut vars, &mut buffers.payload);
        (user.counter, user.prng) = (vars.counter as u32, vars.prng);

        let (topic_text, payload) = (as_text(&buffers.topic), as_text(&buffers.payload));
        let r#ref = Decimal::new(r#ref.into());
        let join_ref = Decimal::new(channel.map_or(0, |channel| channel.join_ref).into());
        match ask.asked {
            ChannelRequestKind::Join => {
                client::join(vsn, r#ref.as_str(), topic_text, payload, &mut buffers.text)
            }
            ChannelRequestKind::Push => {
                let event = as_text(&buffers.event);
                let payload = PhoenixPayload::Json(payload);
                // JSON fits into every version.
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
        let hears_probe = topic.hears_probe(&self.buffers.topic);
        self.write_text(conn);
        hears_probe
    }

    /// Sends what the buffers hold as a push to `topic`, whose probe it is. False when the user is not joined to it.
    pub(super) fn push_probe<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        topic: &str,
    ) -> bool {
        let vsn = self.vsn_of(conn);
        let user = conn.state();
        let joined = user.channels.iter().find(|channel| channel.joined && channel.hears_probe);
        let Some(join_ref) = joined.map(|channel| Decimal::new(channel.join_ref.into())) else {
            return false;
        };
        let number = user.next_ref();
        self.probe_asked = Some((user.id, number));
        let buffers = &mut self.buffers;
        buffers.text.clear();
        // JSON fits into every version.
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

    /// The time for a heartbeat, or for the answer to the last one, has come.
    pub(super) fn heartbeat_due<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let now = conn.now();
        let vsn = self.vsn_of(conn);
        let user = conn.state();
        if is_leaving(user) {
            return;
        }
        if user.heartbeat != 0 {
            self.stats.counters.heartbeats_missed += 1;
            self.count_error(ErrorKind::HeartbeatTimeout);
            return self.break_off(conn);
        }
        let number = user.next_ref();
        user.heartbeat = number;
        self.stats.counters.heartbeats_sent += 1;
        self.buffers.text.clear();
        client::heartbeat(vsn, Decimal::new(number.into()).as_str(), &mut self.buffers.text);
        self.write_text(conn);
        self.set_heartbeat(conn, now);
    }

    fn set_heartbeat<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        from: Instant,
    ) {
        let handshake = self.config.program.handshake(conn.state().handshake.into());
        if let Some(heartbeat) = handshake.heartbeat {
            conn.session().0.set_heartbeat(from + heartbeat);
        }
    }

    /// A message has come.
    pub(super) fn phoenix_message<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: MessageTemplate<'_>,
    ) {
        let vsn = self.vsn_of(conn);
        let heard = match message {
            MessageTemplate::Text(text) => client::decode_text(vsn, text),
            MessageTemplate::Binary(bytes) => client::decode_binary(bytes),
        };
        match heard {
            Ok(PhoenixClientEvent::Reply(reply)) => self.reply(conn, &reply),
            Ok(PhoenixClientEvent::Message(heard)) => {
                self.stats.incidents.heard(conn.now());
                let ended = match &*heard.event {
                    names::ERROR => Some(ErrorKind::ChannelError),
                    names::CLOSE => Some(ErrorKind::ChannelClosed),
                    _ => None,
                };
                match (ended, heard.payload) {
                    (Some(kind), _) => {
                        self.channel_ended(conn, number_of(heard.r#ref.as_deref()), kind);
                    }
                    (None, PhoenixPayload::Json(text)) => {
                        _ = self.take_probe(conn, text.as_bytes())
                    }
                    (None, PhoenixPayload::Binary(bytes)) => _ = self.take_probe(conn, bytes),
                }
            }
            Err(_) if conn.state().is_settled() => self.break_off(conn),
            Err(_) => {
                let kind = ErrorKind::BadMessage;
                let expected = || "a message of Phoenix Channels".to_owned();
                let sample = self.samples.first(kind.name(), expected, || shown(message.bytes()));
                self.stats.samples.extend(sample);
                self.count_error(kind);
                self.break_off(conn);
            }
        }
    }

    /// An answer belongs to the question whose ref it repeats, whatever else has come in between.
    fn reply<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        reply: &PushReply<'_>,
    ) {
        let number = number_of(reply.r#ref.as_deref());
        if number == 0 {
            return;
        }
        let now = conn.now();
        let user = conn.state();
        if number == user.heartbeat {
            user.heartbeat = 0;
            self.stats.counters.heartbeats_answered += 1;
            self.set_heartbeat(conn, now);
        } else if number == user.awaited && user.doing == UserState::Asking {
            user.awaited = 0;
            if let Op::Ask { ask } = self.config.program.op(user.pc) {
                let ok = &reply.status == "ok";
                if !ok {
                    self.show_refusal(ask, reply);
                }
                self.ask_answered(conn, ask, number, ok);
            }
        } else if self.probe_asked == Some((user.id, number)) {
            self.probe_asked = None;
            if &reply.status != "ok" {
                self.count_error(ErrorKind::ProbeRefused);
            }
        }
    }

    /// Shows the first answer of its kind that was not ok.
    fn show_refusal(&mut self, ask: u32, reply: &PushReply<'_>) {
        let kind = ErrorKind::refused(self.config.program.ask(ask).asked);
        let got = || match &reply.response {
            PhoenixPayload::Json(text) => format!("{} {}", reply.status, shown(text.as_bytes())),
            PhoenixPayload::Binary(bytes) => format!("{} {}", reply.status, shown(bytes)),
        };
        let sample = self.samples.first(kind.name(), || "status ok".to_owned(), got);
        self.stats.samples.extend(sample);
    }

    fn ask_answered<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        index: u32,
        number: u32,
        ok: bool,
    ) {
        let now = conn.now();
        let asked = self.config.program.ask(index).asked;
        let place = conn.key().index();
        let timing = AnswerTiming::of(conn);
        let user = conn.state();
        self.stats.incidents.answered(timing.came_at(), user.intended);
        if !ok {
            if asked == ChannelRequestKind::Join {
                user.channels.remove(number);
            }
            return self.fail(conn, ErrorKind::refused(asked));
        }
        match asked {
            ChannelRequestKind::Join => {
                self.stats.joined(user.intended, timing);
                let channel = user.channels.of_join(number);
                let hears_probe = channel.is_some_and(|channel| {
                    channel.joined = true;
                    channel.hears_probe
                });
                if let Some(probes) = self.probes.as_mut().filter(|_| hears_probe) {
                    probes.join(user, place);
                }
            }
            ChannelRequestKind::Push => {
                self.stats.pushed(user.intended, timing);
            }
            ChannelRequestKind::Leave => {}
        }
        user.intended = now;
        user.pc += 1;
        conn.set_deadline(Deadline::Never);
        self.advance(conn);
    }

    /// The answer did not come in time.
    pub(super) fn ask_timed_out<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let user = conn.state();
        let number = std::mem::take(&mut user.awaited);
        let Op::Ask { ask } = self.config.program.op(user.pc) else { return };
        let asked = self.config.program.ask(ask).asked;
        if asked == ChannelRequestKind::Join {
            user.channels.remove(number);
        }
        self.fail(conn, ErrorKind::timeout(asked));
    }

    /// The server has ended a channel that the user is in. Of channels that it has left, nothing is to be said.
    fn channel_ended<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        join_ref: u32,
        kind: ErrorKind,
    ) {
        let Some(channel) = self.leave_channel(conn, join_ref) else { return };
        let user = conn.state();
        if is_leaving(user) {
            return;
        }
        let asks_it = user.doing == UserState::Asking
            && matches!(self.config.program.op(user.pc), Op::Ask { ask }
                if self.config.program.ask(ask).topic == channel.topic);
        if asks_it || self.on_error(user.class) != OnError::Continue {
            user.awaited = 0;
            return self.fail(conn, kind);
        }
        // No step went wrong: the user goes on with what it was doing, without the channel.
        user.iteration = IterationOutcome::Erred;
        self.count_error(kind);
    }

    /// Takes a channel from the user.
    fn leave_channel<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        join_ref: u32,
    ) -> Option<Channel> {
        let user = conn.state();
        let channel = user.channels.remove(join_ref)?;
        self.stats.counters.joined -= u64::from(channel.joined);
        let hears_still = user.channels.iter().any(|other| other.joined && other.hears_probe);
        if let Some(probes) = self.probes.as_mut().filter(|_| channel.hears_probe && !hears_still) {
            probes.leave(user, &mut self.stats);
        }
        Some(channel)
    }

    fn vsn_of<D: Driver<Mail = GeneratorMessage>>(&self, conn: &mut Conn<'_, D, Self>) -> Vsn {
        self.config.program.handshake(conn.state().handshake.into()).vsn
    }
}

impl ErrorKind {
    /// The server says no.
    const fn refused(asked: ChannelRequestKind) -> Self {
        match asked {
            ChannelRequestKind::Join => Self::JoinRefused,
            ChannelRequestKind::Push => Self::PushRefused,
            ChannelRequestKind::Leave => Self::LeaveRefused,
        }
    }

    /// The server says nothing.
    const fn timeout(asked: ChannelRequestKind) -> Self {
        match asked {
            ChannelRequestKind::Join => Self::JoinTimeout,
            ChannelRequestKind::Push => Self::PushTimeout,
            ChannelRequestKind::Leave => Self::LeaveTimeout,
        }
    }
}

/// Whether a user ends its connection, or is about to.
fn is_leaving(user: &User) -> bool {
    user.is_settled()
        || matches!(
            user.doing,
            UserState::Closing | UserState::GivingUp | UserState::Failing | UserState::Stopping
        )
}

/// The number that a ref is; 0 for none, and for what is none of ours.
fn number_of(r#ref: Option<&str>) -> u32 {
    r#ref.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Sets the random numbers of topics apart from all others of a user.
const TOPIC_SEED: u64 = 0x746f_7069_6373;
