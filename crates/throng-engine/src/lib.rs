//! One event loop per core.
//!
//! A [`Core`] owns a [`Driver`](throng_driver::Driver), a table of connections, their timers, and an
//! [`App`]: the server is one app, the generator is another. [`Core::turn`] is one wait, a bounded batch
//! of events, then what is due. Nothing here names epoll or a protocol.
//!
//! The way of an input: driver event → receive into the core's one buffer → the connection's
//! [`Session`](throng_proto::Session) cuts it into events → [`App::event`] → what the app appended is sent and what it
//! asked for is done, after it has returned (`settle.rs`) → effects on other connections, until none is left.

mod app;
mod apply;
mod arrival;
mod budget;
mod conn;
mod context;
mod core;
mod deliver;
mod entry;
mod send_queue;
mod timers;

pub use app::{AfterClose, App, CloseReason};
pub use arrival::Arrival;
pub use conn::{Conn, SendOutcome};
pub use context::CoreContext;
pub use core::{Core, CoreLimits};
pub use deliver::DeliveryOutcome;
pub use entry::Deadline;
pub use send_queue::{ByteSource, QueueOutcome, SendPart};
