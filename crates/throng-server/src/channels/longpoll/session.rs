//! The session's side of long-polling, which stays on one core.

use std::rc::Rc;
use std::time::Duration;

use throng_base::Instant;
use throng_proto::phoenix::json;
use throng_proto::phoenix::longpoll::{Claim, PostFrame, parse_post as posts_of};

use super::exchange::{AnswerBody, Requester, SessionAnswer, SessionCommand, SessionRequest};
use super::inbox::{Entry, Inbox, Text};
use super::memory::Memory;
use super::permits::SessionPermit;
use crate::channels::channel::LeaveReason;
use crate::channels::client::{ChannelHandler, Client};
use crate::channels::client_state::Mode;
use crate::channels::frame;
use crate::channels::message::{ChannelMessage, ChannelMessageKind};
use crate::channels::presence_list::Pieces;

/// The state of a session beside its channels.
pub(crate) struct Poll {
    token: String,
    /// The poll that waits for messages, or the request that began the session.
    waiting: Option<Requester>,
    /// The messages for the next poll.
    pub(crate) inbox: Inbox,
    /// The time when the last poll was answered or began to wait.
    since: Instant,
    /// The time that a poll waits.
    window: Duration,
    /// The permit of this session.
    permit: SessionPermit,
}

impl Poll {
    /// Makes a session; `requester` receives its first answer.
    pub(crate) fn new(
        requester: Requester,
        window: Duration,
        permit: SessionPermit,
        memory: Rc<Memory>,
    ) -> Self {
        Self {
            token: String::new(),
            waiting: Some(requester),
            inbox: Inbox::new(memory),
            since: Instant::ZERO,
            window,
            permit,
        }
    }

    /// Returns how long the session lives without a poll.
    fn inactive(&self) -> Duration {
        self.window + self.window / 2
    }
}

/// Begins the session: answers its client with the token.
pub(crate) fn begin(handler: &mut ChannelHandler, conn: &mut Client<'_>) {
    let id = conn.id();
    let (core, session) = id.to_bits();
    let now = conn.now();
    // A token has 16 bits for the core, and a server has fewer cores than that.
    let claim = Claim { core: core as u16, session };
    let token = handler.core.tokens.issue(now, claim);
    let Some(poll) = poll(conn) else { return };
    poll.token = token;
    poll.permit.begun(id);
    answer(conn, 410);
}

/// Handles a request of the client.
pub(crate) fn handle_request(
    handler: &mut ChannelHandler,
    conn: &mut Client<'_>,
    SessionRequest { from, command }: SessionRequest,
) {
    if let Some(poll) = poll(conn) {
        poll.permit.used();
    }
    match command {
        SessionCommand::Poll => {
            // One poll at a time waits, the latest.
            answer(conn, 204);
            let now = conn.now();
            let Some(poll) = poll(conn) else { return };
            poll.waiting = Some(from);
            poll.since = now;
            let window = poll.window;
            conn.set_timeout(window);
        }
        SessionCommand::Post { content_type, body } => {
            let status = post(handler, conn, content_type.as_deref(), &body);
            send_answer(conn, from, AnswerBody { status, token: None, messages: Vec::new() });
        }
    }
}

/// Passes the messages of a body to the channels.
fn post(
    handler: &mut ChannelHandler,
    conn: &mut Client<'_>,
    content_type: Option<&str>,
    body: &[u8],
) -> u16 {
    let message_bytes_max = handler.core.config.limits.message_bytes_max;
    let mut scratch = std::mem::take(&mut handler.core.post_buffer);
    let status = match posts_of(content_type, body, &mut scratch) {
        Err(_) => 400,
        // A WebSocket would be closed with 1009 before the message is complete. Phoenix fails the
        // request as for any body that it cannot accept: it handles no part of it, and the client
        // begins anew.
        Ok(posts) if posts.clone().any(|post| post.len() > message_bytes_max) => {
            handler.core.counters.messages_too_large += 1;
            400
        }
        Ok(posts) => {
            for post in posts {
                let Mode::Poll(vsn) = conn.state().mode else { break };
                match post {
                    PostFrame::Text(text) => handler.text(conn, vsn, text),
                    PostFrame::Binary(bytes) => handler.binary(conn, vsn, bytes),
                }
            }
            // A text that is not a message ends the session.
            if matches!(conn.state().mode, Mode::Poll(_)) { 200 } else { 410 }
        }
    };
    frame::shrink(&mut scratch);
    handler.core.post_buffer = scratch;
    status
}

/// Keeps a message for the next answer.
pub(crate) fn push(conn: &mut Client<'_>, text: &str) {
    let mut string = Vec::new();
    json::write_string(text, &mut string);
    keep(conn, Entry::Text(Text::Own(string.into())));
}

/// Keeps a `presence_state` for the next answers.
pub(crate) fn push_list(conn: &mut Client<'_>, pieces: Pieces) {
    keep(conn, Entry::List(Box::new(pieces)));
}

/// Keeps an entry for the next answer. Without room for it, answers the waiting poll with what
/// there is. If no poll waits or that is not enough, the session has overflowed.
pub(crate) fn keep(conn: &mut Client<'_>, entry: Entry) {
    let Some(this) = poll(conn) else { return };
    let Err(entry) = this.inbox.push(entry) else { return };
    if this.waiting.is_some() && !this.inbox.is_empty() {
        answer(conn, 200);
    }
    if let Some(this) = poll(conn)
        && this.inbox.push(entry).is_err()
    {
        this.inbox.overflow();
    }
}

/// Handles the end of a connection whose poll waited.
pub(crate) fn client_disconnected(conn: &mut Client<'_>, from: Requester) {
    let now = conn.now();
    let Some(poll) = poll(conn) else { return };
    // The key of a connection has changed when it has ended. So its core and the number of its
    // request identify it.
    let is_it = |waiting: &mut Requester| {
        (waiting.connection.core(), waiting.request) == (from.connection.core(), from.request)
    };
    if poll.waiting.take_if(is_it).is_some() {
        poll.since = now;
        let inactive = poll.inactive();
        conn.set_timeout(inactive);
    }
}

/// Puts back the messages of an answer that has not reached its client, in front of all others.
pub(crate) fn messages_returned(conn: &mut Client<'_>, messages: Vec<Text>) {
    if let Some(poll) = poll(conn) {
        poll.inbox.put_back(messages);
    }
}

/// Answers the waiting poll if there are messages. Ends a session that has overflowed.
pub(crate) fn flush(handler: &mut ChannelHandler, conn: &mut Client<'_>) {
    let is_open = matches!(conn.state().mode, Mode::Poll(_));
    let Some(poll) = poll(conn) else { return };
    if poll.inbox.has_overflowed() && is_open {
        handler.core.counters.poll_overflows += 1;
        return handler.overflow(conn);
    }
    if poll.waiting.is_some() && !poll.inbox.is_empty() {
        answer(conn, 200);
    }
}

/// Answers the waiting poll when its time is over. Returns true if the session ends because it had
/// no poll for too long.
pub(crate) fn timeout(conn: &mut Client<'_>) -> bool {
    let now = conn.now();
    let Some(poll) = poll(conn) else { return false };
    if poll.waiting.is_none() {
        return now.since(poll.since) >= poll.inactive();
    }
    answer(conn, 204);
    false
}

/// Answers the waiting poll because the session has ended.
pub(crate) fn close(conn: &mut Client<'_>, why: LeaveReason) {
    let Some(from) = poll(conn).and_then(|poll| poll.waiting.take()) else { return };
    if why == LeaveReason::Draining {
        // 410 without a token: the client must not begin another session here.
        send_answer(conn, from, AnswerBody { status: 410, token: None, messages: Vec::new() });
    } else {
        conn.send_unbounded(
            from.connection,
            ChannelMessage(ChannelMessageKind::SessionGone { request: from.request }),
        );
    }
}

/// Answers the waiting poll, if there is one, with all messages.
fn answer(conn: &mut Client<'_>, status: u16) {
    let now = conn.now();
    let Some(poll) = poll(conn) else { return };
    let Some(from) = poll.waiting.take() else { return };
    let messages = poll.inbox.take();
    let body = AnswerBody { status, token: Some(poll.token.clone()), messages };
    poll.since = now;
    let inactive = poll.inactive();
    conn.set_timeout(inactive);
    send_answer(conn, from, body);
}

fn send_answer(conn: &mut Client<'_>, to: Requester, body: AnswerBody) {
    let answer = SessionAnswer { request: to.request, session: conn.id(), body };
    conn.send_unbounded(to.connection, ChannelMessage(ChannelMessageKind::Answer(answer)));
}

fn poll<'c>(conn: &'c mut Client<'_>) -> Option<&'c mut Poll> {
    conn.state().extra.as_mut()?.poll.as_deref_mut()
}
