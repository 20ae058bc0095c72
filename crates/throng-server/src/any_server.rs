//! A running server whose handler is not part of its type.

use std::net::SocketAddr;
use std::time::Duration;

use throng_measure::{RunEvent, ServerInspection, ServerSnapshot};
use throng_tls::TlsServerOptions;

use crate::{Handler, RunningServer, StartError, TlsReloadError};

/// The operations of a [`RunningServer`] that do not depend on its handler.
pub trait AnyServer: Send + Sync {
    /// Returns the address it listens on; see [`RunningServer::addr`].
    fn addr(&self) -> SocketAddr;
    /// Returns the counters; see [`RunningServer::snapshot`].
    fn snapshot(&self) -> ServerSnapshot;
    /// Returns the counters and keeps the maxima; see [`RunningServer::peek`].
    fn peek(&self) -> ServerSnapshot;
    /// Looks into the cores; see [`RunningServer::inspect`].
    fn inspect(&self, rows: usize) -> ServerInspection;
    /// Returns the events since the last call; see [`RunningServer::events`].
    fn events(&self) -> Vec<RunEvent>;
    /// Returns the number of open connections; see [`RunningServer::open`].
    fn open(&self) -> u64;
    /// Stops accepting; see [`RunningServer::suspend`].
    fn suspend(&self);
    /// Accepts again; see [`RunningServer::resume`].
    fn resume(&self) -> Result<(), StartError>;
    /// Returns the options of new handshakes; see [`RunningServer::tls`].
    fn tls(&self) -> Option<TlsServerOptions>;
    /// Takes other options of TLS; see [`RunningServer::reload_tls`].
    fn reload_tls(&self, options: TlsServerOptions) -> Result<(), TlsReloadError>;
    /// Stops accepting and waits until all connections have ended; see [`RunningServer::drain`].
    fn drain(&self, timeout: Duration) -> bool;
    /// Stops the cores; see [`RunningServer::stop`].
    fn stop(&self) -> bool;
}

impl<H: Handler> AnyServer for RunningServer<H>
where
    Self: Send + Sync,
{
    fn addr(&self) -> SocketAddr {
        self.addr()
    }

    fn snapshot(&self) -> ServerSnapshot {
        self.snapshot()
    }

    fn peek(&self) -> ServerSnapshot {
        self.peek()
    }

    fn inspect(&self, rows: usize) -> ServerInspection {
        self.inspect(rows)
    }

    fn events(&self) -> Vec<RunEvent> {
        self.events()
    }

    fn open(&self) -> u64 {
        self.open()
    }

    fn suspend(&self) {
        self.suspend();
    }

    fn resume(&self) -> Result<(), StartError> {
        self.resume()
    }

    fn tls(&self) -> Option<TlsServerOptions> {
        self.tls()
    }

    fn reload_tls(&self, options: TlsServerOptions) -> Result<(), TlsReloadError> {
        self.reload_tls(options)
    }

    fn drain(&self, timeout: Duration) -> bool {
        self.drain(timeout)
    }

    fn stop(&self) -> bool {
        self.stop()
    }
}
