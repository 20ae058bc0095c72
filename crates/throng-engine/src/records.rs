//! The two places at which bytes pass through a transport: what is received is opened, and what is
//! sent is sealed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_base::Key;
use throng_driver::{Driver, Errno, SocketClose, Sockets};
use throng_proto::{OpenedRecords, TransportKey, TransportStatus};

use crate::budget::Budget;
use crate::io::CoreIo;
use crate::record_layer::RecordLayer;
use crate::send::send;
use crate::transport::{PIECE_BYTES_MAX, TransportContext};
use crate::{App, CloseReason, Core};

impl<D: Driver, A: App<D>> Core<D, A> {
    /// Opens the received records, and gives the session their plaintext. Returns false if nothing
    /// more can be received.
    pub(crate) fn receive_records(
        &mut self,
        key: Key,
        layer: RecordLayer,
        received: usize,
        share: &mut Budget,
    ) -> bool {
        let Self { cx, receive, .. } = self;
        let (Some(transport), input) = (layer.key, &mut receive[..received]) else { return false };
        let opened = match cx.io.open_records(key, transport, layer.has_part(), input) {
            Ok(opened) => opened,
            Err(reason) => {
                cx.close_now(key, reason, SocketClose::Finish);
                return false;
            }
        };
        let Some(entry) = cx.table.entries.get_mut(key) else { return false };
        if let Some(layer) = entry.socket.record_layer() {
            layer.note(opened, received, cx.io.now, cx.io.limits.record_timeout);
        }
        if let Err(errno) = entry.send_answers(&mut cx.io, key) {
            cx.close_now(key, CloseReason::Failed(errno), SocketClose::Finish);
            return false;
        }
        if opened.incomplete_bytes > 0 {
            cx.timers.hasten_transport(&mut cx.table, key, cx.io.now);
        }
        // What no session sees is work, too.
        share.spend(received - opened.plain_bytes + opened.work_bytes);
        cx.io.budget.spend(received - opened.plain_bytes);
        if opened.plain_bytes > 0 {
            self.run_session(key, opened.plain_bytes, false, share);
        }
        opened.status == TransportStatus::Open || !self.has_ended(key, transport)
    }

    /// Reports whether nothing more can be received over the transport of a connection: the peer
    /// has finished, which the app learns, or the transport has failed, which closes the
    /// connection. Plaintext that waits for the session is read first.
    pub(crate) fn has_ended(&mut self, key: Key, transport: TransportKey) -> bool {
        let Some(entry) = self.cx.table.entries.get_mut(key) else { return true };
        if self.cx.io.backlog.holds(key) {
            return false;
        }
        match self.cx.io.transport().transport.status(transport) {
            TransportStatus::Opening | TransportStatus::Open => return false,
            TransportStatus::Finished => {
                if !std::mem::replace(&mut entry.peer_finished, true) {
                    self.call(key, A::finished);
                }
            }
            TransportStatus::Failed(error) => self.close_failed(key, error),
        }
        true
    }
}

impl<D: Sockets> CoreIo<D> {
    /// Returns the transport's context, for a connection that has a transport.
    pub(crate) fn transport(&mut self) -> &mut TransportContext {
        self.transport.as_mut().expect("only a core with a transport has such a connection")
    }

    /// Copies the part of a record that has arrived earlier, if there is one, to the front of
    /// `buffer`, and returns its length.
    pub(crate) fn part_of(&mut self, key: Key, has_part: bool, buffer: &mut [u8]) -> usize {
        if has_part { self.transport().part_of(key, buffer) } else { 0 }
    }

    /// Opens the received records in place. Keeps what is incomplete, in place of an earlier part
    /// if there is one. The transport's own answers are in its out buffer, which the caller sends.
    pub(crate) fn open_records(
        &mut self,
        key: Key,
        transport: TransportKey,
        has_part: bool,
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
        if has_part || opened.incomplete_bytes > 0 {
            let rest = input.len() - opened.incomplete_bytes;
            context.keep_part(key, &input[rest..]).map_err(CloseReason::TransportFailed)?;
        }
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
