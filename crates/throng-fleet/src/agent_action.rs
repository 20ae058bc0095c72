//! What an agent asks of its process.

use throng_load::peers::PeerOrder;

use crate::agent_note::AgentNote;
use crate::message::{RunOrder, StartOrder, Steering};

/// What the process of an agent has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAction {
    /// Plan the run, check its limits and measure the machine; then call [`crate::Agent::ready`] or
    /// [`crate::Agent::cannot_run`].
    Prepare(Box<RunOrder>),
    /// Start the load; then call [`crate::Agent::report`] at the end of each interval.
    Start(StartOrder),
    /// Change the load.
    Steer(Steering),
    /// Tell the cores what those of other agents say.
    Hear(Vec<PeerOrder>),
    /// Ramp the load down: the run is ended before its time.
    CutShort,
    /// Forget the run: the agent is free for another one.
    Abandon,
    /// Tell this to the user.
    Say(AgentNote),
}

/// Publishes a message under a subject. Returns false if the bus refuses it.
pub type Publish<'a> = &'a mut dyn FnMut(&str, Vec<u8>) -> bool;
