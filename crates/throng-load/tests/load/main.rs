//! The generator over real sockets.

mod control;
mod measured;
mod once;
mod run;
mod steps;
mod websocket;
