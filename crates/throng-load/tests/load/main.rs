//! The generator over real sockets.

mod control;
mod foreign;
mod http;
mod measured;
mod run;
mod setup;
mod steps;
mod websocket;
