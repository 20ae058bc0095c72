//! Long-polling: a session without a connection of its own, and requests on changing connections.
//!
//! A session is a connection without a socket, on the core that received its first request. Later
//! requests may arrive on any core; the token in them names the session. A request travels to the
//! session as a message, and so does the answer back:
//!
//! 1. a request without a token begins a session, which answers 410 and a token;
//! 2. a GET waits for messages, for one window (10 s) at most, and is answered 200 with them or 204
//!    without;
//! 3. a POST brings the client's messages, and is answered 200 once the channels have handled them;
//! 4. a session without a poll for one and a half windows ends; a GET that still names it begins
//!    another, and is answered 410 again.
//!
//! A connection that ends while its GET waits notifies the session. Messages of an answer that does
//! not find its connection go back to the session. So messages that are sent between two
//! connections of a client wait for the later one.
//!
//! A session keeps a broadcast as a pointer to the text that all sessions of its version share, and
//! answers are sent from that text. Three things are limited: the bytes that a session keeps, the
//! bytes that all sessions of a core keep together ([`Memory`]), and the number of sessions
//! ([`SessionPermits`]).
//!
//! Answers are HTTP 200 with the real status in a JSON body, so that browsers let pages of other
//! sites read it.

mod inbox;
mod memory;
mod request;
mod session;

pub(crate) use inbox::{Entry, Text};
pub(crate) use memory::{Memory, SessionPermits};
pub(crate) use request::{
    StoredPoll, connection_ended, give_back, handle_answer, request, session_gone, timed_out,
};
pub(crate) use session::{
    Poll, begin, client_disconnected, close, flush, handle_request, keep, messages_returned, push,
    push_list, timeout,
};

use crate::ConnectionId;

/// A request in flight to a session.
pub(crate) struct SessionRequest {
    /// The connection that waits for the answer, and the number of its request.
    pub(crate) from: Requester,
    pub(crate) command: SessionCommand,
}

/// A connection that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) connection: ConnectionId,
    pub(crate) request: u32,
}

/// The kind of a request, with its data.
pub(crate) enum SessionCommand {
    Poll,
    Post { content_type: Option<String>, body: Vec<u8> },
}

/// An answer in flight to the client.
pub(crate) struct SessionAnswer {
    pub(crate) request: u32,
    /// The session that gets the messages back if the client is gone.
    pub(crate) session: ConnectionId,
    pub(crate) body: AnswerBody,
}

/// The content of an answer. The core of the client's connection encodes it.
pub(crate) struct AnswerBody {
    /// The status. 400 is sent as HTTP's own, as in Phoenix; any other is in the JSON body.
    pub(crate) status: u16,
    pub(crate) token: Option<String>,
    pub(crate) messages: Vec<Text>,
}
