//! The machine without a driver: each row of a table is an input and the actions that follow.

mod branches;
mod close;
mod connect;
mod cues;
mod ending;
mod expect;
mod held;
mod identity;
mod limits;
mod named;
mod on_message;
pub(crate) mod play;
mod send;
mod served;
mod shown;
mod stop;
mod trace;
mod wait;
