//! What arrives from a server and only its protocol understands: the answer to what a user has
//! asked, what breaks the rules of the protocol, and what comes unasked.
//!
//! Each protocol says in its `input.rs` what these are, and what a user does then. A protocol that
//! knows none of a kind has [`Infallible`](std::convert::Infallible) in its place. A protocol with
//! a session of its own also says there what the events of the session are: `received`.

use throng_measure::LoadCounters;

use super::Protocol;
use super::session::UserEvent;
use crate::program::{IncomingMessage, Program};
use crate::user::context::{StepOutcome, UserContext};
use crate::user::{Input, Sample, TraceEvent, User};

/// A user whose connection has received something, and what its core has for it.
pub(crate) trait Receiver {
    /// Returns the user.
    fn user(&mut self) -> &User;

    /// Returns the program of all users.
    fn program(&self) -> &Program;

    /// Gives an input to the user.
    fn step(&mut self, input: Input<'_>);

    /// Shows what arrived, if the user is watched.
    fn trace(&mut self, event: TraceEvent<'_>);

    /// Adds to the counters.
    fn count(&mut self, count: fn(&mut LoadCounters));

    /// Reports whether a message is the delivery of a probe, which is counted then.
    fn takes_probe(&mut self, message: &[u8]) -> bool;

    /// Reports whether the answer to the request `number` is that to a probe. Counts its refusal
    /// then, if it is one.
    fn takes_probe_answer(&mut self, number: u32, refusal: Option<Sample<'_>>) -> bool;

    /// Reports whether users of this class wait for messages, or have rules for them.
    fn awaits_messages(&mut self) -> bool;
}

macro_rules! inputs {
    ($(
        $(#[doc = $doc:literal])+
        $protocol:ident = $module:ident $(, scheme $scheme:ident)? $(, session $session:ident)?
        $(, messages $read:ident)?;
    )+) => {
        impl UserEvent<'_> {
            /// Gives the event to its protocol, which gives its user what it is.
            pub(crate) fn receive(self, receiver: &mut dyn Receiver) {
                match self {
                    $( $( Self::$session(event) => {
                        super::$module::input::received(receiver, event);
                    } )? )+
                }
            }
        }

        /// Gives a message of a WebSocket, which is counted, to the protocol of the user.
        pub(super) fn message_received(
            receiver: &mut dyn Receiver,
            message: IncomingMessage<'_>,
        ) {
            match receiver.program().protocol() {
                $( $( Protocol::$protocol => super::$module::input::$read(receiver, message), )? )+
                _ => {}
            }
        }

        inputs! { @kind "Answer to what a user has asked.",
            ServerAnswer = Answer, answered; $($protocol $module)+ }
        inputs! { @kind "What breaks the rules of a protocol.",
            ServerFault = Fault, violated; $($protocol $module)+ }
        inputs! { @kind "What answers nothing.",
            UnaskedInput = Unasked, unasked; $($protocol $module)+ }
    };
    (@kind $doc:literal, $kind:ident = $inner:ident, $handle:ident;
        $($protocol:ident $module:ident)+) => {
        #[doc = $doc]
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "a protocol may know none")]
        pub(crate) enum $kind<'a> {
            $( $protocol(super::$module::input::$inner<'a>), )+
        }

        impl $kind<'_> {
            /// Does what a user does then.
            pub(crate) fn handle(self, cx: &mut UserContext<'_>) -> StepOutcome {
                match self { $( Self::$protocol(it) => super::$module::input::$handle(cx, it), )+ }
            }

            /// Returns the protocol that it is of.
            pub(crate) fn protocol(&self) -> Protocol {
                match self { $( Self::$protocol(_) => Protocol::$protocol, )+ }
            }
        }
    };
}

with_protocols!(inputs);
