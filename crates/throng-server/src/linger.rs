//! How a WebSocket ends whose client has broken the rules.

use std::time::Duration;

use throng_proto::http::RequestError;
use throng_proto::websocket::{Violation, WebSocketLimits};
use throng_report::ServerCounters;

use crate::{Connection, Handler};

/// Ends a connection after [`Failed`](throng_proto::websocket::ServerEvent::Failed), whose last word has been appended, so
/// that it arrives: a client whose message is too large is still sending it, and bytes that nobody receives
/// before the close make Linux answer RST, which destroys what has not been read. So the client
/// is told that nothing more comes, what it still sends is discarded by the session, and it has `close_timeout_ms` to close.
/// Then the handler's timeout is called, which closes.
///
/// A client that has been waited for already is closed at once.
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
        Violation::FrameTooLarge | Violation::MessageTooLarge => counters.messages_too_large += 1,
        Violation::Http(
            RequestError::BodyTooLarge | RequestError::HeadTooLarge | RequestError::TargetTooLong,
        ) => {
            counters.requests_too_large += 1;
        }
        _ => {}
    }
}
