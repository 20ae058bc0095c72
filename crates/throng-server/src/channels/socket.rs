//! What a channel may do while one of its callbacks runs.

use std::sync::Arc;

use throng_proto::phoenix::{self, FrameEncodeError, FrameKind, PhoenixPayload, Vsn, names};
use throng_pubsub::presence::{Presence, PresenceError, PresenceMember};

use super::broadcast::{self, Broadcast};
use super::channel::Info;
use super::client_state::Topic;
use super::core_state::{CoreState, Owner};
use super::frame;
use super::handler::Client;
use super::presence_list::{self, Fragments, Pieces};
use super::longpoll;
use super::refs::Ref;
use crate::ConnectionId;

/// A client that wants to join, for the length of [`Channel::join`](super::Channel::join).
pub struct Joining<'a> {
    pub(crate) conn: Client<'a>,
    pub(crate) topic: &'a str,
    pub(crate) payload: PhoenixPayload<'a>,
    pub(crate) welcome: String,
    pub(crate) presence: &'a Presence<Owner>,
    /// The channel was told that the topic is full.
    pub(crate) is_full: bool,
}

impl<'a> Joining<'a> {
    /// What it wants to join.
    pub fn topic(&self) -> &'a str {
        self.topic
    }

    /// What it said about it.
    pub fn payload(&self) -> PhoenixPayload<'a> {
        self.payload
    }

    /// What it is answered when it may: JSON, `{}` unless this is called.
    pub fn welcome(&mut self, response: impl Into<String>) {
        self.welcome = response.into();
    }

    /// What the connect callback kept for the connection, if it was a `T`.
    pub fn assigns<T: 'static>(&mut self) -> Option<&mut T> {
        assigns(&mut self.conn)
    }

    /// Checks whether the channel may track `key` with `meta` once it has joined; [`Socket::track`]
    /// does it.
    ///
    /// # Errors
    /// Why not: the topic is full, or the key or the meta is none that can be tracked.
    pub fn may_track(&mut self, key: &str, meta: &str) -> Result<(), PresenceError> {
        let may = self.presence.may_track(self.topic, key, meta);
        self.is_full |= may == Err(PresenceError::Full);
        may
    }

    /// The connection's name in this process.
    pub fn connection(&self) -> ConnectionId {
        self.conn.id()
    }
}

/// A channel's way to its client, for the length of one callback. What it sends leaves when the callback has returned.
pub struct Socket<'a> {
    pub(crate) conn: Client<'a>,
    pub(crate) core: &'a mut CoreState,
    pub(crate) vsn: Vsn,
    pub(crate) topic: &'a Topic,
    pub(crate) join_ref: &'a Ref,
    pub(crate) serial: u32,
    /// The ref of the push that is being handled.
    pub(crate) push_ref: Option<&'a str>,
    /// Whether the channel still gets what is broadcast.
    pub(crate) is_member: bool,
    pub(crate) stops: bool,
}

impl Socket<'_> {
    /// The topic that this channel is of.
    pub fn topic(&self) -> &str {
        &self.topic.name
    }

    /// The connection's name in this process.
    pub fn connection(&self) -> ConnectionId {
        self.conn.id()
    }

    /// What the connect callback kept for the connection, if it was a `T`.
    pub fn assigns<T: 'static>(&mut self) -> Option<&mut T> {
        assigns(&mut self.conn)
    }

    /// Sends `event` to this client alone.
    ///
    /// # Panics
    /// When `payload` is JSON but no object, or binary for a client of V1; when it is binary and the topic or event is longer
    /// than 255 bytes. Phoenix's channels crash for these, too.
    pub fn push(&mut self, event: &str, payload: PhoenixPayload<'_>) {
        assert_object(payload);
        let (topic, join_ref) = (&self.topic.name, self.join_ref.as_deref());
        write(&mut self.conn, self.core, |out| {
            phoenix::push(self.vsn, join_ref, topic, event, payload, out)
        });
    }

    /// Answers the push that is being handled; `status` is `ok`, `error`, or any word that the client knows. Outside of
    /// `handle_in`, an answer to nothing.
    ///
    /// # Panics
    /// As [`Self::push`] does for a binary `response`.
    pub fn reply(&mut self, status: &str, response: PhoenixPayload<'_>) {
        let (topic, join_ref) = (&self.topic.name, self.join_ref.as_deref());
        write(&mut self.conn, self.core, |out| {
            phoenix::reply(self.vsn, join_ref, self.push_ref, topic, status, response, out)
        });
    }

    /// The name of the push that is being handled, to be answered later with [`Self::reply_to`].
    pub fn reference(&self) -> Reference {
        Reference { join_ref: self.join_ref.clone(), r#ref: Ref::new(self.push_ref) }
    }

    /// Answers a push of this channel that was handled before.
    ///
    /// # Panics
    /// As [`Self::push`] does for a binary `response`.
    pub fn reply_to(&mut self, reference: &Reference, status: &str, response: PhoenixPayload<'_>) {
        let (join_ref, r#ref) = (reference.join_ref.as_deref(), reference.r#ref.as_deref());
        write(&mut self.conn, self.core, |out| {
            phoenix::reply(self.vsn, join_ref, r#ref, &self.topic.name, status, response, out)
        });
    }

    /// Sends `event` to everyone who is joined to this topic, this client included, on every core.
    ///
    /// # Panics
    /// When `payload` is JSON but no object.
    pub fn broadcast(&mut self, event: &str, payload: PhoenixPayload<'_>) {
        self.publish(Arc::clone(&self.topic.name), event, payload, None);
    }

    /// The same to everyone but this client.
    ///
    /// # Panics
    /// As [`Self::broadcast`].
    pub fn broadcast_from(&mut self, event: &str, payload: PhoenixPayload<'_>) {
        let own = self.conn.id();
        self.publish(Arc::clone(&self.topic.name), event, payload, Some(own));
    }

    /// The same to everyone who is joined to another topic. `disconnect` to the id that the connect callback gave
    /// to connections closes them.
    ///
    /// # Panics
    /// As [`Self::broadcast`].
    pub fn broadcast_to(&mut self, topic: &str, event: &str, payload: PhoenixPayload<'_>) {
        self.publish(topic.into(), event, payload, None);
    }

    /// Has [`Channel::handle_info`](super::Channel::handle_info) called once this callback has returned.
    ///
    /// # Panics
    /// When a channel does so a thousand times in one go: it would never end.
    pub fn send_self(&mut self, info: Info) {
        self.core.infos.push(&self.topic.name, self.serial, info);
    }

    /// The name of this channel, by which others reach it.
    pub fn address(&self) -> Address {
        Address {
            connection: self.conn.id(),
            topic: Arc::clone(&self.topic.name),
            serial: self.serial,
        }
    }

    /// Has [`Channel::handle_info`](super::Channel::handle_info) called for another channel, on any core; for one that has
    /// ended by then it is lost.
    ///
    /// # Errors
    /// The message again, when too much waits for that core.
    pub fn send(&mut self, to: &Address, info: Info) -> Result<(), Info> {
        self.conn
            .send_message(to.connection, to.message(info))
            .map_err(super::ChannelMessage::into_info)
    }

    /// Ends the channel once the callback has returned; the client is told (`phx_close`).
    pub fn stop(&mut self) {
        self.stops = true;
    }

    /// This client is present in the topic as `key`, from now on until the channel ends; `meta` is a JSON object that others
    /// are told about it. Everyone in the topic gets a `presence_diff`.
    ///
    /// # Errors
    /// This channel tracks the key already, `meta` is no object, one of the two is longer than
    /// [`PresenceLimits`](super::PresenceLimits) allow, or as many as they allow are present.
    pub fn track(&mut self, key: &str, meta: &str) -> Result<(), PresenceError> {
        let (now, owner) = (self.conn.now(), self.owner());
        let tracked = self.core.presence.track(now, owner, &self.topic.name, key, meta).map(drop);
        self.core.counters.presence_refused += u64::from(tracked == Err(PresenceError::Full));
        tracked
    }

    /// What others are told about `key` changes.
    ///
    /// # Errors
    /// This channel does not track the key, `meta` is no object, or it is too long.
    pub fn update(&mut self, key: &str, meta: &str) -> Result<(), PresenceError> {
        let (now, owner) = (self.conn.now(), self.owner());
        self.core.presence.update(now, owner, &self.topic.name, key, meta).map(drop)
    }

    /// This client is no longer present as `key`.
    ///
    /// # Errors
    /// This channel does not track the key.
    pub fn untrack(&mut self, key: &str) -> Result<(), PresenceError> {
        let owner = self.owner();
        self.core.presence.untrack(owner, &self.topic.name, key)
    }

    /// Everyone who is present in the topic, on any core: by key, then by age.
    pub fn present(&self) -> impl Iterator<Item = Arc<PresenceMember>> {
        self.core.presence.members(&self.topic.name)
    }

    /// Pushes the whole list (`presence_state`), from which on the client follows the diffs. A list
    /// of more than 16 KiB is written while the client reads it; a long-polling client gets what is
    /// beyond 256 KiB with later polls, as `presence_diff`.
    pub fn push_presence(&mut self) {
        let (topic, join_ref) = (&self.topic.name, self.join_ref);
        if self.core.presence.state_bytes(topic) > presence_list::WHOLE_BYTES_MAX {
            let listing = self.core.presence.members(topic);
            if self.conn.state().is_poll() {
                let pieces = Pieces::new(self.vsn, join_ref, topic, listing);
                longpoll::push_list(&mut self.conn, pieces);
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

    /// As in Phoenix, this client's own copy comes before whatever is sent to it next: a reply, say.
    fn publish(
        &mut self,
        topic: Arc<str>,
        event: &str,
        payload: PhoenixPayload<'_>,
        mut except: Option<ConnectionId>,
    ) {
        assert_object(payload);
        let is_told_now = except.is_none() && self.is_delivered_directly(&topic, event);
        let publication = Broadcast::new(event, payload).publication(topic);
        if is_told_now {
            except = Some(self.conn.id());
            broadcast::send_to(&mut self.conn, self.core, self.vsn, &publication);
        }
        self.conn.publish(publication, except);
    }

    /// Whether this client gets the broadcasts of an event on a topic, without a channel of its own in between.
    fn is_delivered_directly(&mut self, topic: &str, event: &str) -> bool {
        let route = match *self.topic.name == *topic {
            true if self.is_member => Some(self.topic.route),
            true => None,
            false => self.conn.state().find(topic).map(|joined| joined.topic.route),
        };
        route.is_some_and(|route| !self.core.config.routes[usize::from(route)].intercepts(event))
    }
}

/// A push that is not answered yet.
#[derive(Clone, Debug)]
pub struct Reference {
    join_ref: Ref,
    r#ref: Ref,
}

/// A channel's name, good on every core and thread.
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

/// A server that sends something else than an object breaks its clients. Whether all of it is valid is the application's
/// business.
pub(crate) fn assert_object(payload: PhoenixPayload<'_>) {
    if let PhoenixPayload::Json(json) = payload {
        assert!(
            json.trim_ascii_start().starts_with('{'),
            "a payload must be a JSON object: {json:.40}"
        );
    }
}
