//! Publications from any core to members on any core, on virtual time: who gets what, and what
//! becomes of those who are slow.

mod delivery;
mod mailbox;
mod slow;
mod world;
