//! The user's HTTP requests: each is sent, and its answer awaited.
//!
//! A user has one connection at a time. The first request opens one, and the next ones use it as
//! long as the server keeps it. `connect` closes it before it opens its own.

mod memory;
mod response;

use std::time::Duration;

use throng_base::Instant;
use throng_engine::{CloseReason, Deadline};
use throng_proto::http::{HttpClient, HttpRequestHead, write_field};

use super::request::HttpRequest;
use crate::program::{MessagePattern, ProtocolOp, UnsendablePart};
use crate::protocols::session::UserSession;
use crate::user::context::{SocketStatus, StepOutcome, UserAction, UserContext};
use crate::user::encoder::{Encoder, as_text};
use crate::user::error::ErrorKind;
use crate::user::record::{Record, Sample};
use crate::user::requests;
use crate::user::state::{Link, Packed, UserWait};
use crate::user::trace::Payload;
use crate::user::user_op::UserOp;

pub(crate) use memory::HttpMemory;
pub(crate) use response::{answered, unasked, violated};

impl UserOp for HttpRequest {
    /// Sends a request on the connection that the last one has left, or opens a new one for it.
    fn begin(&self, cx: &mut UserContext<'_>) -> StepOutcome {
        let is_ours = cx.session.http().is_some();
        match cx.socket {
            SocketStatus::Open if is_ours => {
                requests::sent(cx);
                keep_state_before(cx, self);
                cx.user.message_from = cx.now;
                cx.wait_until(Deadline::Coarse(cx.now + self.timeout));
                send_request(cx, self, true)
            }
            SocketStatus::Absent => {
                requests::sent(cx);
                dial(cx, self, (0, false), cx.now);
                StepOutcome::Wait
            }
            SocketStatus::Open | SocketStatus::Blocked | SocketStatus::Busy => {
                requests::close_before(cx, false);
                StepOutcome::Wait
            }
        }
    }

    fn timed_out(&self, cx: &mut UserContext<'_>, _: u32) -> StepOutcome {
        response::timed_out(cx)
    }

    fn closed_error(&self) -> ErrorKind {
        ErrorKind::HttpClosed
    }

    fn note_part(&self, cx: &mut UserContext<'_>, kind: ErrorKind) {
        response::note_part(cx, kind);
    }

    /// Handles an established connection: the request leaves.
    fn connected(&self, cx: &mut UserContext<'_>) -> StepOutcome {
        let wait = cx.user.wait();
        let is_retry = matches!(wait, Some(UserWait::RequestConnect { is_retry: true, .. }));
        // The time before a retry is none of the connect's.
        let dialed_at = cx.user.memory.known_http().and_then(|http| http.dialed_at);
        let from = dialed_at.filter(|_| is_retry).unwrap_or(cx.user.intended);
        let timing = cx.timing();
        cx.user.clear_unanswered();
        cx.user.message_from = cx.now;
        cx.user.set_link(Link::OfRequests);
        cx.record(Record::RequestConnected { from, timing });
        send_request(cx, self, false)
    }

    /// Connects from another source port. It does not count as another connect, and the time-out
    /// goes on.
    fn connect_again(&self, cx: &mut UserContext<'_>, tries: u8, is_retry: bool) -> StepOutcome {
        let asked_at = cx.user.memory.known_http().and_then(|http| http.asked_at);
        // The first connect of a request begins with its time-out.
        let asked_at = asked_at.unwrap_or(cx.user.message_from);
        dial(cx, self, (tries, is_retry), asked_at);
        StepOutcome::Wait
    }

    fn answered_by_end(&self, cx: &mut UserContext<'_>) -> bool {
        let finished = cx.session.http().and_then(HttpClient::finish);
        let response = finished.as_ref().and_then(|finished| finished.response());
        response.map(|response| answered(cx, &response)).is_some()
    }

    /// Returns when the request was sent, if the server had closed the connection before, and has
    /// not answered by a single byte (RFC 9112 section 9.3.1).
    fn retried_from(&self, cx: &mut UserContext<'_>, reason: CloseReason) -> Option<Instant> {
        let (_, number) = cx.asked::<Self>()?;
        let is_servers = matches!(reason, CloseReason::Finished | CloseReason::Failed(_));
        let has_begun = cx.session.http().is_some_and(|client| client.has_begun());
        let may_be_sent_again = number == REUSED && is_servers && !has_begun;
        (may_be_sent_again && self.is_idempotent()).then_some(cx.user.message_from)
    }

    /// Opens a new connection for the request. Its time-out goes on.
    fn retry(&self, cx: &mut UserContext<'_>, asked_at: Instant) -> StepOutcome {
        cx.count(|c| c.http_retried += 1);
        let before = cx.user.memory.known_http().and_then(|http| http.before.take());
        if let Some((counter, prng)) = before {
            (cx.user.counter, cx.user.prng) = (counter, prng);
        }
        dial(cx, self, (0, true), asked_at);
        StepOutcome::Wait
    }
}

impl ProtocolOp for HttpRequest {
    fn describe(&self, shown: &dyn Fn(&[u8]) -> String) -> String {
        self.expected.describe(shown)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }

    fn response(&self) -> Option<&MessagePattern> {
        self.expected.body.as_ref()
    }
}

/// The number of a request on a connection that an earlier one has used; that of another is 0.
const REUSED: u32 = 1;

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
fn dial(
    cx: &mut UserContext<'_>,
    request: &HttpRequest,
    (tries, is_retry): (u8, bool),
    asked_at: Instant,
) {
    debug_assert_eq!(cx.user.link(), Link::Uncounted, "there is a connection");
    if tries == 0 {
        cx.count(|c| c.connects_started += 1);
    }
    if tries > 0 || is_retry {
        let http = cx.user.memory.http();
        (http.asked_at, http.dialed_at) = (Some(asked_at), Some(cx.now));
    } else if let Some(http) = cx.user.memory.known_http() {
        // That of an earlier request is over.
        http.asked_at = None;
    }
    cx.user.set_wait(UserWait::RequestConnect { tries, is_retry });
    cx.user.clear_unanswered();
    cx.user.inbox = None;
    cx.user.message_from = cx.now;
    cx.user.flags.set_opening(false);
    *cx.session = UserSession::http_client();
    cx.act(UserAction::Connect { measures_arrivals: true });
    cx.wait_until(Deadline::Coarse(asked_at + request.timeout));
}

/// Writes the request of the present step, unless one of its values would break it. Its time-out
/// runs already.
fn send_request(cx: &mut UserContext<'_>, request: &HttpRequest, is_reused: bool) -> StepOutcome {
    let program = cx.rules.program;
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
    let number = Packed::new(if is_reused { REUSED } else { 0 });
    cx.user.set_wait(UserWait::Reply { number });
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
