//! The generator over real sockets.

mod measured;
mod run;
mod steering;
mod steps;
mod websocket;
