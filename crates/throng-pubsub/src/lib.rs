//! Topics and fan-out, without sockets: each core has one [`Hub`] with its subscribers.
//!
//! A [`Publication`] is made once, shared by all cores, and rendered at most once in each
//! [`Dialect`] that a subscriber speaks. It crosses to every other core once. There the hub
//! delivers it in *passes* over the topic's members: a pass takes all publications that are queued
//! for the topic when it begins, so that any number of them cost each member one write. Passes of
//! different topics take turns, a few deliveries each. The caller decides how many deliveries make
//! up a batch: nothing else on the core waits for longer than that.
//!
//! [`presence`] tracks the members of a topic. [`nodes`] is what servers that share topics say to
//! each other.

mod dialect;
mod frames;
mod hub;
mod members;
pub mod nodes;
pub mod presence;
mod publication;
mod rulebook;
mod rules;
mod topic;

pub use dialect::Dialect;
pub use frames::Frames;
pub use hub::{Delivery, DeliveryContent, Hub, PublishOutcome, TopicChange, TopicCounts};
pub use members::{Membership, Memberships, Subscription};
pub use publication::Publication;
pub use rulebook::Rulebook;
pub use rules::{Lane, Policy, TopicRules};
