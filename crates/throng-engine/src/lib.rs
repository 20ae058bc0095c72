//! One event loop per core.
//!
//! A [`Core`] owns a [`Driver`](throng_driver::Driver), a table of connections, their timers, and
//! an app (a type with the trait [`App`]): the server is one app, the generator is another.
//! [`Core::turn`] is one wait, a bounded batch of events, then the due timers. Nothing here names
//! epoll or a protocol.
//!
//! The path of an input: driver event → receive into the core's one buffer → the connection's
//! [`Session`](throng_proto::Session) cuts it into events → [`App::event`] → after the callback
//! returns, its bytes are sent (`send.rs`) and its actions applied (`apply.rs`) → effects on other
//! connections, until none is left.
//!
//! A core may have a [transport](throng_proto::SocketTransport) ([`Core::set_transport`]). Then the
//! path has two more places: what is received is opened in place before the session reads it, and
//! what is sent is sealed on its way to the kernel. [`App::opened`] follows when the handshake of
//! the transport is over. Neither app nor session sees the transport.

mod actions;
mod activity;
mod app;
mod apply;
mod arrival;
mod budget;
mod close_reason;
mod conn;
mod context;
mod core;
mod deadline;
mod deliver;
mod entry;
mod handshake;
mod io;
mod limits;
mod linger;
mod observe;
mod opening;
mod record_layer;
mod records;
mod send;
mod send_queue;
mod table;
mod timers;
mod transport;

pub use activity::{Activity, ConnectionActivity};
pub use app::{AfterClose, App};
pub use arrival::Arrival;
pub use close_reason::CloseReason;
pub use conn::{Conn, SendOutcome};
pub use context::CoreContext;
pub use core::Core;
pub use deadline::Deadline;
pub use deliver::DeliveryOutcome;
pub use limits::CoreLimits;
pub use observe::BlockedConnection;
pub use send_queue::{ByteSource, QueueOutcome, SendPart};
pub use transport::TransportCounters;
