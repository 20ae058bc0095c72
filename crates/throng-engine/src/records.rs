//! The two places at which bytes pass through a transport: what is received is opened, and what is
//! sent is sealed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_base::Key;
use throng_driver::{Errno, Sockets};
use throng_proto::{OpenedRecords, TransportKey};

use crate::CloseReason;
use crate::io::CoreIo;
use crate::send::send;
use crate::transport::{PIECE_BYTES_MAX, TransportContext};

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
        context.keep_part(key, &input[rest..]).map_err(CloseReason::TransportFailed)?;
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
