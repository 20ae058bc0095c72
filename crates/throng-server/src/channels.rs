//! Phoenix Channels: rooms that clients join over WebSockets or long-polls, in the protocol of
//! phoenix.js and other Phoenix clients.
//!
//! A [`Channel`] is an application's code for a topic. [`Channels`] maps topics to channels. Each
//! core of a [`RunningServer`](crate::RunningServer) has a handler made from it.
//!
//! ```
//! use throng_server::channels::{
//!     Channel, Channels, JoinRefusal, Joining, PhoenixPayload, Socket,
//! };
//! use throng_server::{RunningServer, ServerOptions};
//!
//! /// A chat room: every message goes to all members.
//! struct Room {
//!     messages: u32,
//! }
//!
//! impl Channel for Room {
//!     fn join(joining: &mut Joining<'_>) -> Result<Self, JoinRefusal> {
//!         match joining.topic() {
//!             "rooms:secret" => Err(JoinRefusal::because("unauthorized")),
//!             _ => Ok(Self { messages: 0 }),
//!         }
//!     }
//!
//!     fn handle_in(&mut self, event: &str, payload: PhoenixPayload<'_>, socket: &mut Socket<'_>) {
//!         if event == "new_msg" {
//!             self.messages += 1;
//!             socket.broadcast("new_msg", payload);
//!             let reply = format!(r#"{{"messages":{}}}"#, self.messages);
//!             socket.reply("ok", PhoenixPayload::Json(&reply));
//!         }
//!     }
//! }
//!
//! let channels = Channels::new("/socket").channel::<Room>("rooms:*")?;
//! let make = move |core| channels.handler(core);
//! let server = RunningServer::start(ServerOptions::default(), make)?;
//! println!("ws://{}/socket/websocket", server.addr());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod broadcast;
mod channel;
mod client;
mod client_state;
mod config;
mod core_state;
pub mod defaults;
mod demo;
mod dispatch;
mod frame;
mod handle;
mod handler;
mod http;
mod lifecycle;
mod longpoll;
mod message;
mod more_channels;
mod page;
mod pattern;
mod presence_list;
mod refs;
mod socket;
mod topic;

pub use channel::{Channel, Info, JoinRefusal, LeaveReason};
pub use client::ChannelHandler;
pub use client_state::ClientState;
pub use config::{Channels, ConnectGrant, ConnectRequest, Transport};
pub use demo::demo;
pub use message::ChannelMessage;
pub use pattern::PatternError;
pub use socket::{Address, Joining, Reference, Socket};
pub use throng_proto::phoenix::PhoenixPayload;
pub use throng_proto::websocket::WebSocketLimits;
pub use throng_pubsub::presence::{PresenceError, PresenceLimits, PresenceMember};

pub use crate::ConnectRefusal;
pub use crate::origin::{CheckOrigin, Origin, OriginError};
