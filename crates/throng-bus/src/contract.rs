//! What each bus can do, and why it may refuse to.

use crate::denial::BusDenial;
use crate::subscription::{BusSubscription, SubscriptionId};

/// A way to other machines, or to other parts of this process.
pub trait Bus: Send + Sync {
    /// Publishes a message under a subject. It does not wait for the network.
    ///
    /// # Errors
    /// The bus is away, the subject is not one, or the payload is too large. Nothing was sent.
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError>;

    /// Subscribes to a subject. `*` stands for one part of a subject, and `>` at its end for one or
    /// more: `throng.*.hello`, `throng.reports.>`.
    ///
    /// # Errors
    /// The bus is away, the pattern is not one, or the user of the bus may not subscribe to it.
    fn subscribe(&self, pattern: &str) -> Result<BusSubscription, BusError>;

    /// Adds patterns to a subscription of this bus, which then gets what is published under them,
    /// too. A message that matches several patterns of a subscription comes once for each of them.
    /// A pattern that it has already changes nothing.
    ///
    /// # Errors
    /// The bus is away, a pattern is not one, or the user of the bus may not subscribe to it.
    /// Nothing was added.
    fn extend(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError>;

    /// Ends patterns of a subscription. Messages on their way may still come.
    ///
    /// # Errors
    /// The bus is away: they go on.
    fn reduce(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError>;

    /// Reports whether the bus can be reached now. One that is away comes back by itself, and with
    /// it all subscriptions.
    fn is_reachable(&self) -> bool;

    /// Returns what the bus has not let its user do, without the first `told` of all denials. Each
    /// needed permission comes once: in particular that of what was published without one, which
    /// [`Self::publish`] does not learn.
    fn denials_after(&self, told: usize) -> Vec<BusDenial>;

    /// Returns the first thing that the bus has not let its user do; `None` if it has refused
    /// nothing.
    fn denial(&self) -> Option<BusDenial> {
        self.denials_after(0).into_iter().next()
    }
}

/// The reason why a bus does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The bus cannot be reached. The text says why.
    #[error("the bus cannot be reached: {0}")]
    Away(String),
    /// The subject or pattern is not one. The text says why.
    #[error("{0}")]
    Subject(String),
    /// The payload has more bytes than the bus carries.
    #[error("a message of {bytes} bytes is larger than the bus carries: {bytes_max} bytes")]
    TooLarge {
        /// Bytes of the payload.
        bytes: usize,
        /// Bytes that the bus carries.
        bytes_max: usize,
    },
    /// The user of the bus may not do this.
    #[error("{0}")]
    Denied(BusDenial),
}

/// Bytes of a payload at most: what a NATS server carries by default.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
