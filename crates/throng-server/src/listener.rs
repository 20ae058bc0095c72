//! A core's listening socket: opened, shared with the other cores, and closed in all of their fd tables.

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
    D: Driver<Mail = CoreMessage<H::Message>>,
{
    /// Opens the listening socket and begins to accept.
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
            // SO_REUSEPORT would let another server of the same user listen here too, and take half of the connects.
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

    /// Core 0 has shared its listening socket.
    pub(crate) fn listener_arrived(&mut self, cx: &mut CoreContext<D, Self>, listener: D::Fd) {
        let Some(reply) = self.acceptor.listener_reply.take() else {
            // Suspended meanwhile: kept, it would swallow connects.
            return cx.driver().close(listener, SocketClose::Finish);
        };
        self.close_listener(cx);
        self.begin(cx, listener);
        let _ = reply.send((self.acceptor.core, Ok(None)));
    }

    fn begin(&mut self, cx: &mut CoreContext<D, Self>, listener: D::Fd) {
        self.acceptor.listener = Some(listener);
        if self.acceptor.awaiting_placement.is_some() {
            self.acceptor.state = AcceptState::AwaitingPlacement;
        } else {
            self.resume_accepting(cx);
        }
    }

    /// Accepts what is established already, as far as there are permits and room, and closes the listening socket: the
    /// kernel resets what is left in its queue, and refuses what connects later. In `dispatch` each accept waits for the
    /// registry, so nothing more is accepted there.
    pub(crate) fn suspend(&mut self, cx: &mut CoreContext<D, Self>) {
        if self.config.accept != AcceptTopology::Dispatch {
            // The kernel lets one more wait than the backlog says.
            for _ in 0..=self.config.backlog {
                if !matches!(self.accept_one(cx), AcceptStep::Accepted) {
                    break;
                }
            }
        }
        self.close_listener(cx);
    }

    pub(crate) fn close_listener(&mut self, cx: &mut CoreContext<D, Self>) {
        self.acceptor.listener_reply = None;
        self.stop_accepting(cx, AcceptState::Closed);
        if let Some(listener) = self.acceptor.listener.take() {
            cx.driver().close(listener, SocketClose::Finish);
        }
    }
}
