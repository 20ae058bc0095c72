//! What a user makes of the answer to its HTTP request, of a part of it, and of bytes that answer
//! none.

use throng_engine::Deadline;
use throng_proto::http::{CookieJar, CookieRefusal, HttpResponse, ResponseError, cookie_name};

use super::REUSED;
use crate::program::OnError;
use crate::protocols::http::request::{HttpDifference, HttpRequest};
use crate::user::context::{StepOutcome, UserAction, UserContext};
use crate::user::error::ErrorKind;
use crate::user::failure;
use crate::user::named;
use crate::user::record::{Record, Sample};
use crate::user::requests;
use crate::user::state::{Link, UserWait};
use crate::user::trace::{Payload, TraceEvent};

/// Handles a complete answer.
pub(crate) fn answered(cx: &mut UserContext<'_>, response: &HttpResponse<'_>) -> StepOutcome {
    let Some((request, number)) = cx.asked::<HttpRequest>() else { return StepOutcome::Wait };
    trace_response(cx, response);
    if number == REUSED && cx.timing().is_before(cx.user.message_from) {
        return answered_before(cx, response);
    }
    let program = cx.rules.program;
    store_cookies(cx, request, response);
    let scope = cx.user.scope_of_answer(program, cx.rules.seed);
    let difference = request.expected.difference(response, scope, &mut cx.encoder.comparison);
    let (from, sent, timing) = (cx.user.intended, cx.user.message_from, cx.timing());
    let status = response.head.status;
    let kept = &request.expected.status_captures;
    kept.store(status, |slot, value| cx.user.memory.store(slot, value));
    cx.record(Record::HttpAnswered { status, difference, from, sent, timing });
    // A server that answers before it has the whole request may never read the rest of it.
    let is_early = cx.is_blocked();
    if is_early {
        cx.trace(TraceEvent::AnsweredEarly);
    }
    let keeps = response.keep_alive && !request.traits.closes && !is_early;
    let is_unasked = note_surplus(cx, response.surplus);
    if let Some(difference) = difference {
        if is_unasked {
            cx.count_error(ErrorKind::HttpUnasked);
        }
        let kind = match difference {
            HttpDifference::Status => ErrorKind::HttpStatus,
            HttpDifference::Body | HttpDifference::Field(_) => ErrorKind::HttpMismatch,
        };
        cx.sample(Sample::HttpResponse(kind, difference, *response));
        return fail(cx, kind, keeps);
    }
    request.expected.store_captures(response, |slot, value| cx.user.memory.store(slot, value));
    named::succeed(cx, Some(from), timing);
    cx.user.intended = cx.now;
    cx.user.set_wait(UserWait::Yield);
    cx.wait_until(Deadline::Never);
    if is_unasked {
        // The step itself has succeeded.
        return failure::fail_step_then(cx, ErrorKind::HttpUnasked, close_after);
    }
    if keeps { StepOutcome::Next } else { close_after(cx) }
}

fn trace_response(cx: &mut UserContext<'_>, response: &HttpResponse<'_>) {
    if cx.is_traced {
        let head = response.head.head();
        cx.trace(TraceEvent::Received(Payload::Head(head.as_bytes())));
        if response.body_bytes > 0 {
            let body = Payload::Body(response.body, response.body_bytes);
            cx.trace(TraceEvent::Received(body));
        }
    }
}

fn store_cookies(cx: &mut UserContext<'_>, request: &HttpRequest, response: &HttpResponse<'_>) {
    let headers = response.head.headers;
    for (field, (name, cookie)) in headers.iter().enumerate() {
        if !name.eq_ignore_ascii_case("set-cookie") {
            continue;
        }
        // A user that keeps no cookie owns no jar.
        let mut first = CookieJar::new();
        let known = cx.user.memory.known_http();
        let jar = known.map_or(&mut first, |http| &mut http.cookies);
        // The server would not know a cookie whose bytes have changed.
        let refusal = match response.is_verbatim(field, cookie) {
            true => jar.store(cookie, request.cookie_path(), headers.get("date"), cx.now),
            false => Some(CookieRefusal::NotUtf8),
        };
        if !first.is_empty() {
            cx.user.memory.http().cookies = first;
        }
        if let Some(refusal) = refusal {
            cx.trace(TraceEvent::CookieRefused(cookie_name(cookie), refusal));
        }
    }
}

/// Handles an answer that arrived before the present request was sent: it is that to no request of
/// the user.
fn answered_before(cx: &mut UserContext<'_>, response: &HttpResponse<'_>) -> StepOutcome {
    if response.head.status == REQUEST_TIMEOUT {
        // The server has closed the connection as idle. The end of it decides what follows.
        cx.trace(TraceEvent::IdleEnded);
        cx.act(UserAction::CloseFinished);
        return StepOutcome::Wait;
    }
    let bytes = [response.head.head().as_bytes(), response.body].concat();
    cx.sample(Sample::HttpUnasked(&bytes));
    fail(cx, ErrorKind::HttpUnasked, false)
}

/// Handles bytes that answer no request: the connection cannot be used again.
pub(crate) fn unasked(cx: &mut UserContext<'_>, bytes: &[u8]) -> StepOutcome {
    if cx.user.link() != Link::OfRequests || cx.user.is_closing_or_stopped() {
        return StepOutcome::Wait;
    }
    if !note_surplus(cx, bytes) {
        cx.act(UserAction::Close);
        return StepOutcome::Wait;
    }
    let flow = failure::fail_beside(cx, ErrorKind::HttpUnasked);
    if cx.on_error() == OnError::Continue {
        cx.act(UserAction::Close);
    }
    flow
}

/// Notes bytes that answer no request. Returns true if they are an error.
fn note_surplus(cx: &mut UserContext<'_>, bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return false;
    }
    if is_request_timeout(bytes) {
        cx.trace(TraceEvent::IdleEnded);
        return false;
    }
    cx.sample(Sample::HttpUnasked(bytes));
    true
}

/// Reports whether these bytes are a 408, which a server may send before it closes an idle
/// connection (RFC 9110 section 15.5.9), or its beginning.
fn is_request_timeout(bytes: &[u8]) -> bool {
    let status = bytes.strip_prefix(b"HTTP/1.1 ").or_else(|| bytes.strip_prefix(b"HTTP/1.0 "));
    let digits = status.map(|status| &status[..status.len().min(3)]);
    digits.is_some_and(|digits| !digits.is_empty() && b"408".starts_with(digits))
}

/// Handles an answer that cannot be read.
pub(crate) fn violated(cx: &mut UserContext<'_>, error: ResponseError, head: &[u8]) -> StepOutcome {
    if cx.asked::<HttpRequest>().is_none() {
        return StepOutcome::Wait;
    }
    let is_limit = error.is_limit();
    let kind = if is_limit { ErrorKind::HttpTooLarge } else { ErrorKind::HttpViolation };
    cx.sample(Sample::HttpViolation(kind, error, head));
    fail(cx, kind, false)
}

/// Handles the time-out of an answer.
pub(crate) fn timed_out(cx: &mut UserContext<'_>) -> StepOutcome {
    note_part(cx, ErrorKind::HttpTimeout);
    fail(cx, ErrorKind::HttpTimeout, false)
}

/// Notes what has arrived of an answer that an error of this kind ends.
pub(crate) fn note_part(cx: &mut UserContext<'_>, kind: ErrorKind) {
    let Some(part) = cx.session.http().and_then(|client| client.part()) else { return };
    if part.has_begun() {
        (cx.actions)(UserAction::Count(|c| c.http_incomplete += 1));
    }
    let scope = cx.user.scope_of_answer(cx.rules.program, cx.rules.seed);
    let record = Record::Sample(Sample::HttpPart(kind, part), scope);
    (cx.actions)(UserAction::Record(cx.user.step_pc(), record));
}

/// Fails the present step. Unless the server `keeps` the connection for another request, the user
/// closes it.
pub(super) fn fail(cx: &mut UserContext<'_>, kind: ErrorKind, keeps: bool) -> StepOutcome {
    cx.wait_until(Deadline::Never);
    failure::fail_step_then(cx, kind, if keeps { failure::go_on } else { close_after })
}

/// Closes the connection after the answer of the present step. The user then goes on.
fn close_after(cx: &mut UserContext<'_>) -> StepOutcome {
    requests::close_before(cx, true);
    StepOutcome::Wait
}

/// The status 408.
const REQUEST_TIMEOUT: u16 = 408;
