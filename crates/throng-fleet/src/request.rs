//! Requests to one agent outside a run, and its answers.

use serde::{Deserialize, Serialize};
use throng_bus::{Name, Text};

use crate::within;

/// A request to one process of an agent. It may come more than once, and is answered each time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Name of the process that asks.
    pub(crate) asker: Name,
    /// The process that is asked.
    pub(crate) incarnation: Name,
    pub(crate) wish: AgentWish,
}

/// What an agent is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AgentWish {
    /// End; with `force`, also while it makes a run.
    End { force: bool },
    /// Tell its last lines.
    Log { lines_max: usize },
    /// Stop its part of this run, whose coordinator is away.
    Stop { run: Name },
}

/// An answer to the process that asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The process of the agent.
    pub(crate) incarnation: Name,
    pub(crate) answer: AgentAnswer,
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AgentAnswer {
    /// It makes this run, and goes on.
    Busy { run: Name },
    /// It keeps results of this run that were not fetched, and goes on.
    Keeps { run: Name },
    /// It ramps the load of the run down that it was asked to stop.
    Stopping,
    /// It goes on with the run that it was asked to stop: this coordinator can end it.
    Coordinated { coordinator: Name },
    /// It forgets the run that it was asked to stop, whose load was not started, and is free.
    Forgotten,
    /// The load of the run that it was asked to stop has ended. It is free once the results are
    /// delivered, or the coordinator has been silent for 15 s.
    LoadEnded,
    /// It does not, or no longer, make the run that it was asked to stop.
    NotMade,
    /// It ramps its load down and delivers what it measured, and then ends.
    Ending,
    /// It has ended.
    Ended,
    /// Its last lines, the oldest first.
    Log(#[serde(deserialize_with = "within::few::<_, _, LOG_LINES_MAX>")] Vec<LogLine>),
}

/// A line that an agent has said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The time on the agent's machine, as RFC 3339.
    pub at: Text,
    /// The line.
    pub text: Text<LOG_LINE_BYTES_MAX>,
}

/// Lines that an agent keeps. As JSON, all of them are less than a bus carries.
pub const LOG_LINES_MAX: usize = 1_000;
/// Bytes of a line that an agent keeps.
pub const LOG_LINE_BYTES_MAX: usize = 400;
