//! Phoenix Channels, on virtual time: what goes in, and what must come out.

mod longpoll;
mod presence;
mod puppet;
mod table;
mod trouble;
mod world;
