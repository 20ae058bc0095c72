//! Heartbeats of Phoenix Channels.

use throng_base::Instant;
use throng_proto::phoenix::Decimal;
use throng_proto::phoenix::client;

use crate::user::context::{StepOutcome, UserContext};
use crate::user::error::ErrorKind;
use crate::user::failure;

/// Sends a heartbeat. If the last one is unanswered, closes the connection.
pub(crate) fn due(cx: &mut UserContext<'_>) -> StepOutcome {
    if cx.user.is_closing_or_stopped() {
        return StepOutcome::Wait;
    }
    if cx.user.heartbeat != 0 {
        cx.count(|c| c.heartbeats_missed += 1);
        cx.count_error(ErrorKind::HeartbeatTimeout);
        return failure::close_faulty(cx);
    }
    let number = cx.user.next_ref();
    cx.user.heartbeat = number;
    cx.count(|c| c.heartbeats_sent += 1);
    cx.encoder.text.clear();
    let r#ref = Decimal::new(number.into());
    client::heartbeat(cx.handshake().vsn, r#ref.as_str(), &mut cx.encoder.text);
    cx.write_text();
    set_next(cx, cx.now);
    StepOutcome::Wait
}

/// Notes the answer to the heartbeat.
pub(crate) fn answered(cx: &mut UserContext<'_>) -> StepOutcome {
    cx.user.heartbeat = 0;
    cx.count(|c| c.heartbeats_answered += 1);
    set_next(cx, cx.now);
    StepOutcome::Wait
}

fn set_next(cx: &mut UserContext<'_>, from: Instant) {
    if let Some(heartbeat) = cx.handshake().heartbeat {
        cx.session.set_heartbeat(from + heartbeat);
    }
}
