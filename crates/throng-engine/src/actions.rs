//! Actions that a callback requests for its own connection.

use throng_driver::{ConnectSpec, SocketClose};

use crate::{CloseReason, Deadline};

/// Actions that a callback requests for its own connection. The core applies them after the
/// callback returns.
#[derive(Default)]
pub(crate) struct Actions {
    pub(crate) close: Option<(CloseReason, SocketClose)>,
    /// Shut down the sending direction.
    pub(crate) finish: bool,
    pub(crate) connect: Option<ConnectSpec>,
    pub(crate) deadline: Option<Deadline>,
    /// Remove the entry from the table.
    pub(crate) remove: bool,
    /// No bytes waited for the peer when the callback began. This is a fact, not an action.
    pub(crate) queue_was_empty: bool,
}

impl Actions {
    /// Reports whether nothing is sent after the bytes of this callback.
    pub(crate) fn ends_sending(&self) -> bool {
        self.finish || self.close.is_some_and(|(reason, how)| reason.is_orderly(how))
    }
}
