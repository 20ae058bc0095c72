//! The control socket of a running throng process: JSON lines over a Unix socket, one request per
//! line.
//!
//! ```text
//! > {"verb":"start","n":100}
//! < {"ok":true,"role":"load","data":{"users":1100,"connected":1000}}
//! > {"verb":"strat"}
//! < {"ok":false,"error":"unknown verb `strat`; did you mean `start`? …"}
//! ```
//!
//! [`serve`] opens the socket and answers on its own threads, so none of its code runs inside a
//! core's turn; [`ControlClient`] sends requests; [`processes`] lists the throng processes on this
//! machine. There is no second interface to a running process: `throng ctl`, the labs and the
//! dashboard all use this one.

mod client;
mod place;
mod processes;
mod remote;
mod request;
mod socket;
mod verb;

pub use client::{
    ANSWER_TIMEOUT_DEFAULT, ControlClient, ControlError, ControlReply, REPLY_BYTES_MAX,
};
pub use processes::{Process, ProcessList, find, processes};
pub use remote::RemoteTarget;
pub use request::ControlRequest;
pub use socket::{
    CLIENTS_MAX, ControlSocket, ControlTarget, IDLE_TIMEOUT, REQUEST_BYTES_MAX, serve,
};
pub use verb::{ProcessRole, Verb};
