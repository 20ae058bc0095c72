//! Sessions that are resumed: the tickets that a server gives, and those that a client keeps.

mod pool;
mod sealer;

pub(crate) use pool::PoolStore;
pub use pool::TicketPool;
pub use sealer::TicketMaster;
pub(crate) use sealer::TicketSealer;
