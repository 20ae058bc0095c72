//! `send`: a message from a template, or random bytes.

use throng_base::Instant;
use throng_engine::Deadline;

use super::context::UserContext;
use super::error::ErrorKind;
use super::failure;
use super::flow::Flow;
use super::state::Wait;
use super::unasked;
use crate::program::Frame;

/// Sends the message of a template.
pub(super) fn begin(cx: &mut UserContext<'_>, template: u32, frame: Frame) -> Flow {
    if let Some(flow) = check_can_send(cx) {
        return flow;
    }
    let template = cx.rules.program.template(template);
    if frame == Frame::Raw {
        cx.user.render(|vars| template.render(vars, cx.out));
    } else {
        cx.encoder.text.clear();
        cx.user.render(|vars| template.render(vars, &mut cx.encoder.text));
    }
    match frame {
        Frame::Raw => {}
        Frame::Text => cx.write_text(),
        Frame::Binary => cx.write_binary(),
    }
    complete(cx)
}

/// Sends random bytes: raw on TCP, as one binary message on a WebSocket.
pub(super) fn begin_random(cx: &mut UserContext<'_>, bytes: usize) -> Flow {
    if let Some(flow) = check_can_send(cx) {
        return flow;
    }
    let is_raw = cx.is_tcp();
    let out = if is_raw { &mut *cx.out } else { &mut cx.encoder.text };
    let begin = if is_raw { out.len() } else { 0 };
    out.resize(begin + bytes, 0);
    cx.user.prng.fill(&mut out[begin..]);
    if !is_raw {
        cx.write_binary();
    }
    complete(cx)
}

/// Notes that a message has been sent. A large output leaves before the next step, which then sees
/// whether the server accepts it.
fn complete(cx: &mut UserContext<'_>) -> Flow {
    let user = &*cx.user;
    let begins_anew = user.message_from == Instant::FAR || user.flags.is_answering();
    let is_ahead = user.unanswered > 0 && !cx.rules.program.sends_exceed_answers(user.pc());
    if begins_anew && is_ahead {
        unasked::push_to_window(cx);
    } else if begins_anew {
        unasked::discard_all(cx);
        cx.user.message_from = cx.user.intended;
        cx.user.unanswered = 0;
        cx.user.flags.set_answering(false);
    }
    cx.user.unanswered = cx.user.unanswered.saturating_add(1);
    cx.user.intended = cx.now;
    cx.count(|c| c.messages_sent += 1);
    if cx.out.len() >= SEND_BYTES_MAX { Flow::Flush } else { Flow::Next }
}

/// Checks whether the user can send. Returns `None` if it can. Skips the step if there is no
/// connection, and blocks the user while the server has not accepted what was sent before.
pub(super) fn check_can_send(cx: &mut UserContext<'_>) -> Option<Flow> {
    if !cx.socket.is_open() {
        return Some(failure::skip_step(cx, ErrorKind::NotConnected));
    }
    check_has_space(cx)
}

/// Blocks the user while the server has not accepted what was sent before. Returns `None` if it
/// has.
pub(super) fn check_has_space(cx: &mut UserContext<'_>) -> Option<Flow> {
    cx.is_blocked().then(|| {
        cx.user.set_wait(Wait::SendSpace);
        cx.wait_until(Deadline::Never);
        Flow::Wait
    })
}

/// Output bytes at which a user hands them to the kernel.
pub(crate) const SEND_BYTES_MAX: usize = 256 << 10;
