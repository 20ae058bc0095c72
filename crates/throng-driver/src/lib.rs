//! The kernel interface of one core, and the only crate that contains `unsafe`.
//!
//! A driver is three traits: [`Sockets`] (connections, readiness, the clock), [`Listeners`] (what
//! only a server needs) and [`CoreLink`] (messages to other cores, permits). [`EpollDriver`]
//! implements all of them on Linux, `throng-sim` on virtual time. A [`DriverFactory`] makes the
//! drivers of the cores that [`spawn`] starts, and answers for what they can hold. Nothing here
//! knows a protocol.

mod arrival;
mod clock;
mod core_set;
pub mod cores;
mod driver;
mod epoll;
mod errno;
mod factory;
mod fd_queue;
pub mod fdtable;
pub mod folder;
mod handoff;
mod mailbox;
#[cfg(all(loom, test))]
mod models;
pub mod netlink;
pub mod netns;
mod permits;
pub mod process;
pub mod signals;
mod socket;
mod sync;
mod tables;
mod thread_link;
mod wait;

pub use clock::{Clock, utc_now};
pub use cores::{Cores, CoresOptions, spawn};
pub use driver::{
    ConnectSpec, CoreId, CoreLink, Driver, Interest, IoEvent, ListenSpec, Listeners, MailboxFull,
    MessagePriority, Ready, SocketClose, SocketOptions, Sockets, SourceAddress, Token,
};
pub use epoll::{EpollDriver, Fd};
pub use errno::{Blame, Errno};
pub use factory::{CoreRoom, DriverCapacity, DriverFactory, Epoll, KERNEL_LIMITS, SourcePorts};
pub use mailbox::{MESSAGE_BATCH_MAX, MailboxSender};
pub use permits::Permits;
pub use socket::{local_addr, network_of, peer_addr};
pub use thread_link::ThreadLink;
