//! A [driver](throng_driver::Driver) on virtual time: whole servers and generators in one thread,
//! with faults everywhere between them, and one seed that decides everything.
//!
//! A [`Sim`] is the world: a clock, a network, and the machine's files. [`Sim::cores`] creates the
//! [`SimDriver`]s of one process; [`Sim::spawn`] starts a [`Core`](throng_engine::Core) on each of
//! them. Then [`Sim::run_until`] runs turns of the cores that have work, in an order that the seed
//! decides, and moves the clock when no core has work. [`Faults`] say how slow, small and broken
//! the world is; [`FaultyDriver`] is a decorator that makes system calls fail. [`check`] runs a
//! test under many seeds, and prints the seed of a failure. [`check_over_all`] runs it over each
//! transport too: plain, and a [`ToyTransport`].
//!
//! The model is TCP on Linux as a program sees it: accept queues that drop a SYN when they are
//! full, SO_REUSEPORT groups, windows, edge-triggered readiness, half-close, resets, ports and
//! TIME-WAIT, fd tables. It does not model packets, congestion and the cost of a system call.
//!
//! ```
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! use throng_driver::{ConnectSpec, ListenSpec, Listeners, SocketOptions, SourceAddress};
//! use throng_engine::{AfterClose, App, CloseReason, Conn, Core, CoreContext, CoreLimits};
//! use throng_proto::Raw;
//! use throng_sim::{Faults, SimCoresOptions, SimDriver, SimFd, check};
//!
//! /// Sends back the bytes that it receives.
//! #[derive(Default)]
//! struct Echo(Option<SimFd>);
//!
//! impl App<SimDriver<()>> for Echo {
//!     type Session = Raw;
//!     type State = ();
//!
//!     fn started(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>) {
//!         let (addr, options) = (server_addr(), SocketOptions::default());
//!         let spec = ListenSpec { addr, backlog: 128, reuseport: false, options };
//!         let listener = cx.driver().listen(&spec).unwrap();
//!         cx.driver().watch(&listener, 0).unwrap();
//!         self.0 = Some(listener);
//!     }
//!
//!     fn acceptable(&mut self, cx: &mut CoreContext<SimDriver<()>, Self>, _number: u32) {
//!         while let Ok(fd) = cx.driver().accept(self.0.as_ref().unwrap()) {
//!             assert!(cx.adopt(fd, Raw, ()).is_ok());
//!         }
//!     }
//!
//!     fn opened(&mut self, _conn: &mut Conn<'_, SimDriver<()>, Self>) {}
//!
//!     fn event(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, bytes: &[u8]) {
//!         conn.send(bytes);
//!     }
//!
//!     fn closed(&mut self, _: &mut Conn<'_, SimDriver<()>, Self>, _: CloseReason) -> AfterClose {
//!         AfterClose::Free
//!     }
//! }
//!
//! /// Sends hello, and keeps the answer.
//! #[derive(Default)]
//! struct Client(Vec<u8>);
//!
//! impl App<SimDriver<u8>> for Client {
//!     type Session = Raw;
//!     type State = ();
//!
//!     fn started(&mut self, cx: &mut CoreContext<SimDriver<u8>, Self>) {
//!         let user = cx.insert(Raw, ());
//!         let (source, options) = (SourceAddress::Any, SocketOptions::default());
//!         let spec = ConnectSpec { target: server_addr(), source, options };
//!         cx.with(user, |conn| conn.connect(spec));
//!     }
//!
//!     fn opened(&mut self, conn: &mut Conn<'_, SimDriver<u8>, Self>) {
//!         conn.send(b"hello");
//!     }
//!
//!     fn event(&mut self, _conn: &mut Conn<'_, SimDriver<u8>, Self>, bytes: &[u8]) {
//!         self.0.extend_from_slice(bytes);
//!     }
//!
//!     fn closed(
//!         &mut self,
//!         _: &mut Conn<'_, SimDriver<u8>, Self>,
//!         reason: CloseReason,
//!     ) -> AfterClose {
//!         panic!("{reason:?}");
//!     }
//! }
//!
//! fn server_addr() -> SocketAddr {
//!     "127.0.0.1:7000".parse().unwrap()
//! }
//!
//! check(20, |sim| {
//!     sim.set_faults(Faults::rough());
//!     let [server] = sim.cores(&SimCoresOptions::default()).drivers().try_into().ok().unwrap();
//!     let [client] = sim.cores(&SimCoresOptions::default()).drivers().try_into().ok().unwrap();
//!     sim.spawn(Core::new(server, Echo::default(), CoreLimits::default()));
//!     let client = sim.spawn(Core::new(client, Client::default(), CoreLimits::default()));
//!     let limit = Duration::from_secs(130);
//!     let is_answered = sim.run_until(limit, |_| client.borrow().app().0 == b"hello");
//!     assert!(is_answered);
//! });
//! ```

mod check;
mod cores;
mod driver;
mod faults;
mod faulty;
mod peer;
mod ports;
mod readiness;
mod sim;
mod socket;
mod stream;
mod toy_transport;
mod trace;
mod world;

pub use check::{check, check_over_all};
pub use cores::{SimCores, SimCoresOptions, SimLink};
pub use driver::{SimDriver, SimFd};
pub use faults::Faults;
pub use faulty::FaultyDriver;
pub use peer::{PeerSocket, SimPeers};
pub use sim::Sim;
pub use toy_transport::ToyTransport;
