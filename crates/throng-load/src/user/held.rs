//! What a user itself holds of what the target sent: unread data, parts of answers, stored values,
//! cookies. It counts in the budget of its core, as the unfinished messages of its connection do.

use super::context::UserContext;
use super::error::ErrorKind;
use super::failure;
use super::inbox::Inbox;
use super::machine::Progress;
use super::state::{User, UserWait};

impl User {
    /// Returns the bytes that the user holds beside its fields. Nearly all users hold none.
    pub(crate) fn held_bytes(&self) -> usize {
        self.inbox.as_deref().map_or(0, Inbox::held_bytes) + self.memory.held_bytes()
    }
}

/// Counts what the user holds after an input, in place of `before`. A user that holds too much
/// forgets it, and fails. Returns its progress.
pub(crate) fn recount(cx: &mut UserContext<'_>, before: usize, progress: Progress) -> Progress {
    let after = cx.user.held_bytes();
    if after == before || cx.held.recount(before, after).is_ok() {
        return progress;
    }
    let fails = cx.user.is_running() && !cx.user.is_closing_or_stopped();
    cx.user.inbox = None;
    cx.user.memory.clear_stored();
    if fails && cx.socket.is_open() {
        failure::fail_beside(cx, ErrorKind::HeldOverflow);
    } else if fails {
        // There is no connection to close.
        cx.user.set_erred();
        cx.count_error(ErrorKind::HeldOverflow);
    }
    let now = cx.user.held_bytes();
    let _ = cx.held.recount(after, now);
    match cx.user.wait() {
        Some(UserWait::CloseAfterError) => Progress::Waits,
        _ => progress,
    }
}
