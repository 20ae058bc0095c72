//! The session of a user's connection: that of its protocol, or of the one that its protocol is
//! over. The table of the protocols says which sessions there are.

use throng_base::Instant;
use throng_proto::websocket::Scratch;
use throng_proto::{Input, Session};

macro_rules! sessions {
    ($(
        $(#[doc = $doc:literal])+
        $protocol:ident = $module:ident $(, scheme $scheme:ident)? $(, session $session:ident)?
        $(, messages $read:ident)?;
    )+) => {
        /// Protocol state of a user's connection. Each connection gets a new one.
        #[derive(Debug, Default)]
        pub enum UserSession {
            /// There is no connection yet, or none any more.
            #[default]
            Unconnected,
            $( $(
                #[doc = concat!("That of `Protocol::", stringify!($protocol), "`.")]
                $session(super::$module::session::Session),
            )? )+
        }

        /// Events that a connection delivers.
        #[derive(Debug)]
        pub enum UserEvent<'a> {
            $( $(
                #[doc = concat!("That of a `UserSession::", stringify!($session), "`.")]
                $session(<super::$module::session::Session as Session>::Event<'a>),
            )? )+
        }

        impl Session for UserSession {
            type Event<'a> = UserEvent<'a>;
            type Scratch = Scratch;

            fn next<'a, 'i: 'a>(
                &mut self,
                now: Instant,
                input: &mut Input<'i>,
                scratch: &'a mut Scratch,
                out: &mut Vec<u8>,
            ) -> Option<UserEvent<'a>> {
                match self {
                    Self::Unconnected => {
                        input.take_all();
                        None
                    }
                    $( $( Self::$session(session) => {
                        session.next(now, input, scratch, out).map(UserEvent::$session)
                    } )? )+
                }
            }

            fn deadline(&self) -> Instant {
                match self {
                    Self::Unconnected => Instant::FAR,
                    $( $( Self::$session(session) => session.deadline(), )? )+
                }
            }

            fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) {
                match self {
                    Self::Unconnected => {}
                    $( $( Self::$session(session) => session.handle_timeout(now, out), )? )+
                }
            }
        }
    };
}

with_protocols!(sessions);

const _: () = assert!(size_of::<UserSession>() <= 32, "a user's protocol is small");
