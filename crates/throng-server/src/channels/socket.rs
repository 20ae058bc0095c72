//! The operations of a channel during one of its callbacks.

use std::sync::Arc;

use throng_proto::phoenix::{self, FrameEncodeError, FrameKind, PhoenixPayload, Vsn, names};
use throng_pubsub::presence::{Presence, PresenceError, PresenceMember};

use super::broadcast::{self, Broadcast};
use super::channel::Info;
use super::client::Client;
use super::core_state::{CoreState, Owner};
use super::frame;
use super::longpoll::session;
use super::presence_list::{self, Fragments, Pieces};
use super::refs::Ref;
use super::topic::Topic;
use crate::ConnectionId;

/// A client that requests to join, for the duration of [`Channel::join`](super::Channel::join).
pub struct Joining<'a> {
    pub(crate) conn: Client<'a>,
    pub(crate) topic: &'a str,
    pub(crate) payload: PhoenixPayload<'a>,
    pub(crate) welcome: String,
    pub(crate) presence: &'a Presence<Owner>,
    /// True if [`Self::may_track`] has returned that the topic is full.
    pub(crate) is_full: bool,
}

impl<'a> Joining<'a> {
    /// Returns the topic of the join.
    pub fn topic(&self) -> &'a str {
        self.topic
    }

    /// Returns the payload of the join.
    pub fn payload(&self) -> PhoenixPayload<'a> {
        self.payload
    }

    /// Sets the response to an admitted join: JSON, `{}` by default.
    pub fn welcome(&mut self, response: impl Into<String>) {
        self.welcome = response.into();
    }

    /// Returns the connection's assigns, if their type is `T`.
    pub fn assigns<T: 'static>(&mut self) -> Option<&mut T> {
        assigns(&mut self.conn)
    }

    /// Checks whether the channel may track `key` with `meta` once it has joined, by
    /// [`Socket::track`].
    ///
    /// # Errors
    /// Returns the reason: the topic is full, or the key or the meta cannot be tracked.
    pub fn may_track(&mut self, key: &str, meta: &str) -> Result<(), PresenceError> {
        let may = self.presence.may_track(self.topic, key, meta);
        self.is_full |= may == Err(PresenceError::Full);
        may
    }

    /// Returns the connection's name in this process.
    pub fn connection(&self) -> ConnectionId {
        self.conn.id()
    }
}

/// A channel's access to its client, for the duration of one callback. Messages leave after the
/// callback has returned.
pub struct Socket<'a> {
    pub(crate) conn: Client<'a>,
    pub(crate) core: &'a mut CoreState,
    pub(crate) vsn: Vsn,
    pub(crate) topic: &'a Topic,
    pub(crate) join_ref: &'a Ref,
    pub(crate) serial: u32,
    /// The ref of the push that is being handled.
    pub(crate) push_ref: Option<&'a str>,
    /// True while the channel receives broadcasts.
    pub(crate) is_member: bool,
    pub(crate) stops: bool,
}

impl Socket<'_> {
    /// Returns the topic of this channel.
    pub fn topic(&self) -> &str {
        &self.topic.name
    }

    /// Returns the connection's name in this process.
    pub fn connection(&self) -> ConnectionId {
        self.conn.id()
    }

    /// Returns the connection's assigns, if their type is `T`.
    pub fn assigns<T: 'static>(&mut self) -> Option<&mut T> {
        assigns(&mut self.conn)
    }

    /// Sends `event` to this client only.
    ///
    /// # Panics
    /// If `payload` is JSON but not an object, or binary for a client of V1, or binary with a topic
    /// or event longer than 255 bytes. Phoenix's channels crash in these cases, too.
    pub fn push(&mut self, event: &str, payload: PhoenixPayload<'_>) {
        assert_object(payload);
        let (topic, join_ref) = (&self.topic.name, self.join_ref.as_deref());
        write(&mut self.conn, self.core, |out| {
            phoenix::push(self.vsn, join_ref, topic, event, payload, out)
        });
    }

    /// Answers the push that is being handled. `status` is `ok`, `error`, or any word that the
    /// client knows. Outside of `handle_in`, the answer has no ref.
    ///
    /// # Panics
    /// Like [`Self::push`] for a binary `response`.
    pub fn reply(&mut self, status: &str, response: PhoenixPayload<'_>) {
        let (topic, join_ref) = (&self.topic.name, self.join_ref.as_deref());
        write(&mut self.conn, self.core, |out| {
            phoenix::reply(self.vsn, join_ref, self.push_ref, topic, status, response, out)
        });
    }

    /// Returns the name of the push that is being handled, for [`Self::reply_to`].
    pub fn reference(&self) -> Reference {
        Reference { join_ref: self.join_ref.clone(), r#ref: Ref::new(self.push_ref) }
    }

    /// Answers an earlier push of this channel.
    ///
    /// # Panics
    /// Like [`Self::push`] for a binary `response`.
    pub fn reply_to(&mut self, reference: &Reference, status: &str, response: PhoenixPayload<'_>) {
        let (join_ref, r#ref) = (reference.join_ref.as_deref(), reference.r#ref.as_deref());
        write(&mut self.conn, self.core, |out| {
            phoenix::reply(self.vsn, join_ref, r#ref, &self.topic.name, status, response, out)
        });
    }

    /// Sends `event` to all clients that have joined this topic, on every core, this client
    /// included.
    ///
    /// # Panics
    /// If `payload` is JSON but not an object.
    pub fn broadcast(&mut self, event: &str, payload: PhoenixPayload<'_>) {
        self.publish(Arc::clone(&self.topic.name), event, payload, None);
    }

    /// Sends `event` to all clients that have joined this topic, except this client.
    ///
    /// # Panics
    /// Like [`Self::broadcast`].
    pub fn broadcast_from(&mut self, event: &str, payload: PhoenixPayload<'_>) {
        let own = self.conn.id();
        self.publish(Arc::clone(&self.topic.name), event, payload, Some(own));
    }

    /// Sends `event` to all clients that have joined another topic. `disconnect` to the id that the
    /// connect callback gave to connections closes them.
    ///
    /// # Panics
    /// Like [`Self::broadcast`].
    pub fn broadcast_to(&mut self, topic: &str, event: &str, payload: PhoenixPayload<'_>) {
        self.publish(topic.into(), event, payload, None);
    }

    /// Calls [`Channel::handle_info`](super::Channel::handle_info) once this callback has returned.
    ///
    /// # Panics
    /// If channels of a connection do so more than a thousand times during one event: it would
    /// never end.
    pub fn send_self(&mut self, info: Info) {
        self.core.infos.push(&self.topic.name, self.serial, info);
    }

    /// Returns the name of this channel, by which others reach it.
    pub fn address(&self) -> Address {
        Address {
            connection: self.conn.id(),
            topic: Arc::clone(&self.topic.name),
            serial: self.serial,
        }
    }

    /// Sends a message to another channel on any core, which receives it in
    /// [`Channel::handle_info`](super::Channel::handle_info). It is lost if that channel has ended.
    ///
    /// # Errors
    /// Returns the message if `mailbox_max` messages wait for that core.
    pub fn send(&mut self, to: &Address, info: Info) -> Result<(), Info> {
        self.conn
            .send_message(to.connection, to.message(info))
            .map_err(super::ChannelMessage::into_info)
    }

    /// Ends the channel once the callback has returned, and sends `phx_close` to the client.
    pub fn stop(&mut self) {
        self.stops = true;
    }

    /// Tracks this client's presence in the topic as `key`, until the channel ends. `meta` is a
    /// JSON object for the other members. All members of the topic receive a `presence_diff`.
    ///
    /// # Errors
    /// Returns an error if this channel tracks the key already, if `meta` is not an object, if one
    /// of the two is longer than [`PresenceLimits`](super::PresenceLimits) allow, or if the topic
    /// is full.
    pub fn track(&mut self, key: &str, meta: &str) -> Result<(), PresenceError> {
        let (now, owner) = (self.conn.now(), self.owner());
        let tracked = self.core.presence.track(now, owner, &self.topic.name, key, meta).map(drop);
        self.core.counters.presence_refused += u64::from(tracked == Err(PresenceError::Full));
        tracked
    }

    /// Changes the meta of `key`.
    ///
    /// # Errors
    /// Returns an error if this channel does not track the key, or if `meta` is not an object or
    /// too long.
    pub fn update(&mut self, key: &str, meta: &str) -> Result<(), PresenceError> {
        let (now, owner) = (self.conn.now(), self.owner());
        self.core.presence.update(now, owner, &self.topic.name, key, meta).map(drop)
    }

    /// Ends this client's presence as `key`.
    ///
    /// # Errors
    /// Returns an error if this channel does not track the key.
    pub fn untrack(&mut self, key: &str) -> Result<(), PresenceError> {
        let owner = self.owner();
        self.core.presence.untrack(owner, &self.topic.name, key)
    }

    /// Returns all members of the topic on all cores: by key, then by age.
    pub fn present(&self) -> impl Iterator<Item = Arc<PresenceMember>> {
        self.core.presence.members(&self.topic.name)
    }

    /// Pushes the whole list (`presence_state`); after it, the client follows the diffs. A list of
    /// more than 16 KiB is written while the client reads it. A long-polling client receives the
    /// part beyond 256 KiB with later polls, as `presence_diff`.
    pub fn push_presence(&mut self) {
        let (topic, join_ref) = (&self.topic.name, self.join_ref);
        if self.core.presence.state_bytes(topic) > presence_list::WHOLE_BYTES_MAX {
            let listing = self.core.presence.members(topic);
            if self.conn.state().is_poll() {
                let pieces = Pieces::new(self.vsn, join_ref, topic, listing);
                session::push_list(&mut self.conn, pieces);
            } else if self.conn.protocol().is_open() {
                let fragments = Fragments::new(self.vsn, join_ref.as_deref(), topic, listing);
                self.conn.send_source(Box::new(fragments));
            }
            return;
        }
        let mut list = Vec::new();
        self.core.presence.state(&self.topic.name, &mut list);
        let list = std::str::from_utf8(&list).unwrap_or_default();
        self.push(names::PRESENCE_STATE, PhoenixPayload::Json(list));
    }

    fn owner(&self) -> Owner {
        Owner::new(self.conn.id(), self.serial)
    }

    /// Publishes a broadcast. As in Phoenix, this client's own copy comes before anything sent to
    /// it later, such as a reply.
    fn publish(
        &mut self,
        topic: Arc<str>,
        event: &str,
        payload: PhoenixPayload<'_>,
        mut except: Option<ConnectionId>,
    ) {
        assert_object(payload);
        let sends_now = except.is_none() && self.is_delivered_directly(&topic, event);
        let publication = Broadcast::new(event, payload).publication(topic);
        if sends_now {
            except = Some(self.conn.id());
            broadcast::send_to(&mut self.conn, self.core, self.vsn, &publication);
        }
        self.conn.publish(publication, except);
    }

    /// Reports whether this client receives the broadcasts of an event on a topic directly, without
    /// a channel of its own that intercepts them.
    fn is_delivered_directly(&mut self, topic: &str, event: &str) -> bool {
        let route = if *self.topic.name == *topic {
            self.is_member.then_some(self.topic.route)
        } else {
            self.conn.state().find(topic).map(|joined| joined.topic.route)
        };
        route.is_some_and(|route| !self.core.config.routes[usize::from(route)].intercepts(event))
    }
}

/// The name of a push that is not answered yet.
#[derive(Clone, Debug)]
pub struct Reference {
    join_ref: Ref,
    r#ref: Ref,
}

/// A channel's name. It is valid on every core and thread.
#[derive(Clone, Debug)]
pub struct Address {
    pub(crate) connection: ConnectionId,
    topic: Arc<str>,
    serial: u32,
}

impl Address {
    pub(crate) fn message(&self, info: Info) -> super::ChannelMessage {
        super::ChannelMessage::info(Arc::clone(&self.topic), self.serial, info)
    }
}

fn assigns<'c, T: 'static>(conn: &'c mut Client<'_>) -> Option<&'c mut T> {
    conn.state().extra.as_mut()?.assigns.as_mut()?.downcast_mut()
}

/// Encodes a message into the core's buffer and sends it.
fn write(
    conn: &mut Client<'_>,
    core: &mut CoreState,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<FrameKind, FrameEncodeError>,
) {
    core.frame.clear();
    match encode(&mut core.frame) {
        Ok(kind) => frame::send(conn, core, kind),
        Err(error) => panic!("{error}"),
    }
}

/// Checks that a JSON payload begins as an object, because anything else breaks the clients. The
/// application is responsible for the rest of the JSON.
pub(crate) fn assert_object(payload: PhoenixPayload<'_>) {
    if let PhoenixPayload::Json(json) = payload {
        assert!(
            json.trim_ascii_start().starts_with('{'),
            "a payload must be a JSON object: {json:.40}"
        );
    }
}
