//! Servers: where they listen, what they allow, and what answers.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use throng_driver::{CoreId, signals};
use throng_server::channels::{ChannelHandler, Channels};
use throng_server::{
    BytesHandler, HTTP_ALPN, Handler, RunningServer, ServerOptions, TcpConnection,
    WebSocketHandler, WebSocketOptions, WebSockets,
};
use throng_tls::TlsServerOptions;

use crate::{Error, Result};

/// A server before it runs: its address and its limits.
///
/// [`on_bytes`](Self::on_bytes), [`web_socket`](Self::web_socket), [`channels`](Self::channels) or
/// [`handler`](Self::handler) says what answers; the [`Service`] that each returns can run.
#[derive(Debug)]
pub struct Server {
    /// An error is reported by [`Service::start`], so that a server is one statement.
    listen: Result<SocketAddr>,
    options: ServerOptions,
    drain_timeout: Duration,
}

/// A server that knows what answers, and can run.
pub struct Service<H: Handler> {
    server: Server,
    make: Make<H>,
    on_listening: Box<dyn FnOnce(SocketAddr)>,
}

type Make<H> = Box<dyn Fn(CoreId) -> H + Send + Sync>;

impl Server {
    /// Listens on `address`, IPv4 or IPv6; the first one where a name has several. With port 0 the
    /// kernel chooses the port.
    pub fn bind(address: impl ToSocketAddrs + fmt::Debug) -> Self {
        let listen = address.to_socket_addrs().and_then(|mut addresses| {
            addresses.next().ok_or_else(|| std::io::Error::other("the name has no address"))
        });
        Self {
            listen: listen.map_err(|error| {
                let address = format!("{address:?}").trim_matches('"').to_owned();
                Error::Address { address, error }
            }),
            options: ServerOptions::default(),
            drain_timeout: DRAIN_TIMEOUT,
        }
    }

    /// Runs `cores` event loops. Default: one for each CPU.
    #[must_use]
    pub fn cores(mut self, cores: usize) -> Self {
        self.options.cores = Some(cores);
        self
    }

    /// Accepts at most this many connections at a time, over all cores. Further ones wait in the
    /// kernel's accept queue. Default: as many as the fd limit allows.
    #[must_use]
    pub fn connections_max(mut self, connections_max: usize) -> Self {
        self.options.connections_max = Some(connections_max);
        self
    }

    /// Closes connections that have been idle for this long. Default: never. A WebSocket client
    /// that sends a pong is not idle, and gets a close frame first.
    #[must_use]
    pub fn idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.options.idle_timeout = Some(idle_timeout);
        self
    }

    /// Puts all connections over TLS. With several certificates, the name that a client asks for
    /// chooses. WebSockets and channels agree on `http/1.1` where the client offers protocols.
    /// [`RunningServer::reload_tls`] takes renewed certificates while the server runs.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use throng::Server;
    /// use throng::tls::{CertifiedPair, TicketKeys, TlsConfigError, TlsServerOptions};
    ///
    /// fn server() -> Result<Server, TlsConfigError> {
    ///     let pair = CertifiedPair::read(Path::new("chain.pem"), Path::new("key.pem"))?;
    ///     let mut tls = TlsServerOptions::new(vec![pair]);
    ///     // Clients that return resume their sessions.
    ///     tls.tickets = TicketKeys::random();
    ///     Ok(Server::bind("0.0.0.0:5555").tls(tls))
    /// }
    ///
    /// assert!(server().unwrap_err().to_string().starts_with("chain.pem cannot be read"));
    /// ```
    #[must_use]
    pub fn tls(mut self, options: TlsServerOptions) -> Self {
        self.options.tls = Some(options);
        self
    }

    /// Sets all further options: backlog, accept topology, buffers, private fd tables.
    #[must_use]
    pub fn options(mut self, set: impl FnOnce(&mut ServerOptions)) -> Self {
        set(&mut self.options);
        self
    }

    /// Waits at most this long for connections to end when [`Service::run`] drains. Default 10 s.
    #[must_use]
    pub fn drain_timeout(mut self, drain_timeout: Duration) -> Self {
        self.drain_timeout = drain_timeout;
        self
    }

    /// Answers plain TCP: `on_bytes` is called with the bytes of each receive.
    pub fn on_bytes(
        self,
        on_bytes: impl Fn(&mut TcpConnection<'_>, &[u8]) + Send + Sync + 'static,
    ) -> Service<BytesHandler> {
        let handler = BytesHandler::new(on_bytes);
        self.handler(move |_core| handler.clone())
    }

    /// Answers WebSockets: `make` makes the handler of each core.
    pub fn web_socket<W: WebSocketHandler>(
        self,
        make: impl Fn() -> W + Send + Sync + 'static,
    ) -> Service<WebSockets<W>> {
        self.web_socket_with(WebSocketOptions::default(), make)
    }

    /// Answers WebSockets with these limits, origins, compression and rules for slow clients.
    pub fn web_socket_with<W: WebSocketHandler>(
        mut self,
        mut options: WebSocketOptions,
        make: impl Fn() -> W + Send + Sync + 'static,
    ) -> Service<WebSockets<W>> {
        // The handler applies the timeout itself: it sends a close frame first.
        let idle_timeout = self.options.idle_timeout.take();
        options.idle_timeout = options.idle_timeout.or(idle_timeout);
        options.https |= self.speaks_https();
        self.handler(move |_core| WebSockets::new(options.clone(), make()))
    }

    /// Serves Phoenix Channels. Their limits and origins are methods of `channels`.
    pub fn channels(mut self, mut channels: Channels) -> Service<ChannelHandler> {
        // As of a WebSocket. A long-poll that waits is not idle.
        if let Some(timeout) = self.options.idle_timeout.take() {
            channels = channels.timeout(timeout);
        }
        if self.speaks_https() {
            channels = channels.https(true);
        }
        let channels = Arc::new(channels);
        self.handler(move |core| channels.handler(core))
    }

    /// Answers with a [`Handler`] of your own, which may speak a protocol of its own; `make` makes
    /// the handler of each core, on the core's thread.
    pub fn handler<H: Handler>(
        self,
        make: impl Fn(CoreId) -> H + Send + Sync + 'static,
    ) -> Service<H> {
        Service { server: self, make: Box::new(make), on_listening: Box::new(|_| ()) }
    }

    /// Reports whether the server speaks TLS, with HTTP above it.
    fn speaks_https(&mut self) -> bool {
        let Some(tls) = &mut self.options.tls else { return false };
        if tls.alpn.is_empty() {
            tls.alpn = vec![HTTP_ALPN.to_vec()];
        }
        true
    }
}

impl<H: Handler> Service<H> {
    /// Calls `on_listening` with the address once the server listens.
    #[must_use]
    pub fn on_listening(self, on_listening: impl FnOnce(SocketAddr) + 'static) -> Self {
        Self { on_listening: Box::new(on_listening), ..self }
    }

    /// Runs until SIGINT or SIGTERM, then drains: accepts no more, tells all connections, and
    /// closes those that have not ended after the drain timeout. A second signal of the same kind
    /// ends the process.
    ///
    /// # Errors
    /// The server could not start, or a core has ended by itself, which is a defect.
    pub fn run(self) -> Result {
        let signal = Arc::new(AtomicUsize::new(NO_SIGNAL));
        signals::install(&signal).map_err(Error::Signals)?;
        let drain_timeout = self.server.drain_timeout;
        let running = self.start()?;
        while signal.load(Ordering::Relaxed) == NO_SIGNAL {
            thread::sleep(LOOK_EVERY);
        }
        running.drain(drain_timeout);
        if running.stop() { Ok(()) } else { Err(Error::CoreEnded) }
    }

    /// Starts the server and returns at once. It stops when it is dropped.
    ///
    /// # Errors
    /// A certificate is wrong, the address cannot be listened on, or the cores could not be set up.
    pub fn start(self) -> Result<RunningServer<H>> {
        let Self { server: Server { listen, options, .. }, make, on_listening } = self;
        let options = ServerOptions { listen: listen?, ..options };
        let running = RunningServer::start(options, make)?;
        on_listening(running.addr());
        Ok(running)
    }
}

impl<H: Handler> fmt::Debug for Service<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("server", &self.server).finish_non_exhaustive()
    }
}

const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const NO_SIGNAL: usize = 0;
