//! How a server of channels is told what to serve.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use throng_driver::{Clock, CoreId};
use throng_proto::http::{Request, query_pairs};
use throng_proto::websocket::WebSocketLimits;
use throng_pubsub::Rulebook;
use throng_pubsub::presence::PresenceLimits;

use super::channel::{Channel, ErasedChannel, JoinRefusal};
use super::defaults;
use super::handler::ChannelHandler;
use super::longpoll::SessionPermits;
use super::pattern::{Pattern, PatternError};
use super::socket::Joining;
use crate::CheckOrigin;

/// What is served at which topic, and who may connect. Settings that Phoenix has too have Phoenix's
/// defaults.
#[derive(Clone)]
pub struct Channels {
    config: Config,
}

/// All settings; each core has a copy.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) path: String,
    pub(crate) routes: Vec<Route>,
    pub(crate) connect: Arc<ConnectFn>,
    pub(crate) check_origin: CheckOrigin,
    pub(crate) host: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) channels_max: usize,
    pub(crate) name_bytes_max: usize,
    pub(crate) subprotocols: Vec<String>,
    pub(crate) auth_token: bool,
    pub(crate) deflate: bool,
    pub(crate) limits: WebSocketLimits,
    pub(crate) topics: Rulebook,
    pub(crate) poll_window: Duration,
    pub(crate) poll_sessions_max: usize,
    /// Those that are taken; the same for all cores.
    pub(crate) poll_permits: SessionPermits,
    pub(crate) poll_bytes_max: usize,
    pub(crate) presence: PresenceLimits,
    pub(crate) pages: Vec<Page>,
    /// Signs the tokens of long-poll sessions; the same for all cores.
    pub(crate) secret: [u8; 32],
    /// The wall clock's time, in nanoseconds, when the machine's other clock began: refs of presence are made of it.
    pub(crate) origin_ns: u64,
}

type ConnectFn = dyn Fn(&ConnectRequest<'_>) -> Result<ConnectGrant, ConnectRefusal> + Send + Sync;

/// A pattern and what it leads to.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) pattern: Pattern,
    pub(crate) join: fn(&mut Joining<'_>) -> Result<Box<dyn ErasedChannel>, JoinRefusal>,
    pub(crate) intercept: &'static [&'static str],
}

impl Route {
    /// Whether a broadcast of `event` goes to the channel instead of to its client.
    pub(crate) fn intercepts(&self, event: &str) -> bool {
        self.intercept.contains(&event)
    }
}

/// Something to look at with a browser.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'static [u8],
}

impl Channels {
    /// Channels at `<path>/websocket` and `<path>/longpoll`.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            config: Config {
                path: path.into(),
                routes: Vec::new(),
                connect: Arc::new(|_| Ok(ConnectGrant::default())),
                check_origin: CheckOrigin::default(),
                host: None,
                timeout: defaults::TIMEOUT,
                channels_max: defaults::CHANNELS_MAX,
                name_bytes_max: defaults::NAME_BYTES_MAX,
                subprotocols: Vec::new(),
                auth_token: false,
                deflate: false,
                limits: defaults::limits(),
                topics: Rulebook::default(),
                poll_window: defaults::POLL_WINDOW,
                poll_sessions_max: defaults::POLL_SESSIONS_MAX,
                poll_permits: SessionPermits::default(),
                poll_bytes_max: defaults::POLL_BYTES_MAX,
                presence: PresenceLimits::default(),
                pages: Vec::new(),
                secret: secret(),
                origin_ns: origin_ns(),
            },
        }
    }

    /// Clients that join a topic matching `pattern` get a `C`. A pattern is a topic, or ends with `*`, which stands for any
    /// rest; the first that matches counts.
    ///
    /// # Errors
    /// A `*` elsewhere.
    pub fn channel<C: Channel>(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.config.routes.push(Route {
            pattern: Pattern::new(pattern)?,
            join: |joining| Ok(Box::new(C::join(joining)?)),
            intercept: C::INTERCEPT,
        });
        Ok(self)
    }

    /// Who may connect, and what is kept for the connection. Default: everybody, and nothing.
    pub fn connect(
        mut self,
        connect: impl Fn(&ConnectRequest<'_>) -> Result<ConnectGrant, ConnectRefusal>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.config.connect = Arc::new(connect);
        self
    }

    /// Whose pages may connect. Default: those of this server's [`host`](Self::host).
    pub fn check_origin(mut self, check_origin: CheckOrigin) -> Self {
        self.config.check_origin = check_origin;
        self
    }

    /// What the server is called in the addresses of its pages. Default: any IP address, and
    /// `localhost`; see [`CheckOrigin::Host`].
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.config.host = Some(host.into());
        self
    }

    /// A WebSocket of which nothing is heard for this long is closed with code 1002. Default 60 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = timeout;
        self
    }

    /// Channels of one connection; a further join is answered `too many channels joined`. Default 100.
    pub fn channels_max(mut self, channels_max: usize) -> Self {
        self.config.channels_max = channels_max;
        self
    }

    /// Bytes of a topic and of a join_ref, which are kept for as long as the channel lives; a join with a longer one is answered
    /// `unmatched topic`. Default 1,024.
    pub fn name_bytes_max(mut self, name_bytes_max: usize) -> Self {
        self.config.name_bytes_max = name_bytes_max;
        self
    }

    /// Subprotocols to agree on; a client that offers others only is answered 403. Default: what is offered is ignored.
    pub fn subprotocols(mut self, subprotocols: &[&str]) -> Self {
        self.config.subprotocols = subprotocols.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Whether clients may send a token among their subprotocols, as phoenix.js does with `authToken`; see
    /// [`Connect::auth_token`]. Default false.
    pub fn auth_token(mut self, auth_token: bool) -> Self {
        self.config.auth_token = auth_token;
        self
    }

    /// Whether messages are compressed for clients that want it. Default false.
    pub fn deflate(mut self, deflate: bool) -> Self {
        self.config.deflate = deflate;
        self
    }

    /// Bounds of requests, frames and messages. Bodies are for long-polls alone: at any other path
    /// 0 bytes are allowed. Default: [`defaults::limits`].
    pub fn limits(mut self, limits: WebSocketLimits) -> Self {
        self.config.limits = limits;
        self
    }

    /// How long a long-poll waits for messages; a session that nobody polls for one and a half times as long ends. Default 10 s.
    pub fn poll_window(mut self, poll_window: Duration) -> Self {
        self.config.poll_window = poll_window;
        self
    }

    /// Long-poll sessions over all cores; a further one is answered 403. They need no connection to
    /// stay, so they are none of `connections_max`: a server has at most so many connections, and
    /// at most so many sessions beside them. Default 1,000.
    pub fn poll_sessions_max(mut self, poll_sessions_max: usize) -> Self {
        self.config.poll_sessions_max = poll_sessions_max;
        self
    }

    /// Bytes that the long-poll sessions of one core hold together for their next polls. What is
    /// broadcast is shared and counts once, and a session may hold half of what is free. A session
    /// for which there is no room ends. Default 64 MiB.
    pub fn poll_bytes_max(mut self, poll_bytes_max: usize) -> Self {
        self.config.poll_bytes_max = poll_bytes_max;
        self
    }

    /// How many may be present in a topic, and what may be told of each. Default:
    /// [`PresenceLimits::default`].
    pub fn presence(mut self, presence: PresenceLimits) -> Self {
        self.config.presence = presence;
        self
    }

    /// What becomes of broadcasts to clients that are too slow for them. Default: [`Rulebook::default`].
    pub fn topics(mut self, topics: Rulebook) -> Self {
        self.config.topics = topics;
        self
    }

    /// Something for browsers.
    pub fn page(
        mut self,
        path: &'static str,
        content_type: &'static str,
        body: &'static [u8],
    ) -> Self {
        self.config.pages.push(Page { path, content_type, body });
        self
    }

    /// The handler of one core of a [`Server`](crate::Server).
    pub fn handler(&self, core: CoreId) -> ChannelHandler {
        ChannelHandler::new(self.config.clone(), core)
    }
}

impl Config {
    /// The place in `routes` of the first pattern that takes `topic`.
    pub(crate) fn route(&self, topic: &str) -> Option<u16> {
        let place = self.routes.iter().position(|route| route.pattern.matches(topic))?;
        u16::try_from(place).ok()
    }
}

/// A client that wants to connect.
pub struct ConnectRequest<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) auth_token: Option<String>,
    pub(crate) transport: Transport,
}

/// How frames travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Over a WebSocket.
    WebSocket,
    /// In the answers to requests, which wait for them.
    LongPoll,
}

impl<'a> ConnectRequest<'a> {
    /// The parameters that the client was given for its connection: the query, decoded.
    pub fn params(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        query_pairs(self.request.query().unwrap_or_default())
    }

    /// The last parameter of this name.
    pub fn param(&self, name: &str) -> Option<Cow<'a, str>> {
        self.params().filter(|(known, _)| known == name).last().map(|(_, value)| value)
    }

    /// A header field of the request.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.request.header(name)
    }

    /// What phoenix.js was given as `authToken`, where [`Channels::auth_token`] is on.
    pub fn auth_token(&self) -> Option<&str> {
        self.auth_token.as_deref()
    }

    /// Which way the client came.
    pub const fn transport(&self) -> Transport {
        self.transport
    }
}

/// What is kept for a connection that was let in.
#[derive(Default)]
pub struct ConnectGrant {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) assigns: Option<Box<dyn Any>>,
}

impl ConnectGrant {
    /// A name for this connection, and for all others of the same user, say: a broadcast of `disconnect` to the topic of
    /// that name closes them (code 1001).
    pub fn with_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Anything, which the connection's channels find by [`Socket::assigns`](super::Socket::assigns).
    pub fn with_assigns<T: 'static>(mut self, assigns: T) -> Self {
        self.assigns = Some(Box::new(assigns));
        self
    }
}

/// What a client is answered that may not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRefusal {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl ConnectRefusal {
    /// An answer of this HTTP status: 429, say.
    pub fn status(status: u16) -> Self {
        Self { status, body: String::new() }
    }

    /// With this text behind it.
    pub fn with_body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }
}

/// 403, empty.
impl Default for ConnectRefusal {
    fn default() -> Self {
        Self::status(403)
    }
}

/// Nobody else knows it.
fn secret() -> [u8; 32] {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).expect("the system has randomness");
    secret
}

fn origin_ns() -> u64 {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (wall.as_nanos() as u64).saturating_sub(Clock.now().as_nanos())
}
