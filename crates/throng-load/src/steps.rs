//! The steps of the scenario language: a file for each, and the list of them.
//!
//! A step's file says everything about its step, in this order:
//!
//! | item | what it is |
//! |---|---|
//! | `KIND` | name, example, the protocols that have it, and how it is written |
//! | a type | the values of one such step |
//! | `check` | what must hold before it, and what holds after it |
//! | `compile` | its ops, each with its [`OpFacts`](crate::program::OpFacts) |
//! | `read` | reads its values from the YAML node; reports mistakes |
//! | `begin` | what a user does when it comes to the op |
//! | others | what a user does when what it waits for happens, or its time is over |
//!
//! The facts of an op are all that the dialogue, the latencies, the capacity and the calibration
//! know of a step. `stay.rs` is the smallest file, `wait.rs` the smallest with a value. The turns
//! of `every` and `repeat` are in `user/loops.rs`, the requests of `join`, `push` and `leave` in
//! `user/request.rs`, the waits of `barrier` and `wait_for` in `user/cues.rs`.

pub(crate) mod barrier;
pub(crate) mod branch;
pub(crate) mod choose;
pub(crate) mod close;
pub(crate) mod connect;
mod every;
pub(crate) mod expect;
mod foreach;
pub(crate) mod http;
pub(crate) mod join;
pub(crate) mod leave;
pub(crate) mod ping;
mod prelude;
pub(crate) mod push;
pub(crate) mod receive;
mod receive_event;
mod repeat;
pub(crate) mod send;
pub(crate) mod set;
pub(crate) mod signal;
pub(crate) mod stay;
mod transaction;
pub(crate) mod wait;
mod wait_for;

pub(crate) use expect::read_rule_pattern;
pub(crate) use receive_event::read_rule_event;

use crate::scenario::step::StepKind;

/// All steps, in the order in which mistakes and documents name them.
pub(crate) const STEPS: &[StepKind] = &[
    connect::KIND,
    send::KIND,
    expect::KIND,
    receive::KIND,
    receive_event::KIND,
    ping::PING,
    ping::PONG,
    set::KIND,
    join::KIND,
    push::KIND,
    leave::KIND,
    http::GET,
    http::HEAD,
    http::POST,
    http::PUT,
    http::PATCH,
    http::DELETE,
    http::OPTIONS,
    wait::KIND,
    barrier::KIND,
    signal::KIND,
    wait_for::KIND,
    every::KIND,
    repeat::KIND,
    transaction::KIND,
    foreach::KIND,
    branch::KIND,
    choose::KIND,
    stay::KIND,
    close::KIND,
];

/// The steps of a rule of `on_message`: none of them waits.
pub(crate) const RULE_STEPS: &[StepKind] =
    &[send::KIND, push::OF_RULE, set::KIND, signal::KIND, branch::KIND, choose::KIND];

#[cfg(test)]
mod tests;
