//! What the file of a step needs.

pub(crate) use std::time::Duration;

pub(crate) use throng_engine::Deadline;
pub(crate) use throng_measure::Operation;

pub(crate) use crate::program::compiler::Compiler;
pub(crate) use crate::program::{Op, OpFacts, OpRole, ProtocolOp, nanos};
pub(crate) use crate::scenario::expanded_size::ExpandedSize;
pub(crate) use crate::scenario::flow::Flow;
pub(crate) use crate::scenario::node::{Kind, Node};
pub(crate) use crate::scenario::reader::Reader;
pub(crate) use crate::scenario::step::{
    Action, Step, StepForm, StepKind, StepMeasure, check_steps, compile_steps, size_of,
};
pub(crate) use crate::scenario::step_list::StepPlace;
pub(crate) use crate::scenario::values::read_timeout;
pub(crate) use crate::scenario::{Template, json};
pub(crate) use crate::user::context::{StepOutcome, UserContext};
pub(crate) use crate::user::error::ErrorKind;
pub(crate) use crate::user::failure;
pub(crate) use crate::user::record::Record;
pub(crate) use crate::user::state::UserWait;
pub(crate) use crate::user::user_op::{self, UserOp};
