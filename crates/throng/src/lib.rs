//! Servers and loads of very many connections, and the reasons why they stop.
//!
//! A server in one statement:
//!
//! ```no_run
//! use throng::Server;
//!
//! fn main() -> throng::Result {
//!     // Runs until Ctrl-C or SIGTERM, then drains.
//!     Server::bind("0.0.0.0:5555").on_bytes(|conn, bytes| conn.send(bytes)).run()
//! }
//! ```
//!
//! A load against it, with the summary and the diagnosis back:
//!
//! ```
//! # let server = throng::Server::bind("127.0.0.1:0").on_bytes(|conn, bytes| conn.send(bytes));
//! # let server = server.start()?;
//! use throng::Load;
//!
//! let load = "
//! target: tcp://127.0.0.1:5555
//! load: [{ramp: {to: 100, over: 500ms}}]
//! user: [connect, send: hello, expect: hello]
//! ";
//! # let target = format!("tcp://{}", server.addr());
//! let outcome = Load::new(load).target(&target).run()?;
//! let connect = &outcome.result.summary.connect;
//! println!("{} connects, p99 {} us", connect.ok, connect.latency_us.p99);
//! println!("{}", outcome.result.diagnosis.verdict);
//! # assert!(outcome.result.summary.connect.ok >= 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | What you write | Where to begin |
//! |---|---|
//! | a server of plain TCP | [`Server::on_bytes`] |
//! | a WebSocket server | [`WebSocketHandler`], [`Server::web_socket`] |
//! | Phoenix Channels | [`channels::Channel`], [`Server::channels`] |
//! | a protocol of your own | [`proto::Session`], [`Handler`], [`Server::handler`] |
//! | a load | [`Load`], with the scenario language of `throng run` |
//! | what a machine can hold, what stopped a run | [`doctor`] |
//! | run files and summaries | [`report`] |

mod error;
mod load;
mod server;

pub use error::{Error, Result};
pub use load::Load;
pub use server::{Server, Service};

pub use throng_base::Instant;
pub use throng_driver::{CoreId, Errno};
pub use throng_engine::SendOutcome;
pub use throng_measure::{Interval, RunEvent, ServerCounters, ServerSnapshot};
pub use throng_proto::http::Request;
pub use throng_pubsub::{Membership, Publication, Subscription, TopicRules};
pub use throng_report::{RunExit, Summary};
pub use throng_run::recorder::Outcome;
pub use throng_server::{
    AcceptTopology, CheckOrigin, ConnectRefusal, Connection, ConnectionId, DisconnectReason,
    EventOf, Handler, HandlerContext, InterceptAction, Message, Peer, RunningServer, ServerHandle,
    ServerOptions, SharedHandler, SharedTopics, StartError, TcpConnection, WebSocketHandler,
    WebSocketLimits, WebSocketOptions, publication,
};

/// Phoenix Channels: topics that clients join, over WebSockets and long-polls.
pub mod channels {
    pub use throng_proto::phoenix::PhoenixPayload;
    pub use throng_server::channels::*;
}

/// The bus between servers that share topics: see [`RunningServer::start_shared`].
pub mod bus {
    pub use throng_server::bus::*;
}

/// Certificates and options of TLS: see [`Server::tls`] and [`RunningServer::reload_tls`].
pub mod tls {
    pub use throng_server::{HTTP_ALPN, TlsReloadError};
    pub use throng_tls::{
        CertifiedPair, KeyLogSink, PemFile, Suite, TicketKeys, TlsConfigError, TlsServerOptions,
        TlsVersion,
    };
}

/// Protocols as state machines without input or output.
pub mod proto {
    pub use throng_proto::*;
}

/// Run files, histograms, summaries, thresholds and tables.
pub mod report {
    pub use throng_measure::*;
    pub use throng_report::*;
}

/// The limits of a machine before a run, and the reasons for a result after it.
pub mod doctor {
    pub use throng_doctor::*;
    pub use throng_machine::*;
}
