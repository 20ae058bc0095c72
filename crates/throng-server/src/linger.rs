//! The lingering close of a WebSocket whose client has violated the protocol.

use std::time::Duration;

use throng_measure::ServerCounters;
use throng_proto::http::RequestError;
use throng_proto::websocket::{Violation, WebSocketLimits};

use crate::{Connection, Handler};

/// Ends a connection after [`Failed`](throng_proto::websocket::ServerEvent::Failed), whose close
/// frame or response has been appended, so that the client receives it. A client whose message is
/// too large is still sending it. If the server closed with unread bytes, Linux would send RST,
/// which destroys what the client has not read. So the server sends FIN only, the session discards
/// what the client still sends, and the client has `close_timeout_ms` to close. Then the handler's
/// timeout is called, which closes.
///
/// A client that has used up such a time already is closed at once.
pub(crate) fn end<H: Handler>(
    conn: &mut Connection<'_, H>,
    violation: Violation,
    limits: &WebSocketLimits,
) {
    match violation {
        Violation::CloseTimeout | Violation::Http(RequestError::Timeout) => conn.close(),
        _ => {
            conn.finish();
            conn.set_timeout(Duration::from_millis(limits.close_timeout_ms.into()));
        }
    }
}

/// Counts a violation of a limit.
pub(crate) fn count(violation: Violation, counters: &mut ServerCounters) {
    match violation {
        Violation::MessageTimeout => counters.message_timeouts += 1,
        Violation::FrameTooLarge | Violation::MessageTooLarge | Violation::InflateRatio => {
            counters.messages_too_large += 1
        }
        Violation::Http(
            RequestError::BodyTooLarge | RequestError::HeadTooLarge | RequestError::TargetTooLong,
        ) => {
            counters.requests_too_large += 1;
        }
        _ => {}
    }
}
