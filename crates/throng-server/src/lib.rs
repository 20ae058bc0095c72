//! A server for millions of TCP connections: one event loop for each core, a [`Handler`] on each,
//! and limits that hold.
//!
//! ```
//! use throng_server::{Connection, Handler, Raw, RunningServer, ServerOptions};
//!
//! struct Shout;
//!
//! impl Handler for Shout {
//!     type Session = Raw; // plain TCP
//!     type State = u64; // bytes of this connection so far
//!     type Message = std::convert::Infallible;
//!
//!     fn event(&mut self, conn: &mut Connection<'_, Self>, bytes: &[u8]) {
//!         *conn.state() += bytes.len() as u64;
//!         conn.send(&bytes.to_ascii_uppercase());
//!     }
//! }
//!
//! let server = RunningServer::start(ServerOptions::default(), |_core| Shout)?;
//! # use std::io::{Read, Write};
//! # let mut client = std::net::TcpStream::connect(server.addr())?;
//! # client.write_all(b"hello")?;
//! # let mut answer = [0; 5];
//! # client.read_exact(&mut answer)?;
//! # assert_eq!(&answer, b"HELLO");
//! # drop(client);
//! server.drain(std::time::Duration::from_secs(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The acceptor of a core takes a permit, then accepts the connection, then places it on a core
//! (see [`AcceptTopology`]). The engine receives and the handler answers. The close returns the
//! permit and wakes the core that waits for one.

mod acceptor;
mod any_server;
mod app;
mod bytes;
pub mod channels;
mod config;
mod connect_refusal;
mod connection;
mod connection_id;
mod core_message;
mod events;
mod fanout;
mod handle;
mod handler;
mod handler_context;
mod inspection;
pub mod kinds;
mod linger;
mod node_port;
mod options;
mod origin;
mod outbox;
mod server;
mod shared_handler;
mod shared_topics;
mod slot;
mod tls;
mod websocket;

pub use any_server::AnyServer;
pub use app::ServerApp;
pub use bytes::{BytesHandler, TcpConnection};
pub use config::ServerConfig;
pub use connect_refusal::ConnectRefusal;
pub use connection::Connection;
pub use connection_id::ConnectionId;
pub use core_message::{CoreMessage, CoreReport, ListenReport, ServerDriver};
pub use handle::ServerHandle;
pub use handler::{DisconnectReason, EventOf, Handler, InterceptAction};
pub use handler_context::HandlerContext;
pub use inspection::INSPECTION_ROWS_MAX;
pub use options::{AcceptTopology, ServerOptions};
pub use origin::{CheckOrigin, Origin, OriginError};
pub use server::{RunningServer, StartError, TlsReloadError};
pub use shared_handler::SharedHandler;
pub use shared_topics::SharedTopics;
pub use slot::Slot;
pub use throng_bus as bus;
pub use throng_engine::SendOutcome;
pub use throng_proto::websocket::WebSocketLimits;
pub use throng_proto::{Raw, Session};
pub use throng_pubsub as pubsub;
pub use tls::HTTP_ALPN;
pub use websocket::{
    Message, Peer, PeerState, WebSocketHandler, WebSocketOptions, WebSockets, publication,
};
