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
//! bytes that all sessions of a core keep together ([`memory::Memory`]), and the number of sessions
//! ([`permits::SessionPermits`]).
//!
//! Answers are HTTP 200 with the real status in a JSON body, so that browsers let pages of other
//! sites read it.

pub(crate) mod exchange;
pub(crate) mod inbox;
pub(crate) mod memory;
pub(crate) mod permits;
mod request;
pub(crate) mod session;

pub(crate) use request::{
    connection_ended, give_back, handle_answer, request, session_gone, timed_out,
};
pub(crate) use session::{
    begin, client_disconnected, close, flush, handle_request, messages_returned, timeout,
};
