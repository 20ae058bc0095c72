//! A core's transport, and the two places at which bytes pass through it: what is received is
//! opened, and what is sent is sealed.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_base::Key;
use throng_driver::{Errno, Sockets};
use throng_proto::{HeldBudget, OpenedRecords, Transport, TransportError, TransportKey};

use crate::budget::Budget;
use crate::io::CoreIo;
use crate::send::send;
use crate::{CloseReason, CoreLimits};

/// State that a core has only if it has a transport.
pub(crate) struct TransportContext {
    pub(crate) transport: Box<dyn Transport>,
    /// Records of the present send, and the transport's own answers to what was received.
    pub(crate) sealed: Vec<u8>,
    parts: RecordParts,
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
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections closed because their handshake exceeded `handshake_timeout`.
    pub handshake_timeouts: u64,
    /// Connections closed because the transport failed, during the handshake or later.
    pub failures: u64,
    /// Connections closed because a record exceeded `record_timeout`; they are failures too.
    pub record_timeouts: u64,
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
    pub(crate) fn new(transport: Box<dyn Transport>, limits: &CoreLimits) -> Self {
        Self {
            transport,
            sealed: Vec::new(),
            parts: RecordParts {
                parts: HashMap::new(),
                held: HeldBudget::new(limits.record_parts_bytes_max),
            },
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
            resumed: self.transport.resumed(),
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
    /// its length. It is kept until [`CoreIo::open_records`] has opened the record.
    pub(crate) fn part_of(&self, key: Key, buffer: &mut [u8]) -> usize {
        let Some(part) = self.parts.parts.get(&key) else { return 0 };
        buffer[..part.len()].copy_from_slice(part);
        part.len()
    }

    /// Forgets a connection whose socket is closed.
    pub(crate) fn forget(&mut self, key: Key, transport: TransportKey) {
        let _ = self.parts.keep(key, &[]);
        self.transport.forget(transport);
    }
}

impl RecordParts {
    /// Keeps the part of an incomplete record, in place of an earlier one.
    fn keep(&mut self, key: Key, part: &[u8]) -> Result<(), TransportError> {
        let before = self.parts.get(&key).map_or(0, |part| part.len());
        if before == 0 && part.is_empty() {
            return Ok(());
        }
        let granted = self.held.recount(before, part.len());
        match part {
            [] => self.parts.remove(&key),
            part => self.parts.insert(key, part.into()),
        };
        granted.map_err(|_| TransportError::HELD_TOO_MUCH)
    }
}

impl<D: Sockets> CoreIo<D> {
    /// Returns the transport's context, for a connection that has a transport.
    pub(crate) fn transport(&mut self) -> &mut TransportContext {
        self.transport.as_mut().expect("only a core with a transport has such a connection")
    }

    /// Opens the received records in place. Keeps what is incomplete. The transport's own answers
    /// are in its out buffer, which the caller sends.
    pub(crate) fn open_records(
        &mut self,
        key: Key,
        transport: TransportKey,
        input: &mut [u8],
    ) -> Result<OpenedRecords, CloseReason> {
        let now = self.now;
        let context = self.transport();
        context.sealed.clear();
        let TransportContext { transport: records, sealed, .. } = context;
        let open = || records.open(transport, now, input, sealed);
        let Ok(opened) = catch_unwind(AssertUnwindSafe(open)) else {
            self.counters.panics += 1;
            return Err(CloseReason::Panicked);
        };
        let rest = input.len() - opened.incomplete_bytes;
        context.parts.keep(key, &input[rest..]).map_err(CloseReason::TransportFailed)?;
        self.budget.spend(opened.work_bytes);
        Ok(opened)
    }

    /// Seals `plain` and sends it, a piece at a time, until the kernel takes no more. Returns how
    /// much of it is sealed, and the sealed bytes that the kernel did not take.
    pub(crate) fn send_sealed(
        &mut self,
        key: Key,
        fd: &D::Fd,
        transport: TransportKey,
        plain: &[u8],
    ) -> Result<(usize, Vec<u8>), Errno> {
        let mut sealed_bytes = 0;
        for piece in plain.chunks(PIECE_BYTES_MAX) {
            sealed_bytes += piece.len();
            let context = self.transport();
            context.sealed.clear();
            context.transport.seal(transport, piece, &mut context.sealed);
            let unsent = self.send_records(key, fd)?;
            if !unsent.is_empty() {
                return Ok((sealed_bytes, unsent));
            }
        }
        Ok((sealed_bytes, Vec::new()))
    }

    /// Sends the transport's out buffer. Returns what the kernel did not take.
    pub(crate) fn send_records(&mut self, key: Key, fd: &D::Fd) -> Result<Vec<u8>, Errno> {
        let Some(context) = &mut self.transport else { return Ok(Vec::new()) };
        if context.sealed.is_empty() {
            return Ok(Vec::new());
        }
        let taken = send(&mut self.driver, &mut self.counters, fd, &context.sealed)?;
        let unsent = context.sealed[taken..].to_vec();
        context.sealed.clear();
        self.count_sent(key, taken);
        Ok(unsent)
    }
}

/// Plaintext that is sealed at a time. While a peer is slow, no more than this is sealed and waits:
/// what waits behind it is plaintext, which a policy may drop and connections may share.
pub(crate) const PIECE_BYTES_MAX: usize = 16 << 10;
