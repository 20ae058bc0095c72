//! The side of the client's connections, which come and go.

use std::rc::Rc;

use throng_engine::SendPart;
use throng_proto::http::{Headers, Request, query_pairs};
use throng_proto::phoenix::longpoll;

use super::{AnswerBody, Requester, SessionAnswer, SessionCommand, SessionRequest, Text};
use crate::ConnectionId;
use crate::channels::config::Transport;
use crate::channels::conn::{ClientState, Mode};
use crate::channels::handler::{ChannelHandler, Client};
use crate::channels::http::{Welcome, admit, answer, answer_in_parts, is_of_our_site};
use crate::channels::longpoll::Poll;
use crate::channels::message::{ChannelMessage, ChannelMessageKind};

/// A poll that can be looked at again.
pub(crate) struct StoredPoll {
    target: String,
    headers: String,
    /// Whom it is for.
    session: ConnectionId,
}

/// Takes a request up: it is answered now, or when its session does so.
///
/// Every request is asked where it comes from, not only the first of a session: a page that got hold of a token is
/// still of another site.
pub(crate) fn request(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: &Request<'_>) {
    if !is_of_our_site(&handler.core.config, request) {
        handler.core.counters.connects_refused += 1;
        return answer_json(conn, 403);
    }
    let what = match request.method {
        "GET" => SessionCommand::Poll,
        "POST" => SessionCommand::Post {
            content_type: request.header("content-type").map(str::to_owned),
            body: request.body.to_vec(),
        },
        "OPTIONS" => return preflight(conn, request),
        _ => return answer(conn, 400, &[], b""),
    };
    let is_poll = matches!(what, SessionCommand::Poll);
    let Some(session) = session(handler, conn, request) else {
        return if is_poll { begin(handler, conn, request) } else { answer_json(conn, 410) };
    };
    let from = ask(handler, conn, is_poll);
    if is_poll {
        conn.state().extra().kept = Some(Box::new(StoredPoll::new(request, session)));
    }
    conn.tell(session, ChannelMessage(ChannelMessageKind::Asked(SessionRequest { from, what })));
}

/// The session that was asked is gone.
pub(crate) fn gone(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: u32) {
    if !is_asking(conn, request) {
        return;
    }
    match conn.state().extra.take().and_then(|extra| extra.kept) {
        None => answer_json(conn, 410),
        Some(kept) => {
            let headers = Headers::new(&kept.headers);
            let target = &*kept.target;
            begin(handler, conn, &Request { method: "GET", target, headers, body: b"" });
        }
    }
}

/// Begins a session, which answers the request.
fn begin(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: &Request<'_>) {
    let config = &handler.core.config;
    let Ok(Welcome { vsn, connected, .. }) = admit(config, request, Transport::LongPoll) else {
        handler.core.counters.connects_refused += 1;
        return answer_json(conn, 403);
    };
    let Some(place) = config.poll_places.take(config.poll_sessions_max) else {
        handler.core.counters.poll_sessions_refused += 1;
        return answer_json(conn, 403);
    };
    handler.core.counters.poll_sessions += 1;
    let window = config.poll_window;
    let asker = ask(handler, conn, true);
    let poll = Poll::new(asker, window, place, Rc::clone(&handler.core.poll_memory));
    conn.spawn(ClientState::poll(vsn, connected, poll));
}

/// From here on the connection waits for its session.
fn ask(handler: &mut ChannelHandler, conn: &mut Client<'_>, is_poll: bool) -> Requester {
    let request = handler.core.next_serial();
    conn.state().mode = Mode::Asking { request, is_poll };
    // The session answers in time, but its core may not.
    let window = handler.core.config.poll_window;
    conn.set_timeout(if is_poll { window * 2 } else { window });
    Requester { connection: conn.id(), request }
}

/// Whether the connection waits for the answer to this request; not any more.
fn is_asking(conn: &mut Client<'_>, number: u32) -> bool {
    let is_asking = matches!(conn.state().mode, Mode::Asking { request, .. } if request == number);
    if is_asking {
        conn.state().mode = Mode::Http;
        conn.clear_timeout();
    }
    is_asking
}

impl StoredPoll {
    fn new(request: &Request<'_>, session: ConnectionId) -> Self {
        let mut headers = String::new();
        for (name, value) in request.headers.iter() {
            headers.extend([name, ": ", value, "\r\n"]);
        }
        Self { target: request.target.to_owned(), headers, session }
    }
}

/// The session has answered.
pub(crate) fn answered(conn: &mut Client<'_>, answered: SessionAnswer) {
    let SessionAnswer { request, session, said } = answered;
    if !is_asking(conn, request) {
        return give_back(said, |message| conn.tell(session, message));
    }
    conn.state().extra = None;
    let AnswerBody { status, token, messages } = said;
    if status == 400 {
        return answer(conn, 400, &HEADERS, b"");
    }
    send(conn, status, token.as_deref(), &messages);
}

/// Sends an answer. What its messages share with others is not copied for it.
fn send(conn: &mut Client<'_>, status: u16, token: Option<&str>, messages: &[Text]) {
    let mut begin = Vec::new();
    longpoll::begin_response(status, token, &mut begin);
    let mut parts = vec![SendPart::Own(&begin)];
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            parts.push(SendPart::Own(longpoll::MESSAGE_SEPARATOR));
        }
        parts.push(message.part());
    }
    parts.push(SendPart::Own(longpoll::end_of_response(token)));
    answer_in_parts(conn, 200, &HEADERS, &parts);
}

/// Nobody is there any more to be answered: the session keeps what it has said.
pub(crate) fn give_back(said: AnswerBody, tell: impl FnOnce(ChannelMessage)) {
    if !said.messages.is_empty() {
        tell(ChannelMessage(ChannelMessageKind::Returned { messages: said.messages }));
    }
}

/// The connection has ended: a session that would answer it is told so.
pub(crate) fn ended(conn: &mut Client<'_>) {
    let Mode::Asking { request, is_poll: true } = conn.state().mode else { return };
    let kept = conn.state().extra.as_ref().and_then(|extra| extra.kept.as_ref());
    // Without one it is the request that began the session, which is answered at once.
    let Some(session) = kept.map(|kept| kept.session) else { return };
    let from = Requester { connection: conn.id(), request };
    conn.tell(session, ChannelMessage(ChannelMessageKind::HungUp { from }));
}

/// The session has not answered in time.
pub(crate) fn timed_out(conn: &mut Client<'_>, is_poll: bool) {
    conn.state().mode = Mode::Http;
    answer_json(conn, if is_poll { 204 } else { 408 });
}

/// The session that a request's token names.
fn session(
    handler: &ChannelHandler,
    conn: &Client<'_>,
    request: &Request<'_>,
) -> Option<ConnectionId> {
    let mut params = query_pairs(request.query().unwrap_or_default());
    let token = params.find(|(name, _)| name == "token").map(|(_, value)| value);
    let token = token.as_deref().or_else(|| request.header("x-phoenix-longpoll-token"))?;
    let claim = handler.core.tokens.check(conn.now(), token).ok()?;
    ConnectionId::from_bits(claim.core.into(), claim.session, conn.cores())
}

/// A browser asks whether a page of another site may send requests here.
fn preflight(conn: &mut Client<'_>, request: &Request<'_>) {
    let allowed = request.header("access-control-request-headers").unwrap_or_default();
    let headers = [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-headers", allowed),
        ("access-control-allow-methods", "get, post, options"),
        ("access-control-max-age", "3600"),
    ];
    answer(conn, 200, &headers, b"");
}

fn answer_json(conn: &mut Client<'_>, status: u16) {
    let mut body = Vec::new();
    longpoll::write_response(status, None, [""; 0], &mut body);
    answer(conn, 200, &HEADERS, &body);
}

const HEADERS: [(&str, &str); 3] = [
    ("content-type", "application/json; charset=utf-8"),
    ("cache-control", "no-store"),
    ("access-control-allow-origin", "*"),
];
