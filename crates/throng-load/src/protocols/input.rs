//! What arrives from a server and only its protocol understands: the answer to what a user has
//! asked, what breaks the rules of the protocol, and what comes unasked.
//!
//! Each protocol says in its `input.rs` what these are, and what a user does then. A protocol that
//! knows none of a kind has [`Infallible`](std::convert::Infallible) in its place.

use super::Protocol;
use crate::user::context::{StepOutcome, UserContext};

macro_rules! inputs {
    ($(
        $(#[doc = $doc:literal])+
        $protocol:ident = $module:ident $(, scheme $scheme:ident)?;
    )+) => {
        /// Answer to what a user has asked.
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "a protocol may know none")]
        pub(crate) enum ServerAnswer<'a> {
            $( $protocol(super::$module::input::Answer<'a>), )+
        }

        /// What breaks the rules of a protocol.
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "a protocol may know none")]
        pub(crate) enum ServerFault<'a> {
            $( $protocol(super::$module::input::Fault<'a>), )+
        }

        /// What answers nothing.
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "a protocol may know none")]
        pub(crate) enum UnaskedInput<'a> {
            $( $protocol(super::$module::input::Unasked<'a>), )+
        }

        impl ServerAnswer<'_> {
            /// Handles the answer.
            pub(crate) fn handle(self, cx: &mut UserContext<'_>) -> StepOutcome {
                match self {
                    $( Self::$protocol(it) => super::$module::input::answered(cx, it), )+
                }
            }

            /// Returns the protocol that it is of.
            pub(crate) fn protocol(&self) -> Protocol {
                match self { $( Self::$protocol(_) => Protocol::$protocol, )+ }
            }
        }

        impl ServerFault<'_> {
            /// Handles the fault.
            pub(crate) fn handle(self, cx: &mut UserContext<'_>) -> StepOutcome {
                match self {
                    $( Self::$protocol(it) => super::$module::input::violated(cx, it), )+
                }
            }

            /// Returns the protocol that it is of.
            pub(crate) fn protocol(&self) -> Protocol {
                match self { $( Self::$protocol(_) => Protocol::$protocol, )+ }
            }
        }

        impl UnaskedInput<'_> {
            /// Handles what came unasked.
            pub(crate) fn handle(self, cx: &mut UserContext<'_>) -> StepOutcome {
                match self {
                    $( Self::$protocol(it) => super::$module::input::unasked(cx, it), )+
                }
            }

            /// Returns the protocol that it is of.
            pub(crate) fn protocol(&self) -> Protocol {
                match self { $( Self::$protocol(_) => Protocol::$protocol, )+ }
            }
        }
    };
}

with_protocols!(inputs);
