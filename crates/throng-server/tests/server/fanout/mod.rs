//! Publications from any core to members on any core, on virtual time: which members receive them,
//! and what happens to slow ones.

mod delivery;
mod mailbox;
mod slow;
mod world;
