//! The side of the session, which stays.

use std::rc::Rc;
use std::time::Duration;

use throng_base::Instant;
use throng_proto::phoenix::json;
use throng_proto::phoenix::longpoll::{Claim, PostFrame, parse_post as posts_of};

use super::inbox::{Entry, Inbox, Text};
use super::memory::{Memory, Place};
use super::{AnswerBody, Requester, SessionAnswer, SessionCommand, SessionRequest};
use crate::channels::channel::LeaveReason;
use crate::channels::conn::Mode;
use crate::channels::frame;
use crate::channels::handler::{ChannelHandler, Client};
use crate::channels::list::Pieces;
use crate::channels::message::{ChannelMessage, ChannelMessageKind};

/// What a session keeps beside its channels.
pub(crate) struct Poll {
    token: String,
    /// The poll that waits for messages, or the request that began the session.
    waiting: Option<Requester>,
    /// What waits for the next poll.
    pub(crate) inbox: Inbox,
    /// When a poll was answered last, or began to wait.
    since: Instant,
    /// How long a poll waits.
    window: Duration,
    /// Among the sessions that the server may have.
    _place: Place,
}

impl Poll {
    /// A session that `asker` is to hear of.
    pub(crate) fn new(
        asker: Requester,
        window: Duration,
        place: Place,
        memory: Rc<Memory>,
    ) -> Self {
        Self {
            token: String::new(),
            waiting: Some(asker),
            inbox: Inbox::new(memory),
            since: Instant::ZERO,
            window,
            _place: place,
        }
    }

    /// How long the session lives when nobody polls.
    fn inactive(&self) -> Duration {
        self.window + self.window / 2
    }
}

/// The session begins: its client gets the token.
pub(crate) fn begin(handler: &mut ChannelHandler, conn: &mut Client<'_>) {
    let (core, session) = conn.id().to_bits();
    let now = conn.now();
    // A token has 16 bits for the core, and a server has fewer cores than that.
    let claim = Claim { core: core as u16, session };
    let token = handler.core.tokens.issue(now, claim);
    let Some(poll) = poll(conn) else { return };
    poll.token = token;
    answer(conn, 410);
}

/// A request has come.
pub(crate) fn asked(
    handler: &mut ChannelHandler,
    conn: &mut Client<'_>,
    SessionRequest { from, what }: SessionRequest,
) {
    match what {
        SessionCommand::Poll => {
            // One poll at a time waits, the last one.
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
            tell(conn, from, AnswerBody { status, token: None, messages: Vec::new() });
        }
    }
}

/// Hands the messages of a body to the channels.
fn post(
    handler: &mut ChannelHandler,
    conn: &mut Client<'_>,
    content_type: Option<&str>,
    body: &[u8],
) -> u16 {
    let message_bytes_max = handler.core.config.limits.message_bytes_max;
    let mut scratch = std::mem::take(&mut handler.core.posted);
    let status = match posts_of(content_type, body, &mut scratch) {
        Err(_) => 400,
        // A WebSocket would be closed (1009) before the message is whole. As with any body that cannot be taken, Phoenix
        // fails the request, nothing of it is heard, and the client begins anew.
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
            // One that is no message ends the session.
            if matches!(conn.state().mode, Mode::Poll(_)) { 200 } else { 410 }
        }
    };
    frame::tidy(&mut scratch);
    handler.core.posted = scratch;
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

/// Keeps an entry for the next answer. If there is no room for it, the poll that waits is answered
/// with what there is; if there is none or that is not enough, the session has overflowed.
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

/// The connection of this request has ended: nobody waits on it any more.
pub(crate) fn hung_up(conn: &mut Client<'_>, from: Requester) {
    let now = conn.now();
    let Some(poll) = poll(conn) else { return };
    // The key of a connection is another one by the time it has ended, so its core and the number of its request name it.
    let is_it = |waiting: &mut Requester| {
        (waiting.connection.core(), waiting.request) == (from.connection.core(), from.request)
    };
    if poll.waiting.take_if(is_it).is_some() {
        poll.since = now;
        let inactive = poll.inactive();
        conn.set_timeout(inactive);
    }
}

/// An answer has not reached its client: its messages are the first to be said again.
pub(crate) fn returned(conn: &mut Client<'_>, messages: Vec<Text>) {
    if let Some(poll) = poll(conn) {
        poll.inbox.put_back(messages);
    }
}

/// Answers the poll that waits if there is something to say. A session for which too much waits ends.
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

/// The time of the poll that waits is up, or nobody has polled for too long. True when the session is to end.
pub(crate) fn timeout(conn: &mut Client<'_>) -> bool {
    let now = conn.now();
    let Some(poll) = poll(conn) else { return false };
    if poll.waiting.is_none() {
        return now.since(poll.since) >= poll.inactive();
    }
    answer(conn, 204);
    false
}

/// The session has ended: the poll that waits is told so.
pub(crate) fn close(conn: &mut Client<'_>, why: LeaveReason) {
    let Some(from) = poll(conn).and_then(|poll| poll.waiting.take()) else { return };
    if why == LeaveReason::Draining {
        // No other session is to begin.
        tell(conn, from, AnswerBody { status: 410, token: None, messages: Vec::new() });
    } else {
        conn.tell(
            from.connection,
            ChannelMessage(ChannelMessageKind::Gone { request: from.request }),
        );
    }
}

/// Answers the poll that waits, if one does, with all that there is to say.
fn answer(conn: &mut Client<'_>, status: u16) {
    let now = conn.now();
    let Some(poll) = poll(conn) else { return };
    let Some(from) = poll.waiting.take() else { return };
    let messages = poll.inbox.take();
    let said = AnswerBody { status, token: Some(poll.token.clone()), messages };
    poll.since = now;
    let inactive = poll.inactive();
    conn.set_timeout(inactive);
    tell(conn, from, said);
}

fn tell(conn: &mut Client<'_>, to: Requester, said: AnswerBody) {
    let answer = SessionAnswer { request: to.request, session: conn.id(), said };
    conn.tell(to.connection, ChannelMessage(ChannelMessageKind::Answer(answer)));
}

fn poll<'c>(conn: &'c mut Client<'_>) -> Option<&'c mut Poll> {
    conn.state().extra.as_mut()?.poll.as_deref_mut()
}
