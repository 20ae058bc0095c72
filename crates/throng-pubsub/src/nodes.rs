//! Servers that share topics: what one node knows of the others, and what they say to each other.
//!
//! A *node* is a server process. A [`NodeProtocol`] is its state: the other nodes, the members that
//! each of them tracks, and the messages that are due. It does no input or output: its caller gives
//! it the time and the messages that a bus has carried, and executes its [`NodeAction`]s. Three
//! more parts are independent of it:
//!
//! - [`TopicInterest`] knows which subjects the node subscribes to: one for each topic that has
//!   members here, or, with very many topics, one for each shard that a topic hashes into.
//! - [`PublicationBatches`] collects what this node publishes, by subject.
//! - [`BatchFilter`] reads the batches of other nodes, each once.
//!
//! The bus may lose messages. Publications are not repeated. Presence heals: each node numbers its
//! changes, and a node that misses a number requests the whole state of the node that changed it.

mod batch;
mod filter;
mod id;
mod interest;
mod members;
mod packet;
mod peer;
mod protocol;
mod subjects;
mod transfer;
mod wire;

pub use batch::{PublicationBatch, PublicationBatches, SharedPublication};
pub use filter::{BatchFilter, BatchRefusal};
pub use id::NodeId;
pub use interest::{SubscriptionChanges, TOPIC_SUBSCRIPTIONS_MAX, TopicInterest};
pub use packet::PACKET_BYTES_MAX;
pub use protocol::{HEARTBEAT_EVERY, LOST_AFTER, NodeAction, NodeProtocol};
pub use subjects::{NodeSubjects, SHARDS, TopicSubject};
