//! The steps of the scenario language: a file for each, and the list of them.
//!
//! A step's file says everything about its step, in this order:
//!
//! | item | what it is |
//! |---|---|
//! | `KIND` | name, example, and how it is written |
//! | a type | the values of one such step |
//! | `check` | what must hold before it, and what holds after it |
//! | `compile` | its ops, each with its [`OpFacts`](crate::program::OpFacts) |
//! | `read` | reads its values from the YAML node; reports mistakes |
//! | `begin` | what a user does when it comes to the op |
//! | others | what a user does when what it waits for happens, or its time is over |
//!
//! The facts of an op are all that the dialogue, the latencies, the capacity and the calibration
//! know of a step. `stay.rs` is the smallest file, `wait.rs` the smallest with a value. The turns
//! of `every` and `repeat` are in `user/loops.rs`, the waits of `barrier` and `wait_for` in
//! `user/cues.rs`. The steps of one protocol are in its folder (`protocols/`).

pub(crate) mod barrier;
pub(crate) mod branch;
pub(crate) mod choose;
pub(crate) mod close;
pub(crate) mod connect;
mod every;
pub(crate) mod expect;
mod foreach;
pub(crate) mod prelude;
pub(crate) mod receive;
mod repeat;
pub(crate) mod send;
pub(crate) mod set;
pub(crate) mod signal;
pub(crate) mod stay;
mod transaction;
pub(crate) mod wait;
mod wait_for;

pub(crate) use expect::read_rule_pattern;

use crate::protocols::{self, with_protocols};
use crate::scenario::Protocol;
use crate::scenario::step::StepKind;

macro_rules! steps_of {
    ($(
        $(#[doc = $doc:literal])+
        $protocol:ident = $module:ident $(, scheme $scheme:ident)? $(, session $session:ident)?
        $(, messages $read:ident)?;
    )+) => {
        /// Returns the steps that users of a protocol may take, in the order in which mistakes
        /// name them.
        pub(crate) const fn of_user(protocol: Protocol) -> &'static [&'static [StepKind]] {
            match protocol { $( Protocol::$protocol => protocols::$module::steps::OF_USER, )+ }
        }

        /// Returns the steps that their rules of `on_message` may have: none of them waits.
        pub(crate) const fn of_rule(protocol: Protocol) -> &'static [&'static [StepKind]] {
            match protocol { $( Protocol::$protocol => protocols::$module::steps::OF_RULE, )+ }
        }
    };
}

with_protocols!(steps_of);

/// Steps of all protocols that store values.
pub(crate) const VALUES: &[StepKind] = &[set::KIND];

/// Steps of all protocols that say what a user does next, and when.
pub(crate) const FLOW: &[StepKind] = &[
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

/// Steps of the rules of all protocols.
pub(crate) const FLOW_OF_RULE: &[StepKind] = &[set::KIND, signal::KIND, branch::KIND, choose::KIND];

#[cfg(test)]
mod tests;
