//! The generator over real sockets.

mod control;
mod foreign;
mod http;
mod measured;
mod once;
mod run;
mod steps;
mod websocket;
