//! The configuration of a server of channels.

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
use super::client::ChannelHandler;
use super::defaults;
use super::longpoll::permits::SessionPermits;
use super::pattern::{Pattern, PatternError};
use super::socket::Joining;
use crate::{CheckOrigin, ConnectRefusal};

/// The channels of a server, and the conditions for connecting. Settings that Phoenix has too have
/// Phoenix's defaults.
#[derive(Clone)]
pub struct Channels {
    config: Config,
}

/// All settings. Each core has a copy.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) path: String,
    pub(crate) routes: Vec<Route>,
    pub(crate) connect: Arc<ConnectFn>,
    pub(crate) check_origin: CheckOrigin,
    pub(crate) host: Option<String>,
    pub(crate) https: bool,
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
    /// The permits of long-poll sessions, shared by all cores.
    pub(crate) poll_permits: SessionPermits,
    pub(crate) poll_bytes_max: usize,
    pub(crate) presence: PresenceLimits,
    pub(crate) pages: Vec<Page>,
    /// The key that signs the tokens of long-poll sessions, the same for all cores.
    pub(crate) secret: [u8; 32],
    /// The wall clock's time at the zero of the monotonic clock, in nanoseconds. Refs of presence
    /// are made from it.
    pub(crate) origin_ns: u64,
}

type ConnectFn = dyn Fn(&ConnectRequest<'_>) -> Result<ConnectGrant, ConnectRefusal> + Send + Sync;

/// A pattern and its channel.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) pattern: Pattern,
    pub(crate) join: fn(&mut Joining<'_>) -> Result<Box<dyn ErasedChannel>, JoinRefusal>,
    pub(crate) intercept: &'static [&'static str],
}

impl Route {
    /// Reports whether a broadcast of `event` goes to the channel instead of to its client.
    pub(crate) fn intercepts(&self, event: &str) -> bool {
        self.intercept.contains(&event)
    }
}

/// A page for browsers.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'static [u8],
}

impl Channels {
    /// Makes channels at `<path>/websocket` and `<path>/longpoll`.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            config: Config {
                path: path.into(),
                routes: Vec::new(),
                connect: Arc::new(|_| Ok(ConnectGrant::default())),
                check_origin: CheckOrigin::default(),
                host: None,
                https: false,
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

    /// Adds a channel: clients that join a topic matching `pattern` get a `C`. A pattern is a
    /// topic, or ends with `*`, which matches any rest. The first matching pattern counts.
    ///
    /// # Errors
    /// Returns an error if the pattern has a `*` elsewhere.
    pub fn channel<C: Channel>(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.config.routes.push(Route {
            pattern: Pattern::new(pattern)?,
            join: |joining| Ok(Box::new(C::join(joining)?)),
            intercept: C::INTERCEPT,
        });
        Ok(self)
    }

    /// Sets the callback that admits a connection and makes its assigns. Default: admits all,
    /// without assigns.
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

    /// Sets the server's name in the addresses of its pages. Default: any IP address, and
    /// `localhost`; see [`CheckOrigin::Host`].
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.config.host = Some(host.into());
        self
    }

    /// Sets the subprotocols that the server accepts. A client that offers only others is answered
    /// 403. Default: offers are ignored.
    pub fn subprotocols(mut self, subprotocols: &[&str]) -> Self {
        self.config.subprotocols = subprotocols.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Adds a page for browsers.
    pub fn page(
        mut self,
        path: &'static str,
        content_type: &'static str,
        body: &'static [u8],
    ) -> Self {
        self.config.pages.push(Page { path, content_type, body });
        self
    }

    /// Makes the handler of one core of a [`RunningServer`](crate::RunningServer).
    pub fn handler(&self, core: CoreId) -> ChannelHandler {
        ChannelHandler::new(self.config.clone(), core)
    }
}

/// Declares a method of [`Channels`] for each setting, which sets it.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        impl Channels {
            $(
                $(#[$doc])*
                pub fn $name(mut self, $name: $type) -> Self {
                    self.config.$name = $name;
                    self
                }
            )*
        }
    };
}

settings! {
    /// Sets the pages that may connect. Default: pages of this server's [`host`](Self::host).
    check_origin: CheckOrigin,
    /// Sets whether the connections have TLS: then the addresses of pages begin with `https://`.
    /// Default false.
    https: bool,
    /// Sets the time without received bytes after which a WebSocket is closed with code 1002.
    /// Default 60 s.
    timeout: Duration,
    /// Sets the maximum of channels of one connection. A further join is answered `too many
    /// channels joined`. Default 100.
    channels_max: usize,
    /// Sets the maximum length of a topic and of a join_ref in bytes; both are kept while the
    /// channel lives. A join with a longer one is answered `unmatched topic`. Default 1,024.
    name_bytes_max: usize,
    /// Sets whether clients may send a token among their subprotocols, as phoenix.js does with
    /// `authToken`; see [`ConnectRequest::auth_token`]. Default false.
    auth_token: bool,
    /// Sets whether messages are compressed for clients that offer it. Default false.
    deflate: bool,
    /// Sets the limits of requests, frames and messages. Only long-polls may have bodies: at any
    /// other path 0 bytes are allowed. Default: [`defaults::limits`].
    limits: WebSocketLimits,
    /// Sets the time that a long-poll waits for messages. A session without a poll for one and a
    /// half times as long ends. Default 10 s.
    poll_window: Duration,
    /// Sets the maximum of long-poll sessions over all cores; a further one is answered 403. An
    /// address (a /64 of IPv6) may have a quarter of those that are free, and 16 in any case. A new
    /// session takes the place of one of its address that was never polled or posted to. A
    /// session exists without a connection, so sessions do not count towards `connections_max`:
    /// both limits apply side by side. Default 1,000.
    poll_sessions_max: usize,
    /// Sets the bytes that the long-poll sessions of one core keep together for their next polls.
    /// Broadcasts are shared and count once. A session may keep half of the free bytes. A session
    /// that finds no room ends. Default 64 MiB.
    poll_bytes_max: usize,
    /// Sets the limits of presence: members of a topic, and sizes of keys and metas. Default:
    /// [`PresenceLimits::default`].
    presence: PresenceLimits,
    /// Sets the rules for broadcasts to slow readers. Default: [`Rulebook::default`].
    topics: Rulebook,
}

impl Config {
    /// Returns the index in `routes` of the first pattern that matches `topic`.
    pub(crate) fn route(&self, topic: &str) -> Option<u16> {
        let place = self.routes.iter().position(|route| route.pattern.matches(topic))?;
        u16::try_from(place).ok()
    }
}

/// A client's request to connect.
pub struct ConnectRequest<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) auth_token: Option<String>,
    pub(crate) transport: Transport,
}

/// The transport of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Over a WebSocket.
    WebSocket,
    /// Long-polling: messages are in the answers to requests that wait for them.
    LongPoll,
}

impl<'a> ConnectRequest<'a> {
    /// Returns the parameters of the connection: the decoded query.
    pub fn params(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        query_pairs(self.request.query().unwrap_or_default())
    }

    /// Returns the last parameter of this name.
    pub fn param(&self, name: &str) -> Option<Cow<'a, str>> {
        self.params().filter(|(known, _)| known == name).last().map(|(_, value)| value)
    }

    /// Returns a header field of the request.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.request.header(name)
    }

    /// Returns the `authToken` of phoenix.js, if [`Channels::auth_token`] is on.
    pub fn auth_token(&self) -> Option<&str> {
        self.auth_token.as_deref()
    }

    /// Returns the client's transport.
    pub const fn transport(&self) -> Transport {
        self.transport
    }
}

/// The id and the assigns of an admitted connection.
#[derive(Default)]
pub struct ConnectGrant {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) assigns: Option<Box<dyn Any>>,
}

impl ConnectGrant {
    /// Sets the socket's id, which may be shared by all connections of a user. A broadcast of
    /// `disconnect` to the topic of that name closes them with code 1001.
    pub fn with_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets a value that the connection's channels read with
    /// [`Socket::assigns`](super::Socket::assigns).
    pub fn with_assigns<T: 'static>(mut self, assigns: T) -> Self {
        self.assigns = Some(Box::new(assigns));
        self
    }
}

/// Makes a random key for this process.
fn secret() -> [u8; 32] {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).expect("the system has randomness");
    secret
}

fn origin_ns() -> u64 {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (wall.as_nanos() as u64).saturating_sub(Clock.now().as_nanos())
}
