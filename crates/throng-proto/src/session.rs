//! The trait that every protocol implements.

use throng_base::Instant;

use crate::Input;

/// The protocol state of one connection. It never sees a socket or a clock.
///
/// One input, then drain: after bytes arrive, the caller calls [`Self::next`] until it returns
/// `None`. A session appends the bytes that it sends to `out`.
pub trait Session {
    /// The event that the session reports to the application. It borrows the receive buffer, so a
    /// message that arrives whole is never copied. A message that arrives in pieces is put together
    /// in the scratch, and its event borrows that. An event never borrows the session.
    type Event<'a>;

    /// The state that all sessions of a core share while they read: limits, an inflater, buffers.
    /// `()` for none.
    type Scratch: Default;

    /// Returns the next event that `input` holds. Before it returns `None` it consumes all of
    /// `input`: the session keeps the bytes of an incomplete message.
    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Self::Scratch,
        out: &mut Vec<u8>,
    ) -> Option<Self::Event<'a>>;

    /// Returns the time at which the caller must call [`Self::handle_timeout`]; [`Instant::FAR`]
    /// for never.
    fn deadline(&self) -> Instant {
        Instant::FAR
    }

    /// Handles the deadline. The caller then calls [`Self::next`] with empty input.
    fn handle_timeout(&mut self, _now: Instant, _out: &mut Vec<u8>) {}
}
