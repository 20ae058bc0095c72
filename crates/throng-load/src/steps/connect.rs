//! `connect`: opens the connection.

use throng_driver::Errno;
use throng_proto::websocket::{ClientHandshake, DeflateAgreement, Violation};

use super::prelude::*;
use crate::program::{LimitedAction, UnsendablePart};
use crate::protocols::MessageForm;
use crate::protocols::ws::upgrade::{self, UpgradeOptions};
use crate::user::Payload;
use crate::user::context::{SocketStatus, UserAction};
use crate::user::encoder::as_text;
use crate::user::error::{ConnectFailure, violation_error};
use crate::user::named;
use crate::user::outcomes;
use crate::user::record::Sample;
use crate::user::requests;
use crate::user::state::Link;

pub(crate) const KIND: StepKind =
    StepKind::new("connect", "connect: {timeout: 5s}", StepForm::OptionalValue(read))
        .measured(StepMeasure::As(Operation::Connect));

#[derive(Debug)]
pub(super) struct Connect {
    pub(super) timeout: Duration,
    /// Options of the WebSocket upgrade; `None` on plain TCP.
    pub(super) upgrade: Option<UpgradeOptions>,
}

impl Action for Connect {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.acts(LimitedAction::Connect);
        if flow.is_connected() {
            flow.error("already connected", "add a `close` before it");
        }
        flow.connect();
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.limit(LimitedAction::Connect);
        let handshake = self.upgrade.as_ref().map_or(0, |upgrade| compiler.handshake(upgrade));
        let op = Op::Connect { timeout_ns: nanos(self.timeout), handshake };
        let latency = Some(Operation::Connect);
        compiler.push(op, OpFacts { latency, ..OpFacts::of_role(OpRole::Separates) });
    }
}

fn read(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Box<dyn Action>> {
    let over_websocket = reader.protocol.handshake.is_some();
    let Some(node) = value else {
        let upgrade = over_websocket.then(UpgradeOptions::default);
        return Some(Box::new(Connect { timeout: TIMEOUT_DEFAULT, upgrade }));
    };
    let fields = reader.fields(node, "`connect`", reader.protocol.row().connect_keys)?;
    let timeout = read_timeout(reader, fields.get("timeout"), TIMEOUT_DEFAULT);
    let upgrade = if over_websocket { Some(upgrade::read(reader, &fields)?) } else { None };
    Some(Box::new(Connect { timeout: timeout?, upgrade }))
}

/// Default time-out of a connect.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// Opens the connection.
pub(crate) fn begin(cx: &mut UserContext<'_>, timeout_ns: u64, handshake: u32) -> StepOutcome {
    if cx.socket != SocketStatus::Absent && cx.user.link() == Link::OfRequests {
        // A user has one connection at a time.
        requests::close_before(cx, false);
        return StepOutcome::Wait;
    }
    if cx.socket != SocketStatus::Absent {
        // The scenario reader rejects this, except after an error: then the user keeps its open
        // connection.
        return StepOutcome::Next;
    }
    cx.count(|c| c.connects_started += 1);
    cx.user.handshake = handshake as u16;
    dial(cx, timeout_ns, 0)
}

fn dial(cx: &mut UserContext<'_>, timeout_ns: u64, tries: u8) -> StepOutcome {
    debug_assert_eq!(cx.user.link(), Link::Uncounted, "there is a connection");
    let protocol = cx.protocol().row();
    let user = &mut *cx.user;
    user.set_wait(UserWait::Connect { tries });
    // State of the previous connection does not apply to this one.
    user.clear_unanswered();
    user.inbox = None;
    user.flags.begin_connection();
    user.message_from = cx.now;
    *cx.session = (protocol.session)();
    let has_answers = protocol.messages != MessageForm::Bytes;
    cx.act(UserAction::Connect { measures_arrivals: cx.class().expects || has_answers });
    cx.wait_until(Deadline::Coarse(cx.now + Duration::from_nanos(timeout_ns)));
    StepOutcome::Wait
}

/// Connects from another source port, if that may help. It does not count as another connect.
pub(crate) fn try_another_port(cx: &mut UserContext<'_>, errno: Errno) -> Option<StepOutcome> {
    let is_short_of_ports = errno == Errno::ADDR_IN_USE || errno == Errno::ADDR_NOT_AVAILABLE;
    let tries_max = if is_short_of_ports { cx.rules.port_tries_max } else { 0 };
    match (cx.user.wait()?, cx.op()) {
        (UserWait::Connect { tries }, Op::Connect { timeout_ns, .. }) if tries < tries_max => {
            Some(dial(cx, timeout_ns, tries + 1))
        }
        (UserWait::RequestConnect { tries, is_retry }, _) if tries < tries_max => {
            Some(cx.protocol_op()?.connect_again(cx, tries + 1, is_retry))
        }
        _ => None,
    }
}

/// Handles an established TCP connection on which the handshake of TLS begins.
pub(crate) fn opening(cx: &mut UserContext<'_>) {
    let (from, timing) = (cx.user.intended, cx.timing());
    cx.record(Record::Done { operation: Operation::Tcp, from, timing });
    cx.count(|c| c.tls_started += 1);
    cx.user.flags.set_opening(true);
    cx.user.message_from = timing.arrived_at();
}

/// Handles an established connection: the connect has succeeded, or the upgrade begins.
pub(crate) fn opened(cx: &mut UserContext<'_>) -> StepOutcome {
    let is_over_tls = cx.user.flags.is_opening();
    if is_over_tls {
        cx.user.flags.set_opening(false);
        let (from, timing) = (cx.user.message_from, cx.timing());
        cx.record(Record::Done { operation: Operation::Tls, from, timing });
    }
    if let Some(UserWait::RequestConnect { .. }) = cx.user.wait() {
        return cx.protocol_op().map_or(StepOutcome::Wait, |op| op.connected(cx));
    }
    if cx.protocol().handshake.is_none() {
        return succeed(cx);
    }
    cx.user.set_wait(UserWait::Upgrade);
    cx.count(|c| c.upgrades_started += 1);
    if !cx.handshake().deflate.is_empty() {
        cx.count(|c| c.deflate_offered += 1);
    }
    if !is_over_tls {
        let (from, timing) = (cx.user.intended, cx.timing());
        cx.record(Record::Done { operation: Operation::Tcp, from, timing });
    }
    send_upgrade_request(cx)
}

/// Sends the upgrade request, unless one of its values would break it.
fn send_upgrade_request(cx: &mut UserContext<'_>) -> StepOutcome {
    let handshake = cx.handshake();
    let text = &mut cx.encoder.text;
    text.clear();
    let (path_end, ends, key) = cx.user.render(cx.rules.program, |vars| {
        handshake.write_path(vars, text);
        let path_end = text.len();
        // The header values follow the path in the same buffer.
        let ends: Vec<usize> = handshake
            .headers
            .iter()
            .map(|(_, value)| {
                value.render(vars, text);
                text.len()
            })
            .collect();
        let mut key = [0; 16];
        vars.prng.fill(&mut key);
        (path_end, ends, key)
    });
    let begins = std::iter::once(path_end).chain(ends.iter().copied());
    let values = begins.zip(&ends).map(|(begin, end)| &cx.encoder.text[begin..*end]);
    let names = handshake.headers.iter().map(|(name, _)| name.as_str());
    let fields = names.zip(values);
    if handshake.has_raw {
        let path = &cx.encoder.text[..path_end];
        if let Some(part) = UnsendablePart::find(path, fields.clone()) {
            cx.sample(Sample::Unsendable(&part));
            return refused(cx, ConnectFailure::BadValue);
        }
    }
    let written = as_text(&cx.encoder.text);
    let mut headers: Vec<_> = fields.map(|(name, value)| (name, as_text(value))).collect();
    let cookies = &mut cx.encoder.event;
    cookies.clear();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
        cx.user.memory.write_cookies(&written[..path_end], cx.now, cookies);
        if !cookies.is_empty() {
            headers.push(("cookie", as_text(cookies)));
        }
    }
    let subprotocols: Vec<_> = handshake.subprotocols.iter().map(String::as_str).collect();
    let request = ClientHandshake {
        host: &handshake.host,
        path_and_query: &written[..path_end],
        headers: &headers,
        subprotocols: &subprotocols,
        deflate: &handshake.deflate,
        key,
    };
    let begin = cx.out.len();
    if let Some(client) = cx.session.client() {
        client.begin(&request, cx.out);
    }
    cx.trace_output(begin, |head| Payload::Head(head));
    StepOutcome::Wait
}

/// Handles the server's consent to the upgrade, with what it agreed to about compression.
pub(crate) fn upgraded(cx: &mut UserContext<'_>, deflate: Option<DeflateAgreement>) -> StepOutcome {
    if let Some(agreed) = deflate {
        cx.count(|c| c.deflate_agreed += 1);
        if agreed.server_takes_over {
            cx.count(|c| c.deflate_server_contexts += 1);
        }
        if agreed.client_takes_over {
            cx.count(|c| c.deflate_client_contexts += 1);
        }
    }
    if let Some(heartbeat) = cx.handshake().heartbeat {
        cx.session.set_heartbeat(cx.now + heartbeat);
    }
    succeed(cx)
}

fn succeed(cx: &mut UserContext<'_>) -> StepOutcome {
    let timing = cx.timing();
    let from = std::mem::replace(&mut cx.user.intended, cx.now);
    cx.user.clear_unanswered();
    cx.user.set_link(Link::Connected);
    cx.user.set_wait(UserWait::Yield);
    cx.record(Record::Connected { from, timing });
    named::succeed(cx, Some(from), timing);
    cx.wait_until(Deadline::Never);
    StepOutcome::Next
}

/// Counts a failed connect. The user waits for the socket to close, if there is one.
pub(crate) fn fail(cx: &mut UserContext<'_>, why: ConnectFailure) {
    let timed_out = matches!(
        why,
        ConnectFailure::Timeout
            | ConnectFailure::Tls(ErrorKind::TlsTimeout)
            | ConnectFailure::Errno(Errno::TIMED_OUT)
    );
    let is_upgrade = cx.user.wait() == Some(UserWait::Upgrade);
    let is_cut = matches!(
        why,
        ConnectFailure::Tls(ErrorKind::TlsClosed) | ConnectFailure::Errno(Errno::CONN_RESET)
    );
    if is_cut && cx.user.flags.is_opening() {
        let from = cx.user.message_from;
        cx.record(Record::HandshakeCut { why, from });
    }
    outcomes::fail_wait(cx, timed_out);
    cx.record(Record::ConnectFailed { why, is_upgrade });
    cx.user.set_wait(UserWait::CloseAfterFailedConnect);
    cx.user.set_erred();
}

/// Handles the time-out.
pub(crate) fn timed_out(cx: &mut UserContext<'_>) -> StepOutcome {
    let why = match cx.user.flags.is_opening() {
        true => ConnectFailure::Tls(ErrorKind::TlsTimeout),
        false => ConnectFailure::Timeout,
    };
    fail(cx, why);
    cx.act(UserAction::Reset);
    StepOutcome::Wait
}

/// Resets a socket that the kernel connected to itself (RFC 793 section 3.4, simultaneous open): no
/// server listens, and the kernel chose the target's own port as the source. An RST avoids
/// TIME-WAIT, which would keep the server from listening on that port again.
pub(crate) fn reset_self_connection(cx: &mut UserContext<'_>) -> StepOutcome {
    fail(cx, ConnectFailure::SelfConnected);
    cx.wait_until(Deadline::Never);
    cx.act(UserAction::Reset);
    StepOutcome::Wait
}

/// Handles the server's refusal of the upgrade.
pub(crate) fn refused(cx: &mut UserContext<'_>, why: ConnectFailure) -> StepOutcome {
    fail(cx, why);
    cx.wait_until(Deadline::Never);
    cx.act(UserAction::Close);
    StepOutcome::Wait
}

/// Handles a violation of the WebSocket protocol. `head` is the beginning of the answer to an
/// upgrade.
pub(crate) fn violated(
    cx: &mut UserContext<'_>,
    violation: Violation,
    head: Option<&[u8]>,
) -> StepOutcome {
    match cx.user.wait() {
        Some(UserWait::Upgrade) => {
            if let Some(head) = head {
                cx.sample(Sample::UpgradeViolation(violation, head));
            }
            refused(cx, ConnectFailure::Violation)
        }
        Some(UserWait::Close) => {
            cx.act(UserAction::Close);
            StepOutcome::Wait
        }
        _ => {
            if violation == Violation::HeldTooMuch {
                cx.count(|c| c.messages_incomplete += 1);
            }
            cx.sample(Sample::Violation(violation));
            cx.count_error(violation_error(violation));
            failure::close_faulty(cx)
        }
    }
}
