//! What a handler may do with the connection that it is called for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throng_base::Instant;
use throng_driver::{Driver, MessagePriority};
use throng_engine::{ByteSource, Conn, SendOutcome, SendPart};
use throng_pubsub::{Membership, Memberships, Publication, Subscription};

use crate::app::ServerApp;
use crate::core_message::{CoreMessage, CoreMessageKind};
use crate::fanout::Fanout;
use crate::{ConnectionId, Handler};

/// One connection, for the length of one call of its [`Handler`].
pub struct Connection<'a, H: Handler> {
    pub(crate) wire: &'a mut dyn ConnectionOps<H>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) fanout: &'a mut Fanout,
    /// Connections without a socket that are to begin.
    pub(crate) spawned: &'a mut Vec<H::State>,
    /// The server is about to end.
    pub(crate) is_draining: bool,
    /// Sends of this call.
    pub(crate) sent: u64,
}

impl<H: Handler> Connection<'_, H> {
    /// Its name.
    pub fn id(&self) -> ConnectionId {
        self.wire.id()
    }

    /// The same connection for a shorter time.
    pub(crate) fn lend(&mut self) -> Connection<'_, H> {
        Connection {
            wire: &mut *self.wire,
            idle_timeout: self.idle_timeout,
            fanout: &mut *self.fanout,
            spawned: &mut *self.spawned,
            is_draining: self.is_draining,
            sent: 0,
        }
    }

    /// What the handler keeps for it.
    pub fn state(&mut self) -> &mut H::State {
        self.wire.state()
    }

    /// When it was last heard of: when the protocol had something to say, or it was accepted. Nothing is received while bytes
    /// wait for it, so that it has taken some of them counts as well.
    pub fn heard(&mut self) -> Instant {
        self.wire.heard()
    }

    /// Its protocol, and the buffer that takes what the protocol encodes: sent once the handler returns, all together.
    pub fn session(&mut self) -> (&mut H::Session, &mut Vec<u8>) {
        self.sent += 1;
        self.wire.session()
    }

    /// Its protocol, to ask.
    pub fn protocol(&mut self) -> &H::Session {
        self.wire.session().0
    }

    /// What has been sent in this call, and waits for the handler to return.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.wire.session().1
    }

    /// Sends `bytes` once the handler returns; all that one call sends leaves together.
    pub fn send(&mut self, bytes: &[u8]) {
        self.sent += 1;
        self.wire.send(bytes);
    }

    /// Sends `bytes`, and all that was sent before in this call, now. Says how many bytes the kernel has
    /// really taken, and how many wait in this process.
    pub fn send_now(&mut self, bytes: &[u8]) -> SendOutcome {
        self.sent += 1;
        self.wire.send_now(bytes)
    }

    /// Sends `parts` now, behind all that was sent before in this call. Of a shared part a pointer
    /// waits where the other end does not read.
    pub(crate) fn send_parts(&mut self, parts: &[SendPart<'_>]) {
        self.wire.send_parts(parts);
    }

    /// Sends what `source` makes, as the other end reads it: none of it waits here.
    pub(crate) fn send_source(&mut self, source: Box<dyn ByteSource>) {
        self.sent += 1;
        self.wire.send_source(source);
    }

    /// Bytes that wait in this process because the other end does not read. While there are any, nothing is
    /// received either.
    pub fn pending_bytes(&self) -> usize {
        self.wire.pending_bytes()
    }

    /// Ends the connection in order once the handler returns: what was sent is handed to the kernel first, for
    /// `close_timeout` at most, and then FIN.
    ///
    /// Bytes from the other end that have not been received by then make Linux send RST instead (RFC 2525, 2.17), and
    /// that can overtake what was sent last and destroy it. A protocol whose last word must arrive says [`Self::finish`] and
    /// lets the other end close first, or sets a timeout for it.
    pub fn close(&mut self) {
        self.wire.close();
    }

    /// Tells the other end, once the handler returns and what was sent is taken, that nothing more will be sent. What comes
    /// from it is still received.
    pub fn finish(&mut self) {
        self.wire.finish();
    }

    /// Ends the connection by RST once the handler returns.
    pub fn reset(&mut self) {
        self.wire.reset();
    }

    /// Has [`Handler::timeout`] called after `span`, at most 8.4 ms (a tick of the wheel) later; replaces what was set.
    pub fn set_timeout(&mut self, span: Duration) {
        self.wire.set_timeout(self.wire.now() + span, self.idle_timeout);
    }

    /// Forgets what [`Self::set_timeout`] set.
    pub fn clear_timeout(&mut self) {
        self.wire.set_timeout(Instant::FAR, self.idle_timeout);
    }

    /// The time, as of the present call.
    pub fn now(&self) -> Instant {
        self.wire.now()
    }

    /// The address of the other end; a system call.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.wire.peer_addr()
    }

    /// The address of this end; a system call.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.wire.local_addr()
    }

    /// Sends a message to a connection of any core, this one included. One that has ended by then loses it.
    ///
    /// # Errors
    /// The message again, when `mailbox_max` messages wait for that core.
    pub fn send_message(
        &mut self,
        to: ConnectionId,
        message: H::Message,
    ) -> Result<(), H::Message> {
        self.wire.send_message(to, message)
    }

    /// The same, never refused: for what keeps a protocol's state right. In order with what else this core says.
    pub fn tell(&mut self, to: ConnectionId, message: H::Message) {
        self.wire.tell(to, message);
    }

    /// Makes it a member of `topic`: it gets what is published from now on. Joining twice makes two memberships, each with
    /// its own copy. Its end ends them all.
    pub fn subscribe(&mut self, topic: &str, subscription: Subscription) -> Membership {
        debug_assert!(subscription.intercepts || !self.is_detached(), "it cannot be written to");
        let key = self.wire.id().key();
        let Fanout { hub, rules, .. } = &mut *self.fanout;
        hub.subscribe(self.wire.memberships(), key, topic, subscription, || rules.of(topic))
    }

    /// Ends a membership: nothing published is told to it any more. Costs the same however many members there are.
    pub fn unsubscribe(&mut self, membership: Membership) {
        let key = self.wire.id().key();
        self.fanout.hub.unsubscribe(self.wire.memberships(), key, membership);
    }

    /// Ends all its memberships.
    pub fn unsubscribe_all(&mut self) {
        self.fanout.hub.unsubscribe_all(self.wire.memberships());
    }

    /// Publishes to the members of its topic on every core, but not to `except`. What this connection is sent in the present
    /// call leaves before its own copy does; what one core publishes arrives in order.
    pub fn publish(&mut self, publication: Publication, except: Option<ConnectionId>) {
        self.fanout.publish(&Arc::new(publication), except);
    }

    /// Publishes to the members of its topic on this core alone.
    pub fn publish_here(&mut self, publication: &Arc<Publication>) {
        self.fanout.publish_here(publication, None);
    }

    /// Begins a connection without a socket on this core, at the end of the turn: [`Handler::open`] tells its name.
    /// Messages, timeouts and intercepted publications reach it like any other; [`Self::close`] ends it, and so does
    /// the server's end. It has no idle timeout and counts towards none of the server's limits: a handler that begins
    /// some has a limit of its own for them, as the channels have for their long-poll sessions.
    pub fn spawn(&mut self, own: H::State) {
        self.spawned.push(own);
    }

    /// Whether it never had a socket: [`Self::spawn`] began it.
    pub fn is_detached(&mut self) -> bool {
        self.wire.is_detached()
    }

    /// Whether the server is about to end: between [`Server::drain`](crate::Server::drain) and
    /// [`Server::resume`](crate::Server::resume).
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// How many cores the server has.
    pub fn cores(&self) -> usize {
        self.fanout.cores()
    }
}

/// A connection with the driver behind it out of sight, so that handlers are not generic over it.
pub(crate) trait ConnectionOps<H: Handler> {
    fn id(&self) -> ConnectionId;
    fn state(&mut self) -> &mut H::State;
    fn heard(&mut self) -> Instant;
    fn session(&mut self) -> (&mut H::Session, &mut Vec<u8>);
    fn memberships(&mut self) -> &mut Memberships;
    fn is_detached(&mut self) -> bool;
    fn send(&mut self, bytes: &[u8]);
    fn send_now(&mut self, bytes: &[u8]) -> SendOutcome;
    fn send_parts(&mut self, parts: &[SendPart<'_>]);
    fn send_source(&mut self, source: Box<dyn ByteSource>);
    fn pending_bytes(&self) -> usize;
    fn close(&mut self);
    fn finish(&mut self);
    fn reset(&mut self);
    fn set_timeout(&mut self, moment: Instant, idle_timeout: Option<Duration>);
    fn now(&self) -> Instant;
    fn peer_addr(&self) -> Option<SocketAddr>;
    fn local_addr(&self) -> Option<SocketAddr>;
    fn send_message(&mut self, to: ConnectionId, message: H::Message) -> Result<(), H::Message>;
    fn tell(&mut self, to: ConnectionId, message: H::Message);
}

impl<H, D> ConnectionOps<H> for Conn<'_, D, ServerApp<H, D>>
where
    H: Handler,
    D: Driver<Mail = CoreMessage<H::Message>>,
{
    fn id(&self) -> ConnectionId {
        ConnectionId::new(self.core(), self.key())
    }

    fn state(&mut self) -> &mut H::State {
        &mut self.state().own
    }

    fn heard(&mut self) -> Instant {
        self.state().heard
    }

    fn session(&mut self) -> (&mut H::Session, &mut Vec<u8>) {
        self.session()
    }

    fn memberships(&mut self) -> &mut Memberships {
        &mut self.state().memberships
    }

    fn is_detached(&mut self) -> bool {
        // Not the connection's own word: at the end of any there is no socket.
        self.state().is_detached
    }

    fn send(&mut self, bytes: &[u8]) {
        self.send(bytes);
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

    fn close(&mut self) {
        self.close();
    }

    fn finish(&mut self) {
        self.finish();
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn set_timeout(&mut self, moment: Instant, idle_timeout: Option<Duration>) {
        let slot = self.state();
        slot.timeout = moment;
        let deadline = slot.deadline(idle_timeout);
        self.set_deadline(deadline);
    }

    fn now(&self) -> Instant {
        self.now()
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer_addr()
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr()
    }

    fn send_message(&mut self, to: ConnectionId, message: H::Message) -> Result<(), H::Message> {
        let mail = CoreMessage(CoreMessageKind::Message(to.key(), message));
        self.send_message(to.core(), mail, MessagePriority::Bulk).map_err(|full| match full.0.0 {
            CoreMessageKind::Message(_, message) => message,
            _ => unreachable!("what comes back is what was sent"),
        })
    }

    fn tell(&mut self, to: ConnectionId, message: H::Message) {
        // Control mail is never refused.
        let _ = self.send_message(
            to.core(),
            CoreMessage(CoreMessageKind::Message(to.key(), message)),
            MessagePriority::Control,
        );
    }
}
