//! The generator over real sockets.

mod control;
mod driver;
mod foreign;
mod http;
mod measured;
mod memory_driver;
mod run;
mod setup;
mod steps;
mod tls;
mod websocket;
