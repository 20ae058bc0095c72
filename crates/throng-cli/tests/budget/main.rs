//! Memory budgets under attack. The tests measure the memory of a real server, which is a separate
//! process. They assert bytes in proportion to the bytes sent, never time.

mod handshakes;
mod http;
mod longpoll;
mod presence;
#[path = "../cli/process.rs"]
#[allow(dead_code, reason = "the command line's tests use the rest of it")]
mod process;
mod unfinished;
mod victim;
