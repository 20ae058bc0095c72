//! The connections' side of long-polling: requests arrive on any core.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use throng_driver::network_of;
use throng_engine::SendPart;
use throng_proto::http::{Headers, Request, query_pairs};
use throng_proto::phoenix::longpoll;

use super::exchange::{
    AnswerBody, Requester, SessionAnswer, SessionCommand, SessionRequest, StoredPoll,
};
use super::inbox::Text;
use super::session::Poll;
use crate::ConnectionId;
use crate::channels::client::{ChannelHandler, Client};
use crate::channels::client_state::{ClientState, Mode};
use crate::channels::config::Transport;
use crate::channels::http::{Admission, admit, answer, answer_in_parts, is_origin_allowed};
use crate::channels::message::{ChannelMessage, ChannelMessageKind};

/// Handles a request: answers it now, or forwards it to its session.
///
/// The origin of every request is checked, not only of a session's first: a page that has obtained
/// a token is still of another site.
pub(crate) fn request(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: &Request<'_>) {
    if !is_origin_allowed(&handler.core.config, request) {
        handler.core.counters.connects_refused += 1;
        return answer_json(conn, 403);
    }
    let command = match request.method {
        "GET" => SessionCommand::Poll,
        "POST" => SessionCommand::Post {
            content_type: request.header("content-type").map(str::to_owned),
            body: request.body.to_vec(),
        },
        "OPTIONS" => return preflight(conn, request),
        _ => return answer(conn, 400, &[], b""),
    };
    let is_poll = matches!(command, SessionCommand::Poll);
    let Some(session) = session(handler, conn, request) else {
        return if is_poll { begin(handler, conn, request) } else { answer_json(conn, 410) };
    };
    let from = await_session(handler, conn, is_poll);
    if is_poll {
        conn.state().extra().stored_poll = Some(Box::new(StoredPoll::new(request, session)));
    }
    conn.send_unbounded(
        session,
        ChannelMessage(ChannelMessageKind::Request(SessionRequest { from, command })),
    );
}

/// Handles the message that the session of a request has ended.
pub(crate) fn session_gone(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: u32) {
    if !take_awaiting(conn, request) {
        return;
    }
    match conn.state().extra.take().and_then(|extra| extra.stored_poll) {
        None => answer_json(conn, 410),
        Some(poll) => {
            let headers = Headers::new(&poll.headers);
            let target = &*poll.target;
            begin(handler, conn, &Request { method: "GET", target, headers, body: b"" });
        }
    }
}

/// Begins a session, which answers the request.
fn begin(handler: &mut ChannelHandler, conn: &mut Client<'_>, request: &Request<'_>) {
    let config = &handler.core.config;
    let Ok(Admission { vsn, grant, .. }) = admit(config, request, Transport::LongPoll) else {
        handler.core.counters.connects_refused += 1;
        return answer_json(conn, 403);
    };
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let from = conn.peer_addr().map_or(unknown, |address| network_of(address.ip()));
    let Some((permit, ended)) = config.poll_permits.take(from, config.poll_sessions_max) else {
        handler.core.counters.poll_sessions_refused += 1;
        return answer_json(conn, 403);
    };
    if let Some(session) = ended {
        handler.core.counters.poll_sessions_refused += 1;
        conn.send_unbounded(session, ChannelMessage(ChannelMessageKind::SessionReplaced));
    }
    handler.core.counters.poll_sessions += 1;
    let window = config.poll_window;
    let requester = await_session(handler, conn, true);
    let poll = Poll::new(requester, window, permit, Rc::clone(&handler.core.poll_memory));
    conn.spawn(ClientState::poll(vsn, grant, poll));
}

/// Lets the connection wait for the answer of its session.
fn await_session(handler: &mut ChannelHandler, conn: &mut Client<'_>, is_poll: bool) -> Requester {
    let request = handler.core.next_serial();
    conn.state().mode = Mode::AwaitingSession { request, is_poll };
    // The session answers in time, but its core may be busy.
    let window = handler.core.config.poll_window;
    conn.set_timeout(if is_poll { window * 2 } else { window });
    Requester { connection: conn.id(), request }
}

/// Ends the wait for the answer to this request. Returns false if the connection does not wait for
/// it.
fn take_awaiting(conn: &mut Client<'_>, number: u32) -> bool {
    let is_awaiting =
        matches!(conn.state().mode, Mode::AwaitingSession { request, .. } if request == number);
    if is_awaiting {
        conn.state().mode = Mode::Http;
        conn.clear_timeout();
    }
    is_awaiting
}

/// Sends the session's answer to the client.
pub(crate) fn handle_answer(conn: &mut Client<'_>, answer_message: SessionAnswer) {
    let SessionAnswer { request, session, body } = answer_message;
    if !take_awaiting(conn, request) {
        return give_back(body, |message| conn.send_unbounded(session, message));
    }
    conn.state().extra = None;
    let AnswerBody { status, token, messages } = body;
    if status == 400 {
        return answer(conn, 400, &HEADERS, b"");
    }
    send(conn, status, token.as_deref(), &messages);
}

/// Sends an answer. Messages that are shared with other sessions are not copied.
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

/// Returns the messages of an answer to the session, because the client's connection has ended.
pub(crate) fn give_back(body: AnswerBody, send: impl FnOnce(ChannelMessage)) {
    if !body.messages.is_empty() {
        send(ChannelMessage(ChannelMessageKind::MessagesReturned { messages: body.messages }));
    }
}

/// Notifies the session of a waiting poll that its connection has ended.
pub(crate) fn connection_ended(conn: &mut Client<'_>) {
    let Mode::AwaitingSession { request, is_poll: true } = conn.state().mode else { return };
    let stored = conn.state().extra.as_ref().and_then(|extra| extra.stored_poll.as_ref());
    // Without a stored poll, the request began the session, which answers it at once.
    let Some(session) = stored.map(|poll| poll.session) else { return };
    let from = Requester { connection: conn.id(), request };
    conn.send_unbounded(session, ChannelMessage(ChannelMessageKind::ClientDisconnected { from }));
}

/// Answers a request whose session has not answered in time.
pub(crate) fn timed_out(conn: &mut Client<'_>, is_poll: bool) {
    conn.state().mode = Mode::Http;
    answer_json(conn, if is_poll { 204 } else { 408 });
}

/// Returns the session that a request's token names.
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

/// Answers a browser that checks whether a page of another site may send requests here.
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
