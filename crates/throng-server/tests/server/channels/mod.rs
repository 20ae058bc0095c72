//! Phoenix Channels: input and expected output, on virtual time except for `sockets`.

mod broadcasts;
mod corpus;
mod demo;
mod events;
mod joins;
mod limits;
mod longpoll;
mod longpoll_ends;
#[path = "../../../../../fuzz/src/longpoll_session.rs"]
#[allow(unreachable_pub, reason = "it is part of another crate, too")]
mod longpoll_session;
mod poller;
mod presence;
mod puppet;
mod random;
mod slow;
mod sockets;
mod trouble;
mod versions;
mod world;
