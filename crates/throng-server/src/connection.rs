//! The operations of a handler on the connection that it is called for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::MessagePriority;
use throng_engine::{App, ByteSource, Conn, Deadline, SendOutcome, SendPart};
use throng_pubsub::{Membership, Publication, Subscription};

use crate::core_message::{CoreMessage, ServerDriver};
use crate::fanout::Fanout;
use crate::slot::Slot;
use crate::{ConnectionId, Handler};

/// One connection, for the duration of one call of its [`Handler`].
pub struct Connection<'a, H: Handler> {
    pub(crate) ops: &'a mut dyn ConnectionOps<H>,
    pub(crate) id: ConnectionId,
    pub(crate) now: Instant,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) fanout: &'a mut Fanout,
    /// States of connections without a socket that begin at the end of the turn.
    pub(crate) spawned: &'a mut Vec<H::State>,
    /// True while the server drains.
    pub(crate) is_draining: bool,
    /// The addresses of other nodes, while the server drains.
    pub(crate) other_nodes: &'a [Arc<str>],
    /// The number of sends in this call.
    pub(crate) sent: u64,
}

impl<H: Handler> Connection<'_, H> {
    /// Returns the connection's name.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Returns the same connection for a shorter lifetime.
    pub(crate) fn reborrow(&mut self) -> Connection<'_, H> {
        Connection {
            ops: &mut *self.ops,
            fanout: &mut *self.fanout,
            spawned: &mut *self.spawned,
            sent: 0,
            ..*self
        }
    }

    /// Returns the handler's state of the connection.
    pub fn state(&mut self) -> &mut H::State {
        &mut self.ops.slot().state
    }

    /// Returns the time of the last activity: the accept, or the last event of the session. Nothing
    /// is received while bytes wait for the peer, so the time when it took some of them counts as
    /// well.
    pub fn last_activity(&mut self) -> Instant {
        self.ops.slot().last_activity
    }

    /// Returns how long until the connection has been idle for `span`, or `None` if it has been.
    pub(crate) fn idle_left(&mut self, span: Duration) -> Option<Duration> {
        let left = span.checked_sub(self.now.since(self.last_activity()))?;
        (!left.is_zero()).then_some(left)
    }

    /// Returns the session, and the buffer that it encodes into. All bytes in the buffer are sent
    /// together once the handler returns.
    pub fn session(&mut self) -> (&mut H::Session, &mut Vec<u8>) {
        self.sent += 1;
        self.ops.session()
    }

    /// Returns the session, to read its state.
    pub fn protocol(&mut self) -> &H::Session {
        self.ops.session().0
    }

    /// Returns the bytes of this call that are sent once the handler returns.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.ops.session().1
    }

    /// Sends `bytes` once the handler returns. All sends of one call leave together.
    pub fn send(&mut self, bytes: &[u8]) {
        self.sent += 1;
        self.out().extend_from_slice(bytes);
    }

    /// Sends `bytes` now, after all earlier sends of this call. Returns how many bytes the kernel
    /// has taken, and how many wait in this process.
    pub fn send_now(&mut self, bytes: &[u8]) -> SendOutcome {
        self.sent += 1;
        self.ops.send_now(bytes)
    }

    /// Sends `parts` now, after all earlier sends of this call. If the peer does not read, a shared
    /// part waits as a pointer.
    pub(crate) fn send_parts(&mut self, parts: &[SendPart<'_>]) {
        self.ops.send_parts(parts);
    }

    /// Sends the bytes that `source` makes while the peer reads them: none of them wait here.
    pub(crate) fn send_source(&mut self, source: Box<dyn ByteSource>) {
        self.sent += 1;
        self.ops.send_source(source);
    }

    /// Returns the number of bytes that wait in this process because the peer does not read. While
    /// there are any, nothing is received.
    pub fn pending_bytes(&self) -> usize {
        self.ops.pending_bytes()
    }

    /// Closes the connection once the handler returns: hands the sent bytes to the kernel, for
    /// `close_timeout` at most, and then sends FIN.
    ///
    /// If the peer's bytes have not all been received by then, Linux sends RST instead (RFC 2525,
    /// 2.17). RST can overtake the last bytes sent and destroy them. A protocol whose last bytes
    /// must arrive calls [`Self::finish`] and lets the peer close first, or sets a timeout for it.
    pub fn close(&mut self) {
        self.ops.close();
    }

    /// Sends FIN once the handler returns and the kernel has taken the sent bytes. The peer's bytes
    /// are still received.
    pub fn finish(&mut self) {
        self.ops.finish();
    }

    /// Closes the connection with RST once the handler returns.
    pub fn reset(&mut self) {
        self.ops.reset();
    }

    /// Calls [`Handler::timeout`] after `span`, at most 8.4 ms (a tick of the wheel) late. Replaces
    /// an earlier timeout.
    pub fn set_timeout(&mut self, span: Duration) {
        self.set_timeout_at(self.now + span);
    }

    /// Cancels the timeout.
    pub fn clear_timeout(&mut self) {
        self.set_timeout_at(Instant::FAR);
    }

    fn set_timeout_at(&mut self, moment: Instant) {
        let slot = self.ops.slot();
        slot.timeout = moment;
        let deadline = slot.deadline(self.idle_timeout);
        self.ops.set_deadline(deadline);
    }

    /// Returns the time of the current call.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the peer's address; makes a system call.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.ops.peer_addr()
    }

    /// Returns the local address; makes a system call.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.ops.local_addr()
    }

    /// Sends a message to a connection of any core, which may be this one. If that connection has
    /// ended, [`Handler::undelivered`] receives it.
    ///
    /// # Errors
    /// Returns the message if `mailbox_max` messages wait for that core.
    pub fn send_message(
        &mut self,
        to: ConnectionId,
        message: H::Message,
    ) -> Result<(), H::Message> {
        self.ops.post(to, message, MessagePriority::Bulk)
    }

    /// Sends a message like [`Self::send_message`], but is never refused: for messages that keep a
    /// protocol's state correct. Messages from one core to another arrive in order.
    pub fn send_unbounded(&mut self, to: ConnectionId, message: H::Message) {
        // A control message is never refused.
        let _ = self.ops.post(to, message, MessagePriority::Control);
    }

    /// Subscribes to `topic`: the connection receives all later publications. A second subscription
    /// makes a second membership with its own copies. All memberships end with the connection.
    pub fn subscribe(&mut self, topic: &str, subscription: Subscription) -> Membership {
        debug_assert!(subscription.intercepts || !self.is_detached(), "it cannot be written to");
        let Fanout { hub, rules, .. } = &mut *self.fanout;
        let memberships = &mut self.ops.slot().memberships;
        hub.subscribe(memberships, self.id.key(), topic, subscription, || rules.of(topic))
    }

    /// Ends a membership. The cost does not depend on the number of members.
    pub fn unsubscribe(&mut self, membership: Membership) {
        let memberships = &mut self.ops.slot().memberships;
        self.fanout.hub.unsubscribe(memberships, self.id.key(), membership);
    }

    /// Ends all memberships of the connection.
    pub fn unsubscribe_all(&mut self) {
        self.fanout.hub.unsubscribe_all(&mut self.ops.slot().memberships);
    }

    /// Publishes to the topic's subscribers on every core, except to `except`. Bytes sent to this
    /// connection in the current call leave before its own copy. Publications of one core arrive in
    /// order.
    pub fn publish(&mut self, publication: Publication, except: Option<ConnectionId>) {
        self.fanout.publish(&Arc::new(publication), except);
    }

    /// Publishes to the topic's subscribers on this core only.
    pub fn publish_here(&mut self, publication: &Arc<Publication>) {
        self.fanout.publish_here(publication, None);
    }

    /// Begins a connection without a socket on this core at the end of the turn; [`Handler::open`]
    /// learns its name. Messages, timeouts and intercepted publications reach it like any other
    /// connection. [`Self::close`] ends it, and so does the server's end. It has no idle timeout
    /// and counts towards none of the server's limits: a handler that begins such connections
    /// limits them itself, as channels limit their long-poll sessions.
    pub fn spawn(&mut self, state: H::State) {
        self.spawned.push(state);
    }

    /// Reports whether the connection never had a socket: [`Self::spawn`] began it.
    pub fn is_detached(&mut self) -> bool {
        // The engine cannot say: any connection is without a socket when it has ended.
        self.ops.slot().is_detached
    }

    /// Reports whether the server drains: between
    /// [`RunningServer::drain`](crate::RunningServer::drain) and
    /// [`RunningServer::resume`](crate::RunningServer::resume).
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Returns the addresses of other nodes that take this client, while the server drains. Clients
    /// are told different ones first, so that they spread over the nodes. Empty if the server
    /// shares no topics.
    pub fn other_nodes(&self) -> impl Iterator<Item = &str> {
        let count = self.other_nodes.len();
        let first = self.id.key().index() as usize % count.max(1);
        let nodes = self.other_nodes.iter().cycle().skip(first).take(count);
        nodes.map(|address| &**address)
    }

    /// Returns the number of cores of the server.
    pub fn cores(&self) -> usize {
        self.fanout.cores()
    }
}

/// The operations of a connection that depend on its driver, without the driver's type, so that
/// handlers are not generic over it.
pub(crate) trait ConnectionOps<H: Handler> {
    fn slot(&mut self) -> &mut Slot<H::State>;
    fn session(&mut self) -> (&mut H::Session, &mut Vec<u8>);
    fn send_now(&mut self, bytes: &[u8]) -> SendOutcome;
    fn send_parts(&mut self, parts: &[SendPart<'_>]);
    fn send_source(&mut self, source: Box<dyn ByteSource>);
    fn pending_bytes(&self) -> usize;
    fn set_deadline(&mut self, deadline: Deadline);
    fn close(&mut self);
    fn finish(&mut self);
    fn reset(&mut self);
    fn peer_addr(&self) -> Option<SocketAddr>;
    fn local_addr(&self) -> Option<SocketAddr>;
    fn post(
        &mut self,
        to: ConnectionId,
        message: H::Message,
        priority: MessagePriority,
    ) -> Result<(), H::Message>;
}

impl<H, D, A> ConnectionOps<H> for Conn<'_, D, A>
where
    H: Handler,
    D: ServerDriver<Payload = H::Message>,
    A: App<D, Session = H::Session, State = Slot<H::State>>,
{
    fn slot(&mut self) -> &mut Slot<H::State> {
        self.state()
    }

    fn session(&mut self) -> (&mut H::Session, &mut Vec<u8>) {
        self.session()
    }

    fn send_now(&mut self, bytes: &[u8]) -> SendOutcome {
        self.send_now(bytes)
    }

    fn send_parts(&mut self, parts: &[SendPart<'_>]) {
        self.send_parts(parts);
    }

    fn send_source(&mut self, source: Box<dyn ByteSource>) {
        self.send_source(source);
    }

    fn pending_bytes(&self) -> usize {
        self.pending_bytes()
    }

    fn set_deadline(&mut self, deadline: Deadline) {
        self.set_deadline(deadline);
    }

    fn close(&mut self) {
        self.close();
    }

    fn finish(&mut self) {
        self.finish();
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer_addr()
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr()
    }

    fn post(
        &mut self,
        to: ConnectionId,
        message: H::Message,
        priority: MessagePriority,
    ) -> Result<(), H::Message> {
        let message = CoreMessage::to_connection(to, message);
        self.send_message(to.core(), message, priority).map_err(CoreMessage::refused)
    }
}
