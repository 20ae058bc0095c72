//! A core's transport, with what the core keeps for it: parts of records, and handshakes.

use std::collections::{HashMap, VecDeque};

use throng_base::Key;
use throng_proto::{HeldBudget, SocketTransport, TransportError, TransportKey};

use crate::CoreLimits;
use crate::budget::Budget;

/// State that a core has only if it has a transport.
pub(crate) struct TransportContext {
    pub(crate) transport: Box<dyn SocketTransport>,
    /// Records of the present send, and the transport's own answers to what was received.
    pub(crate) sealed: Vec<u8>,
    parts: RecordParts,
    /// Whether the handshake that was completed last resumed an earlier session.
    pub(crate) has_resumed: bool,
    pub(crate) handshakes: HandshakeQueues,
    pub(crate) counters: TransportCounters,
}

/// Counters of a core's transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounters {
    /// Handshakes that have begun.
    pub handshakes: u64,
    /// Handshakes after which the connection was open.
    pub opened: u64,
    /// Handshakes that offered to resume an earlier session.
    pub offered: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections closed because their handshake exceeded `handshake_timeout`.
    pub handshake_timeouts: u64,
    /// Connections closed because the transport failed, during the handshake or later.
    pub failures: u64,
    /// Connections closed because a record exceeded `record_timeout`; they are failures too.
    pub record_timeouts: u64,
    /// Failed connections whose peer did not close within `linger_timeout`, or sent more than
    /// `linger_bytes_max` meanwhile.
    pub linger_limits: u64,
    /// Open connections whose peer finished sending without the transport's word that it would.
    pub truncated: u64,
    /// Gauge: handshakes that are under way.
    pub under_way: usize,
    /// Gauge: bytes of records that have arrived in part.
    pub part_bytes: usize,
}

/// Handshakes of a core: how many are under way, and which ones wait for their turn.
pub(crate) struct HandshakeQueues {
    pub(crate) under_way: usize,
    /// Connections whose handshake has not begun, because too many are under way.
    pub(crate) waiting: VecDeque<Key>,
    /// Connections whose handshake goes on when a turn has work left for it.
    pub(crate) deferred: VecDeque<Key>,
    /// Work that remains for handshakes in this turn.
    pub(crate) budget: Budget,
}

/// The received part of each record whose rest has not arrived yet.
struct RecordParts {
    parts: HashMap<Key, Box<[u8]>>,
    held: HeldBudget,
}

impl TransportContext {
    pub(crate) fn new(transport: Box<dyn SocketTransport>, limits: &CoreLimits) -> Self {
        Self {
            transport,
            sealed: Vec::new(),
            parts: RecordParts {
                parts: HashMap::new(),
                held: HeldBudget::new(limits.record_parts_bytes_max),
            },
            has_resumed: false,
            handshakes: HandshakeQueues {
                under_way: 0,
                waiting: VecDeque::new(),
                deferred: VecDeque::new(),
                budget: Budget::new(limits.handshake_work_bytes_max),
            },
            counters: TransportCounters::default(),
        }
    }

    /// Returns the counters, gauges included.
    pub(crate) fn counters(&self) -> TransportCounters {
        TransportCounters {
            offered: self.transport.offered(),
            under_way: self.handshakes.under_way,
            part_bytes: self.parts.held.used_bytes(),
            ..self.counters
        }
    }

    /// Reports whether handshakes can go on in the next turn.
    pub(crate) fn has_work(&self, limits: &CoreLimits) -> bool {
        let queues = &self.handshakes;
        let has_place = queues.under_way < limits.handshakes_max;
        !queues.deferred.is_empty() || has_place && !queues.waiting.is_empty()
    }

    /// Copies the part of a record that has arrived earlier to the front of `buffer`, and returns
    /// its length. It is kept until the record is open. Ask only where there is one.
    pub(crate) fn part_of(&self, key: Key, buffer: &mut [u8]) -> usize {
        let Some(part) = self.parts.parts.get(&key) else { return 0 };
        buffer[..part.len()].copy_from_slice(part);
        part.len()
    }

    /// Keeps the part of a record that has arrived, in place of an earlier one. If there is no room
    /// for it, none is kept.
    pub(crate) fn keep_part(&mut self, key: Key, part: &[u8]) -> Result<(), TransportError> {
        self.parts.keep(key, part)
    }

    /// Forgets a connection whose socket is closed.
    pub(crate) fn forget(&mut self, key: Key, transport: TransportKey) {
        self.parts.forget(key);
        self.transport.forget(transport);
    }
}

impl RecordParts {
    /// Keeps the part of an incomplete record, in place of an earlier one.
    fn keep(&mut self, key: Key, part: &[u8]) -> Result<(), TransportError> {
        let earlier = if part.is_empty() {
            self.parts.remove(&key)
        } else {
            self.parts.insert(key, part.into())
        };
        let before = earlier.map_or(0, |part| part.len());
        self.held.recount(before, part.len()).map_err(|_| {
            self.forget(key);
            TransportError::RecordsHeld
        })
    }

    /// Forgets the part of a connection's record, if there is one.
    fn forget(&mut self, key: Key) {
        if !self.parts.is_empty()
            && let Some(part) = self.parts.remove(&key)
        {
            let _ = self.held.recount(part.len(), 0);
        }
    }
}

/// Plaintext that is sealed at a time. While a peer is slow, no more than this is sealed and waits:
/// what waits behind it is plaintext, which a policy may drop and connections may share.
pub(crate) const PIECE_BYTES_MAX: usize = 16 << 10;
