//! Sessions that are resumed: the tickets that a server gives, and those that a client keeps.

mod keys;
mod pool;
mod sealer;

pub use keys::TicketKeys;
pub(crate) use pool::PoolStore;
pub use pool::TicketPool;
pub(crate) use sealer::TicketSealer;
