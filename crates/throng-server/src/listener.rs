//! A core's listening socket: opens it, shares it with the other cores, and closes it in all fd
//! tables.

use std::net::SocketAddr;

use throng_driver::{Driver, Errno, ListenSpec, SocketClose};
use throng_engine::CoreContext;

use crate::accept_state::AcceptState;
use crate::acceptor::AcceptStep;
use crate::app::ServerApp;
use crate::core_message::CoreMessage;
use crate::{AcceptTopology, Handler};

impl<H, D> ServerApp<H, D>
where
    H: Handler,
    D: Driver<Message = CoreMessage<H::Message>>,
{
    /// Opens the listening socket and starts to accept.
    pub(crate) fn listen(
        &mut self,
        cx: &mut CoreContext<D, Self>,
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
        let driver = cx.driver();
        if spec.reuseport && self.acceptor.core == 0 && addr.port() != 0 {
            // With SO_REUSEPORT alone, another server of the same user could listen here too and
            // take half of the connects.
            let alone =
                driver.listen(&ListenSpec { reuseport: false, backlog: 1, ..spec.clone() })?;
            driver.close(alone, SocketClose::Finish);
        }
        let listener = driver.listen(&spec)?;
        let addr = driver.local_addr(&listener).unwrap_or(addr);
        if shared_with_all {
            for core in (0..driver.cores()).filter(|&core| core != self.acceptor.core) {
                if let Err(errno) = driver.share(&listener, core) {
                    driver.close(listener, SocketClose::Finish);
                    return Err(errno);
                }
            }
        }
        self.begin(cx, listener);
        Ok(addr)
    }

    /// Starts to accept on the listening socket that core 0 has shared.
    pub(crate) fn listener_arrived(&mut self, cx: &mut CoreContext<D, Self>, listener: D::Fd) {
        let Some(reply) = self.acceptor.listener_reply.take() else {
            // The server was suspended meanwhile: a listener that is kept would swallow connects.
            return cx.driver().close(listener, SocketClose::Finish);
        };
        self.close_listener(cx);
        self.begin(cx, listener);
        let _ = reply.send((self.acceptor.core, Ok(None)));
    }

    /// Sets the listener and watches it.
    fn begin(&mut self, cx: &mut CoreContext<D, Self>, listener: D::Fd) {
        self.acceptor.listener = Some(listener);
        if self.acceptor.awaiting_placement.is_some() {
            self.acceptor.state = AcceptState::AwaitingPlacement;
        } else {
            self.resume_accepting(cx);
        }
    }

    /// Accepts established connections while permits and room last, then closes the listening
    /// socket. The kernel resets the connections left in its queue and refuses later connects. In
    /// `dispatch` each accept waits for the registry, so nothing more is accepted there.
    pub(crate) fn suspend(&mut self, cx: &mut CoreContext<D, Self>) {
        if self.config.accept != AcceptTopology::Dispatch {
            // The kernel allows one more than the backlog.
            for _ in 0..=self.config.backlog {
                if !matches!(self.accept_one(cx), AcceptStep::Continue) {
                    break;
                }
            }
        }
        self.close_listener(cx);
    }

    /// Closes the listening socket, and cancels the wait for a shared one.
    pub(crate) fn close_listener(&mut self, cx: &mut CoreContext<D, Self>) {
        self.acceptor.listener_reply = None;
        self.stop_accepting(cx, AcceptState::Closed);
        if let Some(listener) = self.acceptor.listener.take() {
            cx.driver().close(listener, SocketClose::Finish);
        }
    }
}
