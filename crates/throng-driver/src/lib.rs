//! The kernel interface of one core, and the only crate that contains `unsafe`.
//!
//! [`Driver`] is the interface that an event loop needs: sockets, readiness, waiting, messages to
//! other cores, permits. [`EpollDriver`] implements it on Linux; `throng-sim` implements it on
//! virtual time. Nothing here knows a protocol.

mod arrival;
mod clock;
pub mod cores;
mod driver;
mod epoll;
mod errno;
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
mod wait;

pub use clock::{Clock, utc_now};
pub use cores::{Cores, CoresOptions, spawn};
pub use driver::{
    ConnectSpec, CoreId, Driver, Interest, IoEvent, ListenSpec, MailboxFull, MessagePriority,
    Ready, SocketClose, SocketOptions, SourceAddress, Token,
};
pub use epoll::{EpollDriver, Fd};
pub use errno::{Blame, Errno};
pub use mailbox::{MESSAGE_BATCH_MAX, MailboxSender};
pub use permits::Permits;
pub use socket::{local_addr, network_of, peer_addr};
