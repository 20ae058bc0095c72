//! What the file of a step needs.

pub(super) use std::time::Duration;

pub(super) use throng_engine::Deadline;
pub(super) use throng_measure::Operation;

pub(super) use crate::program::compiler::Compiler;
pub(super) use crate::program::{Op, OpFacts, OpRole, nanos};
pub(super) use crate::scenario::flow::Flow;
pub(super) use crate::scenario::node::Node;
pub(super) use crate::scenario::reader::Reader;
pub(super) use crate::scenario::step::{Action, StepForm, StepKind};
pub(super) use crate::scenario::values::read_timeout;
pub(super) use crate::scenario::{Template, json};
pub(super) use crate::user::context::{StepOutcome, UserContext};
pub(super) use crate::user::error::ErrorKind;
pub(super) use crate::user::failure;
pub(super) use crate::user::record::Record;
pub(super) use crate::user::state::UserWait;
