//! Phoenix Channels: what goes in, and what must come out; on virtual time but for `sockets`.

mod longpoll;
mod presence;
mod puppet;
mod random;
mod slow;
mod sockets;
mod table;
mod trouble;
mod world;
