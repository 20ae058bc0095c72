//! Memory budgets under attack: what a server may be made to hold is measured in the memory of a
//! real one, which is a process of its own. What is asserted is bytes, in proportion to what was
//! sent; never time.

mod http;
mod longpoll;
mod presence;
#[path = "../cli/process.rs"]
#[allow(dead_code, reason = "the command line's tests use the rest of it")]
mod process;
mod unfinished;
mod victim;
