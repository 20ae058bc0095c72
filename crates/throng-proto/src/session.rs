//! The shape of every protocol.

use throng_base::Instant;

use crate::Input;

/// One connection's protocol state. It never sees a socket or a clock.
///
/// One input, then drain: after bytes came in, [`Self::next`] is called until it has no more to say;
/// what it wants to send is appended to `out`.
pub trait Session {
    /// What the protocol says to the application. It borrows the receive buffer, so that a message that arrived
    /// whole is never copied; or the scratch, where one of several pieces was put together. Never the session.
    type Event<'a>;

    /// What all sessions of a core share while they read: limits, an inflater, a buffer. `()` for none.
    type Scratch: Default;

    /// The next event, as long as `input` holds one. It consumes all of `input` before it
    /// returns nothing: what a message still lacks, the session keeps.
    fn next<'a, 'i: 'a>(
        &mut self,
        now: Instant,
        input: &mut Input<'i>,
        scratch: &'a mut Self::Scratch,
        out: &mut Vec<u8>,
    ) -> Option<Self::Event<'a>>;

    /// When [`Self::handle_timeout`] is wanted; [`Instant::FAR`] for never.
    fn deadline(&self) -> Instant {
        Instant::FAR
    }

    /// The deadline has come. [`Self::next`] is called after it, with nothing received.
    fn handle_timeout(&mut self, _now: Instant, _out: &mut Vec<u8>) {}
}
