//! A [`Driver`](throng_driver::Driver) on virtual time: servers and generators, whole, in one thread, with
//! everything that can go wrong between them going wrong, and one seed that decides all of it.
//!
//! A [`Sim`] is the world: a clock, a network, the machine's files. [`Sim::cores`] makes the [`SimDriver`]s of one
//! process; a [`Core`](throng_engine::Core) on each of them is given to [`Sim::spawn`]; then
//! [`Sim::run_until`] turns whichever core has something to do, in an order of the seed's choosing, and moves the
//! clock when none has. [`Faults`] say how slow, small and broken the world is; [`Faulty`] is a
//! decorator that makes system calls fail. [`check`] runs a test under many seeds, and prints the one that failed.
//!
//! What is modelled is what a program sees of Linux's TCP: accept queues that drop a SYN when they are full,
//! SO_REUSEPORT groups, windows, edge-triggered readiness, half-close, resets, ports and TIME-WAIT, fd tables.
//! Packets, congestion and the cost of a system call are not.
//!
//! ```
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! use throng_driver::{ConnectSpec, Driver, ListenSpec, SocketOptions, Source};
//! use throng_engine::{After, App, CloseReason, Conn, Core, Desk, Limits};
//! use throng_proto::Raw;
//! use throng_sim::{Faults, SimCoresOptions, SimDriver, SimFd, check};
//!
//! /// Sends back what it receives, to everybody.
//! #[derive(Default)]
//! struct Echo(Option<SimFd>);
//!
//! impl App<SimDriver<()>> for Echo {
//!     type Session = Raw;
//!     type State = ();
//!
//!     fn started(&mut self, context: &mut Desk<SimDriver<()>, Self>) {
//!         let (addr, options) = (server_addr(), SocketOptions::default());
//!         let spec = ListenSpec { addr, backlog: 128, reuseport: false, options };
//!         let listener = context.driver().listen(&spec).unwrap();
//!         context.driver().watch(&listener, 0).unwrap();
//!         self.0 = Some(listener);
//!     }
//!
//!     fn acceptable(&mut self, context: &mut Desk<SimDriver<()>, Self>, _number: u32) {
//!         while let Ok(fd) = context.driver().accept(self.0.as_ref().unwrap()) {
//!             assert!(context.adopt(fd, Raw, ()).is_ok());
//!         }
//!     }
//!
//!     fn opened(&mut self, _conn: &mut Conn<'_, SimDriver<()>, Self>) {}
//!
//!     fn event(&mut self, conn: &mut Conn<'_, SimDriver<()>, Self>, bytes: &[u8]) {
//!         conn.send(bytes);
//!     }
//!
//!     fn closed(&mut self, _: &mut Conn<'_, SimDriver<()>, Self>, _: CloseReason) -> After {
//!         After::Free
//!     }
//! }
//!
//! /// Says hello and keeps what comes back.
//! #[derive(Default)]
//! struct Caller(Vec<u8>);
//!
//! impl App<SimDriver<u8>> for Caller {
//!     type Session = Raw;
//!     type State = ();
//!
//!     fn started(&mut self, context: &mut Desk<SimDriver<u8>, Self>) {
//!         let user = context.insert(Raw, ());
//!         let (source, options) = (Source::Any, SocketOptions::default());
//!         let spec = ConnectSpec { target: server_addr(), source, options };
//!         context.with(user, |conn| conn.connect(spec));
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
//!     fn closed(&mut self, _: &mut Conn<'_, SimDriver<u8>, Self>, reason: CloseReason) -> After {
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
//!     sim.spawn(Core::new(server, Echo::default(), Limits::default()));
//!     let client = sim.spawn(Core::new(client, Caller::default(), Limits::default()));
//!     let greeted = sim.run_until(Duration::from_secs(130), |_| client.borrow().app().0 == b"hello");
//!     assert!(greeted);
//! });
//! ```

mod check;
mod cores;
mod driver;
mod faults;
mod faulty;
mod ports;
mod readiness;
mod sim;
mod socket;
mod stream;
mod trace;
mod world;

pub use check::check;
pub use cores::{SimCores, SimCoresOptions};
pub use driver::{SimDriver, SimFd, SimulatedDriver};
pub use faults::Faults;
pub use faulty::FaultyDriver;
pub use sim::Sim;
