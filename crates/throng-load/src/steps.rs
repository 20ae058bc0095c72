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
//!
//! The facts of an op are all that the dialogue, the latencies, the capacity and the calibration
//! know of a step. `stay.rs` is the smallest file, `wait.rs` the smallest with a value. What a user
//! does in an op is in `user/machine.rs`.

mod close;
pub(crate) mod connect;
mod every;
mod expect;
mod join;
mod leave;
mod prelude;
mod push;
mod repeat;
mod send;
mod stay;
mod wait;

use crate::scenario::step::StepKind;

/// All steps, in the order in which mistakes and documents name them.
pub(crate) const STEPS: &[StepKind] = &[
    connect::KIND,
    send::KIND,
    expect::KIND,
    join::KIND,
    push::KIND,
    leave::KIND,
    wait::KIND,
    every::KIND,
    repeat::KIND,
    stay::KIND,
    close::KIND,
];

#[cfg(test)]
mod tests;
