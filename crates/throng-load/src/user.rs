//! A user of the generator: a pure machine.
//!
//! [`handle`] takes a user, the program, an [`Input`] and the time. It changes the user, appends
//! what the user sends to the caller's buffer, and gives each [`UserAction`] to the caller:
//! connect, close, wait until, count, record, remove. It knows no driver, no connection and no
//! counters, so a test needs none.
//!
//! [`machine`] runs op after op. The file of each step (`steps/`) has what begins its op, what
//! resumes it and how its time-out ends it. [`ending`] has the table of what the end of a
//! connection means in each state.

pub(crate) mod context;
pub(crate) mod cues;
pub(crate) mod encoder;
pub(crate) mod ending;
pub(crate) mod error;
pub(crate) mod failure;
mod held;
mod inbox;
pub(crate) mod iteration;
pub(crate) mod limits;
mod loop_counter;
mod loops;
pub(crate) mod machine;
mod memory;
pub(crate) mod named;
mod nested;
pub(crate) mod on_message;
pub(crate) mod outcomes;
pub(crate) mod receipts;
pub(crate) mod record;
pub(crate) mod requests;
pub(crate) mod state;
pub(crate) mod timing;
pub(crate) mod trace;
mod transactions;
pub(crate) mod unasked;
pub(crate) mod user_op;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::protocols::session::{UserEvent, UserSession};
pub(crate) use context::{ClassTraits, Rules, SocketStatus, UserAction, UserContext};
pub(crate) use encoder::{Encoder, as_text};
pub use ending::RESTART_PAUSE;
pub use error::{ConnectFailure, ErrorKind};
pub(crate) use error::{close_code_name, is_step_timeout, violation_error};
pub(crate) use inbox::INBOX_BYTES_MAX;
pub(crate) use machine::{Input, Progress, handle};
pub(crate) use memory::{ANSWER_BYTES_MAX, MEMORY_BYTES};
pub(crate) use outcomes::is_done;
pub(crate) use receipts::{Receipt, Receipts};
pub use record::IterationEnd;
pub(crate) use record::{MissedTurns, Record, Sample};
pub use state::User;
pub(crate) use timing::AnswerTiming;
pub(crate) use trace::{Payload, TraceEvent};
