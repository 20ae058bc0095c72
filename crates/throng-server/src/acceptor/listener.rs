//! A core's listening socket: opens it, shares it with the other cores, and closes it in all fd
//! tables.

use std::net::SocketAddr;
use std::sync::mpsc::Sender;

use throng_driver::{CoreLink, Errno, ListenSpec, SocketClose};

use super::state::AcceptState;
use super::{AcceptContext, Acceptor};
use crate::core_message::{ListenReport, ServerDriver};

impl<D: ServerDriver> Acceptor<D> {
    /// Opens the listening socket and watches it. Shares it with all other cores if
    /// `shared_with_all`.
    pub(crate) fn listen(
        &mut self,
        cx: &mut AcceptContext<'_, D>,
        addr: SocketAddr,
        shared_with_all: bool,
    ) -> Result<SocketAddr, Errno> {
        self.close_listener(cx);
        let spec = ListenSpec {
            addr,
            backlog: self.config.backlog,
            reuseport: !shared_with_all,
            options: self.config.sockets,
        };
        let driver = &mut *cx.driver;
        if spec.reuseport && self.core == 0 && addr.port() != 0 {
            // With SO_REUSEPORT alone, another server of the same user could listen here too and
            // take half of the connects.
            let alone =
                driver.listen(&ListenSpec { reuseport: false, backlog: 1, ..spec.clone() })?;
            driver.close(alone, SocketClose::Finish);
        }
        let listener = driver.listen(&spec)?;
        let addr = driver.local_addr(&listener).unwrap_or(addr);
        if shared_with_all {
            for core in (0..driver.link().cores()).filter(|&core| core != self.core) {
                if let Err(errno) = driver.share(&listener, core) {
                    driver.close(listener, SocketClose::Finish);
                    return Err(errno);
                }
            }
        }
        self.begin(cx, listener);
        Ok(addr)
    }

    /// Expects a listening socket from core 0, and answers `reply` when it has arrived.
    pub(crate) fn expect_listener(&mut self, reply: Sender<ListenReport>) {
        self.listener_reply = Some(reply);
    }

    /// Watches the listening socket that core 0 has shared.
    pub(crate) fn listener_arrived(&mut self, cx: &mut AcceptContext<'_, D>, listener: D::Fd) {
        let Some(reply) = self.listener_reply.take() else {
            // The server was suspended meanwhile: a listener that is kept would swallow connects.
            return cx.driver.close(listener, SocketClose::Finish);
        };
        self.close_listener(cx);
        self.begin(cx, listener);
        let _ = reply.send((self.core, Ok(None)));
    }

    /// Sets the listener and watches it.
    fn begin(&mut self, cx: &mut AcceptContext<'_, D>, listener: D::Fd) {
        self.listener = Some(listener);
        if self.placement.is_waiting() {
            self.state = AcceptState::AwaitingPlacement;
        } else {
            self.resume(cx);
        }
    }

    /// Closes the listening socket, and cancels the wait for a shared one.
    pub(crate) fn close_listener(&mut self, cx: &mut AcceptContext<'_, D>) {
        self.listener_reply = None;
        self.leave_listening(cx, AcceptState::Closed);
        if let Some(listener) = self.listener.take() {
            cx.driver.close(listener, SocketClose::Finish);
        }
    }
}
