//! The messages of clients: passes each to its channel, and replies.

use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_proto::phoenix::{
    self, FrameEncodeError, FrameKind, PhoenixMessage, PhoenixPayload, Vsn, names,
};
use throng_pubsub::Subscription;

use super::broadcast::dialect;
use super::channel::{JoinRefusal, LeaveReason};
use super::client::{CHANNEL, ChannelHandler, Client, INTERNAL_ERROR};
use super::client_state::JoinedChannel;
use super::frame;
use super::lifecycle::drop_shielded;
use super::refs::Ref;
use super::socket::Joining;

impl ChannelHandler {
    pub(crate) fn text(&mut self, conn: &mut Client<'_>, vsn: Vsn, text: &str) {
        match phoenix::decode_text(vsn, text) {
            Ok(message) => self.message_in(conn, vsn, &message),
            Err(_) => self.reject_message(conn),
        }
    }

    pub(crate) fn binary(&mut self, conn: &mut Client<'_>, vsn: Vsn, bytes: &[u8]) {
        if vsn == Vsn::V1 {
            // In V1 every message is JSON, in a binary frame too, as in Phoenix. tsung sends such
            // frames.
            return self.text(conn, vsn, std::str::from_utf8(bytes).unwrap_or_default());
        }
        match phoenix::decode_binary(bytes) {
            Ok(message) => self.message_in(conn, vsn, &message),
            Err(_) => self.reject_message(conn),
        }
    }

    /// Closes a connection that sent something that is not a message. Phoenix crashes here, and
    /// clients know that as this close code.
    pub(super) fn reject_message(&mut self, conn: &mut Client<'_>) {
        self.core.counters.bad_messages += 1;
        self.end(conn, INTERNAL_ERROR, LeaveReason::Closed);
    }

    pub(super) fn message_in(
        &mut self,
        conn: &mut Client<'_>,
        vsn: Vsn,
        message: &PhoenixMessage<'_>,
    ) {
        match &*message.event {
            names::HEARTBEAT if message.topic == names::PHOENIX => {
                self.reply(conn, vsn, message, None, "ok", PhoenixPayload::EMPTY);
            }
            names::JOIN => self.join(conn, vsn, message),
            names::LEAVE => self.leave(conn, vsn, message),
            _ => self.push_in(conn, vsn, message),
        }
        self.run_infos(conn);
    }

    fn join(&mut self, conn: &mut Client<'_>, vsn: Vsn, message: &PhoenixMessage<'_>) {
        let old = conn.state().take(&message.topic);
        // The reply to the join comes before the last messages of the old channel.
        let mut last_messages = None;
        if let Some(mut old) = old {
            let mark = frame::mark(conn);
            self.terminate(conn, vsn, &mut old, LeaveReason::Duplicate);
            self.write(conn, |out| {
                phoenix::channel_closed(vsn, old.join_ref.as_deref(), &old.topic.name, out);
                Ok(FrameKind::Text)
            });
            last_messages = Some(frame::cut(conn, mark));
            self.forget(conn, old);
        }
        let joined = self.try_join(conn, vsn, message);
        match joined {
            Some(_) => self.core.counters.joins += 1,
            None => self.core.counters.joins_refused += 1,
        }
        if let Some(last_messages) = last_messages {
            frame::append(conn, last_messages);
        }
        if let Some(mut joined) = joined {
            let outcome =
                self.call(conn, vsn, &mut joined, None, |channel, socket| channel.joined(socket));
            self.apply_outcome(conn, vsn, joined, outcome);
        }
    }

    /// Joins the topic, and replies.
    fn try_join(
        &mut self,
        conn: &mut Client<'_>,
        vsn: Vsn,
        message: &PhoenixMessage<'_>,
    ) -> Option<JoinedChannel> {
        let join_ref = message.join_ref.as_deref();
        if conn.state().channels() >= self.core.config.channels_max {
            let error = PhoenixPayload::Json(r#"{"reason":"too many channels joined"}"#);
            self.reply(conn, vsn, message, join_ref, "error", error);
            return None;
        }
        // A channel without a join_ref is known by the ref of its join.
        let known_as = join_ref.or(message.r#ref.as_deref());
        let name_bytes = message.topic.len().max(known_as.map_or(0, str::len));
        let topic = if name_bytes <= self.core.config.name_bytes_max {
            self.core.topics.get(&self.core.config, &message.topic)
        } else {
            None
        };
        let Some(topic) = topic else {
            self.reply_unmatched(conn, vsn, message);
            return None;
        };
        let route = &self.core.config.routes[usize::from(topic.route)];
        let mut joining = Joining {
            conn: conn.reborrow(),
            topic: &topic.name,
            payload: message.payload,
            welcome: String::new(),
            presence: &self.core.presence,
            is_full: false,
        };
        let made = catch_unwind(AssertUnwindSafe(|| (route.join)(&mut joining)));
        let Joining { welcome, is_full, .. } = joining;
        match made {
            Ok(Ok(channel)) => {
                let response = if welcome.is_empty() { "{}" } else { &welcome };
                let intercepts = !route.intercept.is_empty() || conn.state().is_poll();
                let dialect = dialect(vsn, conn.protocol().is_deflated());
                let subscription = Subscription { dialect, intercepts, tag: CHANNEL };
                self.reply(conn, vsn, message, join_ref, "ok", PhoenixPayload::Json(response));
                let membership = conn.subscribe(&topic.name, subscription);
                let serial = self.core.next_serial();
                self.core.counters.channels += 1;
                Some(JoinedChannel {
                    channel,
                    topic,
                    join_ref: Ref::new(known_as),
                    membership,
                    serial,
                })
            }
            Ok(Err(JoinRefusal(response))) => {
                self.core.counters.presence_refused += u64::from(is_full);
                self.reply(conn, vsn, message, join_ref, "error", PhoenixPayload::Json(&response));
                self.core.topics.release(topic);
                None
            }
            Err(panic) => {
                drop_shielded(panic);
                self.core.counters.channel_crashes += 1;
                let error = PhoenixPayload::Json(r#"{"reason":"join crashed"}"#);
                self.reply(conn, vsn, message, join_ref, "error", error);
                self.core.topics.release(topic);
                None
            }
        }
    }

    fn leave(&mut self, conn: &mut Client<'_>, vsn: Vsn, message: &PhoenixMessage<'_>) {
        let join_ref = message.join_ref.as_deref();
        match conn.state().find(&message.topic) {
            None => return self.reply(conn, vsn, message, join_ref, "ok", PhoenixPayload::EMPTY),
            Some(joined) if joined.is_stale(join_ref) => return,
            Some(_) => {}
        }
        let Some(joined) = conn.state().take(&message.topic) else { return };
        let known_as = joined.join_ref.as_deref();
        self.reply(conn, vsn, message, known_as, "ok", PhoenixPayload::EMPTY);
        self.finish(conn, vsn, joined, LeaveReason::Left);
    }

    /// Passes a pushed event to its channel.
    fn push_in(&mut self, conn: &mut Client<'_>, vsn: Vsn, message: &PhoenixMessage<'_>) {
        let Some(mut joined) = conn.state().take(&message.topic) else {
            return self.reply_unmatched(conn, vsn, message);
        };
        if joined.is_stale(message.join_ref.as_deref()) {
            return conn.state().put(joined);
        }
        let push_ref = message.r#ref.as_deref();
        let outcome = self.call(conn, vsn, &mut joined, push_ref, |channel, socket| {
            channel.handle_in(&message.event, message.payload, socket);
        });
        self.apply_outcome(conn, vsn, joined, outcome);
    }

    fn reply_unmatched(&mut self, conn: &mut Client<'_>, vsn: Vsn, message: &PhoenixMessage<'_>) {
        let error = PhoenixPayload::Json(r#"{"reason":"unmatched topic"}"#);
        self.reply(conn, vsn, message, None, "error", error);
    }

    pub(super) fn reply(
        &mut self,
        conn: &mut Client<'_>,
        vsn: Vsn,
        message: &PhoenixMessage<'_>,
        join_ref: Option<&str>,
        status: &str,
        response: PhoenixPayload<'_>,
    ) {
        let r#ref = message.r#ref.as_deref();
        self.write(conn, |out| {
            phoenix::reply(vsn, join_ref, r#ref, &message.topic, status, response, out)
        });
    }

    pub(super) fn write(
        &mut self,
        conn: &mut Client<'_>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<FrameKind, FrameEncodeError>,
    ) {
        self.core.frame.clear();
        if let Ok(kind) = encode(&mut self.core.frame) {
            frame::send(conn, &mut self.core, kind);
        }
    }
}

impl JoinedChannel {
    /// Reports whether a message is for an earlier channel of the same topic.
    fn is_stale(&self, join_ref: Option<&str>) -> bool {
        join_ref.is_some_and(|join_ref| self.join_ref.as_deref() != Some(join_ref))
    }
}
