//! Long-polling: a session without a connection of its own, and requests that come and go.
//!
//! A session is a connection without a socket, on the core where its first request came in. Later requests may come in on
//! any core; the token that they carry names the session. A request crosses to the session as a message, and so
//! does the answer back:
//!
//! 1. a request without a token begins a session, which answers 410 and a token;
//! 2. a GET waits for messages, for one window (10 s) at most, and is answered 200 with them or 204 without;
//! 3. a POST brings the client's messages, and is answered 200 once the channels have had them;
//! 4. a session that nobody polls for one and a half windows ends; a GET that still names it begins another, and is answered
//!    410 again.
//!
//! A connection that ends while its GET waits tells the session, and messages of an answer that does not find its connection go
//! back to the session: what is said while a client is between two connections waits for the later one.
//!
//! A session keeps a broadcast as a pointer to the text that all sessions of its version share, and
//! answers are sent from that text. What a session keeps is bounded, what all sessions of a core
//! keep together is bounded ([`Memory`]), and so is the number of sessions ([`Places`]).
//!
//! Answers are HTTP 200 with the real status in a JSON body, so that browsers let pages of other sites read it.

mod inbox;
mod memory;
mod request;
mod session;

pub(crate) use inbox::{Entry, Text};
pub(crate) use memory::{Memory, SessionPermits};
pub(crate) use request::{StoredPoll, handle_answer, connection_ended, give_back, session_gone, request, timed_out};
pub(crate) use session::{
    Poll, handle_request, begin, close, flush, client_disconnected, keep, push, push_list, messages_returned, timeout,
};

use crate::ConnectionId;

/// A request on its way to a session.
pub(crate) struct SessionRequest {
    /// Who waits for the answer, and its number for the request.
    pub(crate) from: Requester,
    pub(crate) command: SessionCommand,
}

/// A connection that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) connection: ConnectionId,
    pub(crate) request: u32,
}

/// What a client wants of its session.
pub(crate) enum SessionCommand {
    Poll,
    Post { content_type: Option<String>, body: Vec<u8> },
}

/// An answer on its way to the client.
pub(crate) struct SessionAnswer {
    pub(crate) request: u32,
    /// Who gets the messages back if the client is gone.
    pub(crate) session: ConnectionId,
    pub(crate) body: AnswerBody,
}

/// What an answer says. The client's side makes bytes of it.
pub(crate) struct AnswerBody {
    /// 400 is HTTP's own: Phoenix fails there. Any other stands in the body.
    pub(crate) status: u16,
    pub(crate) token: Option<String>,
    pub(crate) messages: Vec<Text>,
}
