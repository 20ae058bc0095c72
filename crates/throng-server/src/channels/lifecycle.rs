//! Runs the callbacks of channels, and ends channels and connections.

use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_proto::phoenix::{self, FrameKind, Vsn};

use super::channel::{ErasedChannel, Info, LeaveReason};
use super::client::{ChannelHandler, Client, GOING_AWAY};
use super::client_state::{JoinedChannel, Mode};
use super::core_state::Owner;
use super::frame;
use super::longpoll::session;
use super::socket::Socket;

/// The outcome of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallbackOutcome {
    Continue,
    Stop,
    Crashed,
}

impl ChannelHandler {
    /// Passes a message to a channel, from itself or from elsewhere.
    pub(super) fn info(&mut self, conn: &mut Client<'_>, topic: &str, serial: u32, info: Info) {
        let Some(vsn) = conn.state().mode.vsn() else { return drop_shielded(info) };
        if conn.state().find(topic).is_none_or(|joined| joined.serial != serial) {
            return drop_shielded(info);
        }
        let Some(mut joined) = conn.state().take(topic) else { return };
        let outcome = self.call(conn, vsn, &mut joined, None, |channel, socket| {
            channel.handle_info(info, socket);
        });
        self.apply_outcome(conn, vsn, joined, outcome);
    }

    pub(super) fn run_infos(&mut self, conn: &mut Client<'_>) {
        while let Some((topic, serial, info)) = self.core.infos.pop() {
            self.info(conn, &topic, serial, info);
        }
    }

    /// Runs one callback of a channel that was taken out.
    pub(super) fn call(
        &mut self,
        conn: &mut Client<'_>,
        vsn: Vsn,
        joined: &mut JoinedChannel,
        push_ref: Option<&str>,
        callback: impl FnOnce(&mut dyn ErasedChannel, &mut Socket<'_>),
    ) -> CallbackOutcome {
        let JoinedChannel { channel, topic, join_ref, serial, .. } = joined;
        let mut socket = Socket {
            conn: conn.reborrow(),
            core: &mut self.core,
            vsn,
            topic,
            join_ref,
            serial: *serial,
            push_ref,
            is_member: true,
            stops: false,
        };
        let ran = catch_unwind(AssertUnwindSafe(|| callback(&mut **channel, &mut socket)));
        let (stops, sent) = (socket.stops, socket.conn.sent);
        conn.sent += sent;
        match ran {
            Ok(()) if stops => CallbackOutcome::Stop,
            Ok(()) => CallbackOutcome::Continue,
            Err(panic) => {
                drop_shielded(panic);
                self.core.counters.channel_crashes += 1;
                CallbackOutcome::Crashed
            }
        }
    }

    /// Puts back a channel after a callback, or ends it.
    pub(super) fn apply_outcome(
        &mut self,
        conn: &mut Client<'_>,
        vsn: Vsn,
        joined: JoinedChannel,
        outcome: CallbackOutcome,
    ) {
        match outcome {
            CallbackOutcome::Continue => conn.state().put(joined),
            CallbackOutcome::Stop => self.finish(conn, vsn, joined, LeaveReason::Stopped),
            CallbackOutcome::Crashed => self.crashed(conn, vsn, joined),
        }
    }

    /// Ends a channel in order: sends `phx_close`, then calls `terminate`.
    pub(super) fn finish(
        &mut self,
        conn: &mut Client<'_>,
        vsn: Vsn,
        mut joined: JoinedChannel,
        why: LeaveReason,
    ) {
        self.write(conn, |out| {
            phoenix::channel_closed(vsn, joined.join_ref.as_deref(), &joined.topic.name, out);
            Ok(FrameKind::Text)
        });
        self.terminate(conn, vsn, &mut joined, why);
        self.forget(conn, joined);
    }

    /// Calls `terminate`. A panic in it has no further effect.
    pub(super) fn terminate(
        &mut self,
        conn: &mut Client<'_>,
        vsn: Vsn,
        joined: &mut JoinedChannel,
        why: LeaveReason,
    ) {
        self.call(conn, vsn, joined, None, |channel, socket| {
            socket.is_member = false;
            channel.terminate(why, socket);
        });
    }

    /// Drops a channel with its membership and its presences.
    pub(super) fn forget(&mut self, conn: &mut Client<'_>, joined: JoinedChannel) {
        let JoinedChannel { channel, topic, membership, serial, .. } = joined;
        self.core.counters.channels -= 1;
        conn.unsubscribe(membership);
        self.core.presence.untrack_all(&Owner::new(conn.id(), serial));
        drop_shielded(channel);
        self.core.topics.release(topic);
    }

    /// Ends the channels and closes the connection with this code.
    pub(crate) fn end(&mut self, conn: &mut Client<'_>, code: u16, why: LeaveReason) {
        // For the channels the transport is gone already: what they send is dropped.
        let mark = frame::mark(conn);
        self.end_channels(conn, why);
        drop(frame::cut(conn, mark));
        conn.state().mode = Mode::Closing;
        conn.clear_timeout();
        if conn.state().is_poll() {
            session::close(conn, why);
            return conn.close();
        }
        let (session, out) = conn.session();
        session.close(code, "", out);
    }

    /// Ends a long-poll session for which too much waits.
    pub(crate) fn overflow(&mut self, conn: &mut Client<'_>) {
        self.end(conn, GOING_AWAY, LeaveReason::Closed);
    }

    pub(super) fn end_channels(&mut self, conn: &mut Client<'_>, why: LeaveReason) {
        let Some(vsn) = conn.state().mode.vsn() else { return };
        while let Some(mut joined) = conn.state().take_any() {
            self.terminate(conn, vsn, &mut joined, why);
            self.forget(conn, joined);
        }
        self.run_infos(conn);
    }

    pub(super) fn crashed(&mut self, conn: &mut Client<'_>, vsn: Vsn, joined: JoinedChannel) {
        self.write(conn, |out| {
            phoenix::channel_crashed(vsn, joined.join_ref.as_deref(), &joined.topic.name, out);
            Ok(FrameKind::Text)
        });
        self.forget(conn, joined);
    }
}

/// Drops a value and catches a panic, even one of a panic's payload.
pub(super) fn drop_shielded<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // The payload of a panic may panic, too, when it is dropped.
        std::mem::forget(panic);
    }
}
