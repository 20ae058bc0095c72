//! `connect`: TCP, and on a WebSocket the upgrade.

use std::time::Duration;

use throng_driver::Errno;
use throng_engine::Deadline;
use throng_proto::websocket::{ClientHandshake, Violation};

use super::context::{SocketStatus, UserAction, UserContext};
use super::encoder::as_text;
use super::error::{ConnectFailure, ErrorKind};
use super::failure;
use super::flow::Flow;
use super::outcomes;
use super::record::{Record, Sample};
use super::session::UserSession;
use super::state::{Link, Wait};
use crate::program::Op;

/// Opens the connection.
pub(super) fn begin(cx: &mut UserContext<'_>, timeout_ns: u64, handshake: u32) -> Flow {
    if cx.socket != SocketStatus::Absent {
        // The scenario reader rejects this, except after an error: then the user keeps its open
        // connection.
        return Flow::Next;
    }
    cx.count(|c| c.connects_started += 1);
    cx.user.handshake = handshake as u16;
    dial(cx, timeout_ns, 0)
}

fn dial(cx: &mut UserContext<'_>, timeout_ns: u64, tries: u8) -> Flow {
    debug_assert_eq!(cx.user.link(), Link::Uncounted, "there is a connection");
    let is_tcp = cx.is_tcp();
    let user = &mut *cx.user;
    user.set_wait(Wait::Connect { tries });
    // State of the previous connection does not apply to this one.
    user.clear_unanswered();
    user.inbox = None;
    user.flags.set_receives_lookalikes(false);
    user.message_from = cx.now;
    if !is_tcp {
        *cx.session = UserSession::web_socket();
    }
    cx.act(UserAction::Connect { measures_arrivals: cx.class().expects || !is_tcp });
    cx.wait_until(Deadline::Coarse(cx.now + Duration::from_nanos(timeout_ns)));
    Flow::Wait
}

/// Connects from another source port, if that may help. It does not count as another connect.
pub(super) fn try_another_port(cx: &mut UserContext<'_>, errno: Errno) -> Option<Flow> {
    let is_short_of_ports = errno == Errno::ADDR_IN_USE || errno == Errno::ADDR_NOT_AVAILABLE;
    match (cx.user.wait()?, cx.op()) {
        (Wait::Connect { tries }, Op::Connect { timeout_ns, .. })
            if is_short_of_ports && tries < cx.rules.port_tries_max =>
        {
            Some(dial(cx, timeout_ns, tries + 1))
        }
        _ => None,
    }
}

/// Handles an established TCP connection: the connect has succeeded, or the upgrade begins.
pub(super) fn opened(cx: &mut UserContext<'_>) -> Flow {
    if cx.is_tcp() {
        return succeed(cx);
    }
    let (from, timing) = (cx.user.intended, cx.timing());
    cx.user.set_wait(Wait::Upgrade);
    cx.count(|c| c.upgrades_started += 1);
    cx.record(Record::TcpConnected { from, timing });
    send_upgrade_request(cx);
    Flow::Wait
}

fn send_upgrade_request(cx: &mut UserContext<'_>) {
    let handshake = cx.handshake();
    let text = &mut cx.encoder.text;
    text.clear();
    let (path_end, ends, key) = cx.user.render(|vars| {
        handshake.path.render(vars, text);
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
    let written = as_text(text);
    let begins = std::iter::once(path_end).chain(ends.iter().copied());
    let values = begins.zip(&ends).map(|(begin, end)| &written[begin..*end]);
    let names = handshake.headers.iter().map(|(name, _)| name.as_str());
    let headers: Vec<_> = names.zip(values).collect();
    let subprotocols: Vec<_> = handshake.subprotocols.iter().map(String::as_str).collect();
    let request = ClientHandshake {
        host: &handshake.host,
        path_and_query: &written[..path_end],
        headers: &headers,
        subprotocols: &subprotocols,
        deflate: handshake.deflate,
        key,
    };
    if let Some(client) = cx.session.client() {
        client.begin(&request, cx.out);
    }
}

/// Handles the server's consent to the upgrade.
pub(super) fn upgraded(cx: &mut UserContext<'_>) -> Flow {
    if let Some(heartbeat) = cx.handshake().heartbeat {
        cx.session.set_heartbeat(cx.now + heartbeat);
    }
    succeed(cx)
}

fn succeed(cx: &mut UserContext<'_>) -> Flow {
    let timing = cx.timing();
    let from = std::mem::replace(&mut cx.user.intended, cx.now);
    cx.user.clear_unanswered();
    cx.user.set_link(Link::Connected);
    cx.user.set_wait(Wait::Yield);
    cx.record(Record::Connected { from, timing });
    cx.wait_until(Deadline::Never);
    Flow::Next
}

/// Counts a failed connect. The user waits for the socket to close, if there is one.
pub(super) fn fail(cx: &mut UserContext<'_>, why: ConnectFailure) {
    let timed_out =
        matches!(why, ConnectFailure::Timeout | ConnectFailure::Errno(Errno::TIMED_OUT));
    outcomes::fail_wait(cx, timed_out);
    cx.record(Record::ConnectFailed(why));
    cx.user.set_wait(Wait::CloseAfterFailedConnect);
    cx.user.set_erred();
}

/// Handles the time-out.
pub(super) fn timed_out(cx: &mut UserContext<'_>) -> Flow {
    fail(cx, ConnectFailure::Timeout);
    cx.act(UserAction::Reset);
    Flow::Wait
}

/// Resets a socket that the kernel connected to itself (RFC 793 section 3.4, simultaneous open): no
/// server listens, and the kernel chose the target's own port as the source. An RST avoids
/// TIME-WAIT, which would keep the server from listening on that port again.
pub(super) fn reset_self_connection(cx: &mut UserContext<'_>) -> Flow {
    fail(cx, ConnectFailure::SelfConnected);
    cx.wait_until(Deadline::Never);
    cx.act(UserAction::Reset);
    Flow::Wait
}

/// Handles the server's refusal of the upgrade.
pub(super) fn refused(cx: &mut UserContext<'_>, why: ConnectFailure) -> Flow {
    fail(cx, why);
    cx.wait_until(Deadline::Never);
    cx.act(UserAction::Close);
    Flow::Wait
}

/// Handles a violation of the WebSocket protocol. `head` is the beginning of the answer to an
/// upgrade.
pub(super) fn violated(
    cx: &mut UserContext<'_>,
    violation: Violation,
    head: Option<&[u8]>,
) -> Flow {
    match cx.user.wait() {
        Some(Wait::Upgrade) => {
            if let Some(head) = head {
                cx.record(Record::Sample(Sample::UpgradeViolation(violation, head)));
            }
            refused(cx, ConnectFailure::Violation)
        }
        Some(Wait::Close) => {
            cx.act(UserAction::Close);
            Flow::Wait
        }
        _ => {
            cx.record(Record::Sample(Sample::Violation(violation)));
            cx.count_error(ErrorKind::WebSocketViolation);
            failure::condemn(cx)
        }
    }
}
