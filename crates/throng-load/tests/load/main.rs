//! The generator over real sockets.

mod control;
mod measured;
mod run;
mod steps;
mod websocket;
