//! The state that all channels of one core share.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use throng_driver::CoreId;
use throng_measure::ServerCounters;
use throng_proto::phoenix::longpoll::Tokens;
use throng_proto::websocket::Deflater;
use throng_pubsub::presence::Presence;

use super::channel::Info;
use super::config::Config;
use super::longpoll::memory::Memory;
use super::topic::Topic;
use crate::ConnectionId;

/// The state of a core, not shared with other cores.
pub(crate) struct CoreState {
    pub(crate) config: Config,
    pub(crate) topics: Topics,
    /// The buffer for encoding messages.
    pub(crate) frame: Vec<u8>,
    pub(crate) deflater: Deflater,
    pub(crate) infos: InfoQueue,
    pub(crate) presence: Presence<Owner>,
    /// The buffer for decoding posted base64.
    pub(crate) post_buffer: Vec<u8>,
    pub(crate) tokens: Tokens,
    /// The memory that the long-poll sessions use.
    pub(crate) poll_memory: Rc<Memory>,
    /// Counters, and the gauges of channels and long-poll sessions.
    pub(crate) counters: ServerCounters,
    /// The last serial of a channel or a poll; it wraps.
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

/// The topics that have channels on this core. Each name is stored once.
#[derive(Default)]
pub(crate) struct Topics(HashMap<Arc<str>, Rc<Topic>>);

impl Topics {
    /// Returns the topic of that name, if a pattern of `config` matches it.
    pub(crate) fn get(&mut self, config: &Config, name: &str) -> Option<Rc<Topic>> {
        if let Some(topic) = self.0.get(name) {
            return Some(Rc::clone(topic));
        }
        let route = config.route(name)?;
        let topic = Rc::new(Topic { name: name.into(), route });
        self.0.insert(Arc::clone(&topic.name), Rc::clone(&topic));
        Some(topic)
    }

    /// Drops a channel's reference to its topic, and removes the topic with the last one.
    pub(crate) fn release(&mut self, topic: Rc<Topic>) {
        if Rc::strong_count(&topic) <= 2 {
            self.0.remove(&topic.name);
        }
    }
}

/// The messages that channels of the current connection have sent to themselves.
#[derive(Default)]
pub(crate) struct InfoQueue {
    queue: VecDeque<(Arc<str>, u32, Info)>,
    /// The number of messages since the current event began.
    count: usize,
}

impl InfoQueue {
    pub(crate) fn push(&mut self, topic: &Arc<str>, serial: u32, info: Info) {
        self.count += 1;
        assert!(
            self.count <= INFOS_MAX,
            "a channel sent itself over {INFOS_MAX} messages in one event"
        );
        self.queue.push_back((Arc::clone(topic), serial, info));
    }

    /// Returns the next message. Resets the count when there is none.
    pub(crate) fn pop(&mut self) -> Option<(Arc<str>, u32, Info)> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.count = 0;
        }
        next
    }
}

/// The owner of a presence: a channel, named by the index of its connection and its serial, which
/// wraps. The connection's key cannot be used: it has changed when the connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner(u32, u32);

impl Owner {
    pub(crate) fn new(connection: ConnectionId, serial: u32) -> Self {
        Self(connection.key().index(), serial)
    }
}

/// Messages that the channels of one connection may send to themselves during one event.
const INFOS_MAX: usize = 1_000;
