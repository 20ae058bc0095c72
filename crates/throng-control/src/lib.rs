//! The control socket of a running throng process: JSON lines over a Unix socket, one verb a line.
//!
//! ```text
//! > {"verb":"start","n":100}
//! < {"ok":true,"role":"load","data":{"users":1100,"connected":1000}}
//! > {"verb":"strat"}
//! < {"ok":false,"error":"`strat` is no verb; did you mean `start`? …"}
//! ```
//!
//! [`serve`] opens it on threads of its own, so that nothing of it ever runs inside a core's turn;
//! [`Client`] asks; [`processes`] lists what runs on this machine. There is no second way into a
//! throng process: `throng ctl`, the labs and the dashboard all come through here.

mod client;
mod place;
mod processes;
mod request;
mod socket;
mod verb;

pub use client::{
    ANSWER_TIMEOUT_DEFAULT, ControlClient, ControlError, ControlReply, REPLY_BYTES_MAX,
};
pub use processes::{Process, ProcessList, find, processes};
pub use request::ControlRequest;
pub use socket::{
    CLIENTS_MAX, ControlSocket, ControlTarget, IDLE_TIMEOUT, REQUEST_BYTES_MAX, serve,
};
pub use verb::{ProcessRole, Verb};
