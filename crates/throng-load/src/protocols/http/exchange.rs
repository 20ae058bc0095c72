//! The user's HTTP requests: each is sent, and its answer awaited.
//!
//! A user has one connection at a time. The first request opens one, and the next ones use it as
//! long as the server keeps it. `connect` closes it before it opens its own.

mod memory;
mod response;

use throng_base::Instant;
use throng_engine::{CloseReason, Deadline};
use throng_proto::http::{HttpRequestHead, write_field};

use super::request::HttpRequest;
use crate::program::{Op, UnsendablePart};
use crate::user::context::{SocketStatus, StepOutcome, UserAction, UserContext};
use crate::user::encoder::{Encoder, as_text};
use crate::user::error::ErrorKind;
use crate::user::record::{Record, Sample};
use crate::user::session::UserSession;
use crate::user::state::{Link, UserWait};
use crate::user::trace::Payload;

pub(crate) use memory::HttpMemory;
pub(crate) use response::{answered, note_part, timed_out, unasked, violated};

/// Sends a request on the connection that the last one has left, or opens a new one for it.
pub(crate) fn begin(cx: &mut UserContext<'_>, request: u32) -> StepOutcome {
    let is_ours = cx.session.http().is_some();
    match cx.socket {
        SocketStatus::Open if is_ours => {
            cx.count(|c| c.http_started += 1);
            let request = cx.rules.program.http_request(request);
            keep_state_before(cx, request);
            cx.user.message_from = cx.now;
            cx.wait_until(Deadline::Coarse(cx.now + request.timeout));
            send_request(cx, true)
        }
        SocketStatus::Absent => {
            cx.count(|c| c.http_started += 1);
            dial(cx, request, (0, false), cx.now);
            StepOutcome::Wait
        }
        SocketStatus::Open | SocketStatus::Blocked | SocketStatus::Busy => {
            close_before(cx, false);
            StepOutcome::Wait
        }
    }
}

/// Keeps what rendering a request changes, if the request may have to be sent again.
fn keep_state_before(cx: &mut UserContext<'_>, request: &HttpRequest) {
    if request.is_idempotent() && request.traits.draws {
        cx.user.memory.http().before = Some((cx.user.counter, cx.user.prng));
    } else if let Some(http) = cx.user.memory.known_http() {
        // That of an earlier request is over.
        http.before = None;
    }
}

/// Opens a connection for a request whose time-out counts from `asked_at`; `is_retry` if the
/// request was sent then, on a connection that has ended.
fn dial(cx: &mut UserContext<'_>, request: u32, (tries, is_retry): (u8, bool), asked_at: Instant) {
    debug_assert_eq!(cx.user.link(), Link::Uncounted, "there is a connection");
    if tries == 0 {
        cx.count(|c| c.connects_started += 1);
    }
    if tries > 0 || is_retry {
        cx.user.memory.http().asked_at = Some(asked_at);
    } else if let Some(http) = cx.user.memory.known_http() {
        // That of an earlier request is over.
        http.asked_at = None;
    }
    let timeout = cx.rules.program.http_request(request).timeout;
    cx.user.set_wait(UserWait::HttpConnect { tries, is_retry });
    cx.user.clear_unanswered();
    cx.user.inbox = None;
    cx.user.message_from = cx.now;
    *cx.session = UserSession::http_client();
    cx.act(UserAction::Connect { measures_arrivals: true });
    cx.wait_until(Deadline::Coarse(asked_at + timeout));
}

/// Connects from another source port. It does not count as another connect, and the time-out goes
/// on.
pub(crate) fn dial_again(
    cx: &mut UserContext<'_>,
    request: u32,
    tries: u8,
    is_retry: bool,
) -> StepOutcome {
    let asked_at = cx.user.memory.known_http().and_then(|http| http.asked_at);
    // The first connect of a request begins with its time-out.
    let asked_at = asked_at.unwrap_or(cx.user.message_from);
    dial(cx, request, (tries, is_retry), asked_at);
    StepOutcome::Wait
}

/// Handles an established connection: the request leaves.
pub(crate) fn opened(cx: &mut UserContext<'_>) -> StepOutcome {
    let is_retry = matches!(cx.user.wait(), Some(UserWait::HttpConnect { is_retry: true, .. }));
    // The time before a retry is none of the connect's.
    let from = if is_retry { cx.user.message_from } else { cx.user.intended };
    let timing = cx.timing();
    cx.user.clear_unanswered();
    cx.user.message_from = cx.now;
    cx.user.set_link(Link::Http);
    cx.record(Record::HttpConnected { from, timing });
    send_request(cx, false)
}

/// Writes the request of the present step, unless one of its values would break it. Its time-out
/// runs already.
fn send_request(cx: &mut UserContext<'_>, is_reused: bool) -> StepOutcome {
    let Op::Http { request } = cx.op() else { return StepOutcome::Wait };
    let program = cx.rules.program;
    let request = program.http_request(request);
    cx.encoder.clear();
    let encoder = &mut *cx.encoder;
    let ends: Vec<usize> = cx.user.render(program, |scope| {
        request.path.render(scope, &mut encoder.topic);
        if let Some(body) = &request.body {
            body.render(scope, &mut encoder.payload);
        }
        // The values follow each other in one buffer.
        let values = request.headers.iter().map(|(_, value)| {
            value.render(scope, &mut encoder.text);
            encoder.text.len()
        });
        values.collect()
    });
    cx.user.set_wait(UserWait::Response { is_reused });
    if let Some(part) = find_unsendable(cx.encoder, request, &ends) {
        cx.sample(Sample::Unsendable(&part));
        return response::fail(cx, ErrorKind::BadValue, true);
    }
    if !request.traits.has_cookie {
        let encoder = &mut *cx.encoder;
        let path = as_text(&encoder.topic);
        cx.user.memory.write_cookies(path, cx.now, &mut encoder.event);
    }
    write_head(cx, request, &ends);
    let begin = cx.out.len();
    cx.out.extend_from_slice(&cx.encoder.payload);
    if cx.out.len() > begin {
        cx.trace_output(begin, |body| Payload::Bytes(body));
    }
    if let Some(client) = cx.session.http() {
        client.expect(request.method, request.expected.needs_body());
    }
    StepOutcome::Wait
}

/// Returns the own fields of a request whose parts the encoder has. Their values `end` at these
/// places.
fn own_fields<'a>(
    encoder: &'a Encoder,
    request: &'a HttpRequest,
    ends: &'a [usize],
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let begins = std::iter::once(0).chain(ends.iter().copied());
    let values = begins.zip(ends).map(|(begin, end)| &encoder.text[begin..*end]);
    request.headers.iter().map(|(name, _)| name.as_str()).zip(values)
}

/// Finds a part of the request that cannot be sent, where a value stands as it is.
fn find_unsendable(
    encoder: &Encoder,
    request: &HttpRequest,
    ends: &[usize],
) -> Option<UnsendablePart> {
    let fields = own_fields(encoder, request, ends);
    request.traits.has_raw.then(|| UnsendablePart::find(&encoder.topic, fields))?
}

/// Writes the head of a request whose parts the encoder has. The values of its own fields `end` at
/// these places.
fn write_head(cx: &mut UserContext<'_>, request: &HttpRequest, ends: &[usize]) {
    let encoder = &*cx.encoder;
    let begin = cx.out.len();
    let fields = own_fields(encoder, request, ends);
    let mut fields = fields.map(|(name, value)| (name, as_text(value)));
    let own_host = if request.traits.has_host { fields.next() } else { None };
    HttpRequestHead {
        method: request.method,
        path_and_query: as_text(&encoder.topic),
        host: own_host.map_or(&request.host, |(_, host)| host),
        content_length: request.needs_length().then_some(encoder.payload.len()),
    }
    .write(cx.out);
    if !request.traits.has_user_agent {
        write_field("user-agent", "throng", cx.out);
    }
    for (name, value) in fields {
        write_field(name, value, cx.out);
    }
    if !encoder.event.is_empty() {
        write_field("cookie", as_text(&encoder.event), cx.out);
    }
    cx.out.extend_from_slice(b"\r\n");
    cx.trace_output(begin, |head| Payload::Head(head));
}

/// Closes the connection of the last request. The user then goes on: with the next step if the
/// present one `is_done`, else with the present one.
pub(crate) fn close_before(cx: &mut UserContext<'_>, is_done: bool) {
    cx.user.set_wait(UserWait::HttpClose { is_done });
    cx.wait_until(Deadline::Never);
    cx.close();
}

/// Handles the server's FIN on a connection of requests. It ends an answer whose length it is; any
/// other answer is missing, and between two answers it means nothing. Returns false for any other
/// connection.
pub(crate) fn peer_finished(cx: &mut UserContext<'_>) -> bool {
    if cx.user.link() != Link::Http {
        return false;
    }
    let finished = cx.session.http().and_then(throng_proto::http::HttpClient::finish);
    let waits = matches!(cx.user.wait(), Some(UserWait::Response { .. }));
    match finished.as_ref().filter(|_| waits).and_then(|finished| finished.response()) {
        // It closes the connection, and goes on when that is done.
        Some(response) => _ = answered(cx, &response),
        // The end of the connection finds what has arrived of it.
        None => cx.act(UserAction::CloseFinished),
    }
    true
}

/// Returns the request to send again after the end of a connection, and the moment at which it was
/// sent: the server had closed the connection before, and has not answered by a single byte (RFC
/// 9112 section 9.3.1).
pub(crate) fn request_to_retry(
    cx: &mut UserContext<'_>,
    reason: CloseReason,
) -> Option<(u32, Instant)> {
    let (Some(UserWait::Response { is_reused: true }), Op::Http { request }) =
        (cx.user.wait(), cx.op())
    else {
        return None;
    };
    let is_servers = matches!(reason, CloseReason::Finished | CloseReason::Failed(_));
    let has_begun = cx.session.http().is_some_and(|client| client.has_begun());
    let is_idempotent = cx.rules.program.http_request(request).is_idempotent();
    (is_servers && !has_begun && is_idempotent).then_some((request, cx.user.message_from))
}

/// Opens a new connection, to send again the request that was sent at `asked_at`. Its time-out goes
/// on.
pub(crate) fn retry(cx: &mut UserContext<'_>, request: u32, asked_at: Instant) -> StepOutcome {
    cx.count(|c| c.http_retried += 1);
    let before = cx.user.memory.known_http().and_then(|http| http.before.take());
    if let Some((counter, prng)) = before {
        (cx.user.counter, cx.user.prng) = (counter, prng);
    }
    dial(cx, request, (0, true), asked_at);
    StepOutcome::Wait
}
