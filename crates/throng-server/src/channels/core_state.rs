//! What all channels of one core share.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use throng_driver::CoreId;
use throng_proto::phoenix::longpoll::Tokens;
use throng_proto::websocket::Deflater;
use throng_pubsub::presence::Presence;
use throng_report::ServerCounters;

use super::channel::Info;
use super::config::Config;
use super::client_state::Topic;
use super::longpoll::Memory;
use crate::ConnectionId;

/// The state of a core: no other core sees it.
pub(crate) struct CoreState {
    pub(crate) config: Config,
    pub(crate) topics: Topics,
    /// Where messages are encoded.
    pub(crate) frame: Vec<u8>,
    pub(crate) deflater: Deflater,
    pub(crate) infos: InfoQueue,
    pub(crate) presence: Presence<Owner>,
    /// Where posted base64 is decoded.
    pub(crate) post_buffer: Vec<u8>,
    pub(crate) tokens: Tokens,
    /// What the long-poll sessions hold.
    pub(crate) poll_memory: Rc<Memory>,
    /// What is counted; the gauges too: channels and long-poll sessions.
    pub(crate) counters: ServerCounters,
    /// How many channels and polls there have been; it wraps.
    serial: u32,
}

impl CoreState {
    pub(crate) fn new(config: Config, core: CoreId) -> Self {
        Self {
            presence: Presence::new(core as u16, config.origin_ns).with_limits(config.presence),
            poll_memory: Rc::new(Memory::new(config.poll_bytes_max)),
            post_buffer: Vec::new(),
            tokens: Tokens::new(&config.secret),
            counters: ServerCounters::default(),
            config,
            topics: Topics::default(),
            frame: Vec::new(),
            deflater: Deflater::new(),
            infos: InfoQueue::default(),
            serial: 0,
        }
    }

    pub(crate) fn next_serial(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.serial
    }
}

/// The topics that somebody of this core is joined to, each with its name once.
#[derive(Default)]
pub(crate) struct Topics(HashMap<Arc<str>, Rc<Topic>>);

impl Topics {
    /// The topic of that name, if any pattern of `config` takes it.
    pub(crate) fn get(&mut self, config: &Config, name: &str) -> Option<Rc<Topic>> {
        if let Some(topic) = self.0.get(name) {
            return Some(Rc::clone(topic));
        }
        let route = config.route(name)?;
        let topic = Rc::new(Topic { name: name.into(), route });
        self.0.insert(Arc::clone(&topic.name), Rc::clone(&topic));
        Some(topic)
    }

    /// Somebody is not joined any more: forgets the topic with the last one.
    pub(crate) fn release(&mut self, topic: Rc<Topic>) {
        if Rc::strong_count(&topic) <= 2 {
            self.0.remove(&topic.name);
        }
    }
}

/// What channels of the present connection have sent themselves.
#[derive(Default)]
pub(crate) struct InfoQueue {
    queue: VecDeque<(Arc<str>, u32, Info)>,
    /// How many since the present event began.
    count: usize,
}

impl InfoQueue {
    pub(crate) fn push(&mut self, topic: &Arc<str>, serial: u32, info: Info) {
        self.count += 1;
        assert!(self.count <= INFOS_MAX, "a channel sends itself messages without end");
        self.queue.push_back((Arc::clone(topic), serial, info));
    }

    /// The next; once there is none, the count begins anew.
    pub(crate) fn pop(&mut self) -> Option<(Arc<str>, u32, Info)> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.count = 0;
        }
        next
    }
}

/// A channel, as presence names it: the place of its connection, and its own serial, which wraps. The connection's key
/// would be another one by the time it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner(u32, u32);

impl Owner {
    pub(crate) fn new(connection: ConnectionId, serial: u32) -> Self {
        Self(connection.key().index(), serial)
    }
}

/// Messages that channels of one connection may send themselves during one event.
const INFOS_MAX: usize = 1_000;
