//! Many machines make one run: agents, which run the load, and a coordinator, which orders it and
//! records it.
//!
//! [`Agent`] and [`Coordinator`] are the two sides of the protocol: pure state machines, which take
//! time and messages as arguments. [`AgentProcess`] and [`Fleet`] connect them with a bus, a clock
//! and a load. A [`Link`](link::Link) between the two loses nothing while the bus is away.

mod agent;
mod clock_offset;
mod coordinator;
mod envelope;
mod link;
pub mod message;
mod subjects;

pub use agent::{Agent, AgentAction, Publish};
pub use clock_offset::ClockOffset;
pub use coordinator::{AGENT_LOST_AFTER, Coordinator, KnownAgent, Member, MemberState};
pub use link::KEEP_ALIVE;
pub use subjects::{GroupSubjects, NotAName, check_name};
