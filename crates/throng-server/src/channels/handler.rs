//! The handler of a core: it says which callback an event leads to, and what the client is told of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use throng_base::Instant;
use throng_driver::CoreId;
use throng_proto::phoenix::{self, EncodeError, Kind, Message as Wire, Payload, Vsn, names};
use throng_proto::websocket::{Scratch, Server as Session, ServerEvent};
use throng_pubsub::{Dialect, Publication, Rulebook, Subscription};

use super::broadcast::{self, Broadcast, dialect};
use super::channel::{Info, Left, Live, Refused};
use super::config::Config;
use super::conn::{Conn, Joined, Mode};
use super::core::{CoreState, Owner};
use super::longpoll::{self, Asked};
use super::message::{Message, Parcel};
use super::refs::Ref;
use super::socket::{Joining, Socket};
use super::{frame, http};
use crate::{Connection, Corewide, Ended, Handler};

/// One core's part of a server of channels; [`Channels::handler`](super::Channels::handler) makes it.
pub struct ChannelHandler {
    pub(crate) core: CoreState,
}

/// What came of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    GoesOn,
    Stops,
    Crashed,
}

type Conned<'c> = Connection<'c, ChannelHandler>;

impl ChannelHandler {
    pub(crate) fn new(config: Config, core: CoreId) -> Self {
        Self { core: CoreState::new(config, core) }
    }

    pub(crate) fn text(&mut self, conn: &mut Conned<'_>, vsn: Vsn, text: &str) {
        match phoenix::decode_text(vsn, text) {
            Ok(message) => self.message_in(conn, vsn, &message),
            Err(_) => self.end(conn, INTERNAL_ERROR, Left::Closed),
        }
    }

    pub(crate) fn binary(&mut self, conn: &mut Conned<'_>, vsn: Vsn, bytes: &[u8]) {
        if vsn == Vsn::V1 {
            // V1 is JSON whatever the frame says, as Phoenix has it; tsung sends it so.
            return self.text(conn, vsn, std::str::from_utf8(bytes).unwrap_or_default());
        }
        match phoenix::decode_binary(bytes) {
            Ok(message) => self.message_in(conn, vsn, &message),
            Err(_) => self.end(conn, INTERNAL_ERROR, Left::Closed),
        }
    }

    fn message_in(&mut self, conn: &mut Conned<'_>, vsn: Vsn, message: &Wire<'_>) {
        match &*message.event {
            names::HEARTBEAT if message.topic == names::PHOENIX => {
                self.reply(conn, vsn, message, None, "ok", Payload::EMPTY);
            }
            names::JOIN => self.join(conn, vsn, message),
            names::LEAVE => self.leave(conn, vsn, message),
            _ => self.push_in(conn, vsn, message),
        }
        self.run_infos(conn);
    }

    fn join(&mut self, conn: &mut Conned<'_>, vsn: Vsn, message: &Wire<'_>) {
        let old = conn.state().take(&message.topic);
        // The answer to the join comes before what is left to say about the old channel.
        let mut farewell = None;
        if let Some(mut old) = old {
            let mark = frame::mark(conn);
            self.terminate(conn, vsn, &mut old, Left::Duplicate);
            self.write(conn, |out| {
                phoenix::channel_closed(vsn, old.join_ref.as_deref(), &old.topic.name, out);
                Ok(Kind::Text)
            });
            farewell = Some(frame::cut(conn, mark));
            self.forget(conn, old);
        }
        let joined = self.try_join(conn, vsn, message);
        if let Some(farewell) = farewell {
            frame::append(conn, farewell);
        }
        if let Some(mut joined) = joined {
            let outcome =
                self.call(conn, vsn, &mut joined, None, |channel, socket| channel.joined(socket));
            self.settle(conn, vsn, joined, outcome);
        }
    }

    /// Joins and answers.
    fn try_join(&mut self, conn: &mut Conned<'_>, vsn: Vsn, message: &Wire<'_>) -> Option<Joined> {
        let join_ref = message.join_ref.as_deref();
        if conn.state().channels() >= self.core.config.channels_max {
            let error = Payload::Json(r#"{"reason":"too many channels joined"}"#);
            self.reply(conn, vsn, message, join_ref, "error", error);
            return None;
        }
        // Without a join_ref the channel is known by the ref of its join.
        let known_as = join_ref.or(message.r#ref.as_deref());
        let name_bytes = message.topic.len().max(known_as.map_or(0, str::len));
        let topic = match name_bytes <= self.core.config.name_bytes_max {
            true => self.core.topics.get(&self.core.config, &message.topic),
            false => None,
        };
        let Some(topic) = topic else {
            self.unmatched(conn, vsn, message);
            return None;
        };
        let route = &self.core.config.routes[usize::from(topic.route)];
        let mut joining = Joining {
            conn: conn.lend(),
            topic: &topic.name,
            payload: message.payload,
            welcome: String::new(),
        };
        let made = catch_unwind(AssertUnwindSafe(|| (route.join)(&mut joining)));
        let welcome = joining.welcome;
        match made {
            Ok(Ok(channel)) => {
                let response = if welcome.is_empty() { "{}" } else { &welcome };
                let intercepts = !route.intercept.is_empty() || conn.is_detached();
                let dialect = dialect(vsn, conn.protocol().is_deflated());
                let subscription = Subscription { dialect, intercepts, tag: CHANNEL };
                self.reply(conn, vsn, message, join_ref, "ok", Payload::Json(response));
                let membership = conn.subscribe(&topic.name, subscription);
                let serial = self.core.next_serial();
                Some(Joined { channel, topic, join_ref: Ref::new(known_as), membership, serial })
            }
            Ok(Err(Refused(response))) => {
                self.reply(conn, vsn, message, join_ref, "error", Payload::Json(&response));
                self.core.topics.release(topic);
                None
            }
            Err(panic) => {
                drop_shielded(panic);
                let error = Payload::Json(r#"{"reason":"join crashed"}"#);
                self.reply(conn, vsn, message, join_ref, "error", error);
                self.core.topics.release(topic);
                None
            }
        }
    }

    fn leave(&mut self, conn: &mut Conned<'_>, vsn: Vsn, message: &Wire<'_>) {
        let join_ref = message.join_ref.as_deref();
        match conn.state().find(&message.topic) {
            None => return self.reply(conn, vsn, message, join_ref, "ok", Payload::EMPTY),
            Some(joined) if joined.is_stale(join_ref) => return,
            Some(_) => {}
        }
        let Some(joined) = conn.state().take(&message.topic) else { return };
        let known_as = joined.join_ref.as_deref();
        self.reply(conn, vsn, message, known_as, "ok", Payload::EMPTY);
        self.finish(conn, vsn, joined, Left::Asked);
    }

    /// An event of the application's own.
    fn push_in(&mut self, conn: &mut Conned<'_>, vsn: Vsn, message: &Wire<'_>) {
        let Some(mut joined) = conn.state().take(&message.topic) else {
            return self.unmatched(conn, vsn, message);
        };
        if joined.is_stale(message.join_ref.as_deref()) {
            return conn.state().put(joined);
        }
        let asked = message.r#ref.as_deref();
        let outcome = self.call(conn, vsn, &mut joined, asked, |channel, socket| {
            channel.handle_in(&message.event, message.payload, socket);
        });
        self.settle(conn, vsn, joined, outcome);
    }

    fn unmatched(&mut self, conn: &mut Conned<'_>, vsn: Vsn, message: &Wire<'_>) {
        let error = Payload::Json(r#"{"reason":"unmatched topic"}"#);
        self.reply(conn, vsn, message, None, "error", error);
    }

    /// A message for a channel, from itself or from elsewhere.
    fn info(&mut self, conn: &mut Conned<'_>, topic: &str, serial: u32, info: Info) {
        let Some(vsn) = conn.state().mode.vsn() else { return drop_shielded(info) };
        if conn.state().find(topic).is_none_or(|joined| joined.serial != serial) {
            return drop_shielded(info);
        }
        let Some(mut joined) = conn.state().take(topic) else { return };
        let outcome = self.call(conn, vsn, &mut joined, None, |channel, socket| {
            channel.handle_info(info, socket);
        });
        self.settle(conn, vsn, joined, outcome);
    }

    fn run_infos(&mut self, conn: &mut Conned<'_>) {
        while let Some((topic, serial, info)) = self.core.infos.pop() {
            self.info(conn, &topic, serial, info);
        }
    }

    /// Runs one callback of a channel that was taken out.
    fn call(
        &mut self,
        conn: &mut Conned<'_>,
        vsn: Vsn,
        joined: &mut Joined,
        asked: Option<&str>,
        callback: impl FnOnce(&mut dyn Live, &mut Socket<'_>),
    ) -> Outcome {
        let Joined { channel, topic, join_ref, serial, .. } = joined;
        let mut socket = Socket {
            conn: conn.lend(),
            core: &mut self.core,
            vsn,
            topic,
            join_ref,
            serial: *serial,
            asked,
            is_member: true,
            stops: false,
        };
        let ran = catch_unwind(AssertUnwindSafe(|| callback(&mut **channel, &mut socket)));
        let (stops, sent) = (socket.stops, socket.conn.sent);
        conn.sent += sent;
        match ran {
            Ok(()) if stops => Outcome::Stops,
            Ok(()) => Outcome::GoesOn,
            Err(panic) => {
                drop_shielded(panic);
                Outcome::Crashed
            }
        }
    }

    /// A channel that was taken out goes on, or ends.
    fn settle(&mut self, conn: &mut Conned<'_>, vsn: Vsn, joined: Joined, outcome: Outcome) {
        match outcome {
            Outcome::GoesOn => conn.state().put(joined),
            Outcome::Stops => self.finish(conn, vsn, joined, Left::Stopped),
            Outcome::Crashed => self.crashed(conn, vsn, joined),
        }
    }

    /// A channel ends in order: the client is told first, then the channel.
    fn finish(&mut self, conn: &mut Conned<'_>, vsn: Vsn, mut joined: Joined, why: Left) {
        self.write(conn, |out| {
            phoenix::channel_closed(vsn, joined.join_ref.as_deref(), &joined.topic.name, out);
            Ok(Kind::Text)
        });
        self.terminate(conn, vsn, &mut joined, why);
        self.forget(conn, joined);
    }

    fn crashed(&mut self, conn: &mut Conned<'_>, vsn: Vsn, joined: Joined) {
        self.write(conn, |out| {
            phoenix::channel_crashed(vsn, joined.join_ref.as_deref(), &joined.topic.name, out);
            Ok(Kind::Text)
        });
        self.forget(conn, joined);
    }

    /// The last callback of a channel. What goes wrong in it changes nothing any more.
    fn terminate(&mut self, conn: &mut Conned<'_>, vsn: Vsn, joined: &mut Joined, why: Left) {
        self.call(conn, vsn, joined, None, |channel, socket| {
            socket.is_member = false;
            channel.terminate(why, socket);
        });
    }

    /// Nothing is left of a channel.
    fn forget(&mut self, conn: &mut Conned<'_>, joined: Joined) {
        let Joined { channel, topic, membership, serial, .. } = joined;
        conn.unsubscribe(membership);
        self.core.presence.untrack_all(&Owner::new(conn.id(), serial));
        drop_shielded(channel);
        self.core.topics.release(topic);
    }

    /// Closes the connection with this code; its channels end first.
    pub(crate) fn end(&mut self, conn: &mut Conned<'_>, code: u16, why: Left) {
        self.end_channels(conn, why);
        conn.state().mode = Mode::Closing;
        conn.clear_timeout();
        if conn.is_detached() {
            longpoll::close(conn, why);
            return conn.close();
        }
        let (session, out) = conn.session();
        session.close(code, "", out);
    }

    /// Too much waits for a client that does not fetch it.
    pub(crate) fn overflow(&mut self, conn: &mut Conned<'_>) {
        self.end(conn, GOING_AWAY, Left::Closed);
    }

    fn end_channels(&mut self, conn: &mut Conned<'_>, why: Left) {
        let Some(vsn) = conn.state().mode.vsn() else { return };
        while let Some(mut joined) = conn.state().take_any() {
            self.terminate(conn, vsn, &mut joined, why);
            self.forget(conn, joined);
        }
        self.run_infos(conn);
    }

    fn reply(
        &mut self,
        conn: &mut Conned<'_>,
        vsn: Vsn,
        message: &Wire<'_>,
        join_ref: Option<&str>,
        status: &str,
        response: Payload<'_>,
    ) {
        let r#ref = message.r#ref.as_deref();
        self.write(conn, |out| {
            phoenix::reply(vsn, join_ref, r#ref, &message.topic, status, response, out)
        });
    }

    fn write(
        &mut self,
        conn: &mut Conned<'_>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<Kind, EncodeError>,
    ) {
        self.core.frame.clear();
        if let Ok(kind) = encode(&mut self.core.frame) {
            frame::send(conn, &mut self.core, kind);
        }
    }

    /// A broadcast that its channel intercepts, or that a long-poll session keeps, or one to the socket's id.
    fn deliver(&mut self, conn: &mut Conned<'_>, publication: &Publication, tag: u16) {
        let Some(vsn) = conn.state().mode.vsn() else { return };
        let Some(broadcast) = publication.body::<Broadcast>() else { return };
        if tag == SOCKET_ID {
            if broadcast.event() == DISCONNECT {
                self.end(conn, GOING_AWAY, Left::Closed);
            }
            return;
        }
        let topic = publication.topic();
        let Some(joined) = conn.state().find(topic) else { return };
        let route = &self.core.config.routes[usize::from(joined.topic.route)];
        if !route.intercepts(broadcast.event()) {
            return broadcast::tell(conn, &mut self.core, vsn, publication);
        }
        let Some(mut joined) = conn.state().take(topic) else { return };
        let outcome = self.call(conn, vsn, &mut joined, None, |channel, socket| {
            channel.handle_out(broadcast.event(), broadcast.payload(), socket);
        });
        self.settle(conn, vsn, joined, outcome);
    }

    /// The timer of a WebSocket: it ends, or the timer runs for what is left.
    fn heard_nothing(&mut self, conn: &mut Conned<'_>) {
        let (silent, timeout) = (conn.now().since(conn.heard()), self.core.config.timeout);
        match timeout.checked_sub(silent) {
            Some(left) if !left.is_zero() => conn.set_timeout(left),
            _ => self.end(conn, PROTOCOL_ERROR, Left::Closed),
        }
    }
}

impl Handler for ChannelHandler {
    type Session = Session;
    type Conn = Conn;
    type Message = Message;
    const NAME: &'static str = "channels";

    fn session(&mut self, now: Instant) -> Session {
        Session::new(now, &self.core.config.limits)
    }

    fn scratch(&self) -> Scratch {
        Scratch::new(self.core.config.limits, 0)
    }

    fn topics(&self) -> Rulebook {
        self.core.config.topics.clone()
    }

    fn open(&mut self, conn: &mut Conned<'_>) {
        if conn.is_detached() {
            http::subscribe_to_id(conn);
            longpoll::begin(self, conn);
        }
    }

    fn event(&mut self, conn: &mut Conned<'_>, event: ServerEvent<'_>) {
        match (event, conn.state().mode) {
            (ServerEvent::Text(text), Mode::Socket(vsn)) => self.text(conn, vsn, text),
            (ServerEvent::Binary(bytes), Mode::Socket(vsn)) => self.binary(conn, vsn, bytes),
            (ServerEvent::Request(request), Mode::Http) => http::request(self, conn, &request),
            (ServerEvent::Closed { .. } | ServerEvent::Failed(_), _) => conn.close(),
            (ServerEvent::Ping(_) | ServerEvent::Pong(_), _) => {}
            // What was under way when the close frame left.
            (ServerEvent::Text(_) | ServerEvent::Binary(_) | ServerEvent::Request(_), _) => {}
        }
    }

    fn message(&mut self, conn: &mut Conned<'_>, Message(parcel): Message) {
        match parcel {
            Parcel::Info { topic, serial, info } => self.info(conn, &topic, serial, info),
            Parcel::Asked(asked) => longpoll::asked(self, conn, asked),
            Parcel::Answer(answer) => return longpoll::answered(conn, &answer),
            Parcel::Gone { request } => return longpoll::gone(self, conn, request),
            Parcel::Presence { .. } => {}
        }
        self.run_infos(conn);
        longpoll::flush(self, conn);
    }

    fn undelivered(&mut self, core: &mut Corewide<'_, Self>, Message(parcel): Message) {
        if let Parcel::Asked(Asked { from, .. }) = parcel {
            core.tell(from.connection, Message(Parcel::Gone { request: from.request }));
        }
    }

    fn mail(&mut self, core: &mut Corewide<'_, Self>, Message(parcel): Message) {
        if let Parcel::Presence { diff, publication } = parcel {
            self.core.presence.apply(&diff);
            core.publish_here(&publication);
        }
    }

    fn turn_ended(&mut self, core: &mut Corewide<'_, Self>) {
        for diff in self.core.presence.drain() {
            let topic = Arc::clone(diff.topic());
            let publication = Arc::new(Publication::new(topic, Broadcast::presence(&diff)));
            core.publish_here(&publication);
            let own = core.core();
            for other in (0..core.cores()).filter(|&other| other != own) {
                let (diff, publication) = (Arc::clone(&diff), Arc::clone(&publication));
                core.mail(other, Message(Parcel::Presence { diff, publication }));
            }
        }
    }

    fn timeout(&mut self, conn: &mut Conned<'_>) {
        let mode = conn.state().mode;
        match mode {
            Mode::Socket(_) => self.heard_nothing(conn),
            Mode::Asking { is_poll, .. } => longpoll::timed_out(conn, is_poll),
            Mode::Poll(_) if longpoll::timeout(conn) => self.end(conn, GOING_AWAY, Left::Closed),
            Mode::Poll(_) | Mode::Http | Mode::Closing => {}
        }
    }

    fn render(&mut self, publication: &Publication, dialect: Dialect, out: &mut Vec<u8>) {
        let CoreState { frame, deflater, .. } = &mut self.core;
        broadcast::render(publication, dialect, frame, deflater, out);
    }

    fn delivery(&mut self, conn: &mut Conned<'_>, publication: &Publication, tag: u16) {
        self.deliver(conn, publication, tag);
        self.run_infos(conn);
        longpoll::flush(self, conn);
    }

    fn draining(&mut self, conn: &mut Conned<'_>) {
        match conn.state().mode {
            Mode::Socket(_) | Mode::Poll(_) => self.end(conn, SERVICE_RESTART, Left::Draining),
            Mode::Http => conn.close(),
            // Its session is told, too, and answers.
            Mode::Asking { .. } | Mode::Closing => {}
        }
    }

    fn close(&mut self, conn: &mut Conned<'_>, _why: Ended) {
        self.end_channels(conn, Left::Closed);
        if conn.is_detached() {
            longpoll::close(conn, Left::Closed);
            self.core.polls -= 1;
        }
    }
}

impl Joined {
    /// Whether a message is for an earlier channel of the same topic.
    fn is_stale(&self, join_ref: Option<&str>) -> bool {
        join_ref.is_some_and(|join_ref| self.join_ref.as_deref() != Some(join_ref))
    }
}

/// What panics as it is dropped, the payload of a panic even, harms nobody else.
fn drop_shielded<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        let panic: Box<dyn Any + Send> = panic;
        std::mem::forget(panic);
    }
}

/// The tag of a channel's subscription.
const CHANNEL: u16 = 0;
/// The tag of a subscription to the socket's id.
pub(crate) const SOCKET_ID: u16 = 1;
/// What is broadcast to a socket's id to close it.
const DISCONNECT: &str = "disconnect";

/// Close codes (RFC 6455 section 7.4.1).
const GOING_AWAY: u16 = 1001;
/// As Bandit says of a client that is silent for too long.
const PROTOCOL_ERROR: u16 = 1002;
const INTERNAL_ERROR: u16 = 1011;
/// The server ends; whoever is told so comes back later.
const SERVICE_RESTART: u16 = 1012;
