//! Phoenix Channels: what goes in, and what must come out; on virtual time but for `sockets`.

mod broadcasts;
mod demo;
mod events;
mod joins;
mod limits;
mod longpoll;
mod longpoll_ends;
mod poller;
mod presence;
mod puppet;
mod random;
mod slow;
mod sockets;
mod trouble;
mod versions;
mod world;
