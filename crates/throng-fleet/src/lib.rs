//! What several machines need to make one run: a bus between them, delivery without losses over
//! it, and the offsets of their clocks.
//!
//! A [`Bus`] carries messages under subjects. Within one process it is a [`MemoryBus`]; between
//! machines it is [NATS](NatsBus). Nothing but the buses does input or output, and nothing here
//! reads a clock.

mod bus;
mod clock_offset;
mod delivery;

pub use bus::{
    Bus, BusError, BusMessage, BusSubscription, MemoryBus, NatsBus, NatsOptions, PAYLOAD_BYTES_MAX,
    SUBJECT_BYTES_MAX, SubscriptionEnd, WAITING_MAX,
};
pub use clock_offset::ClockOffset;
pub use delivery::{Inbox, Outbox, RESEND_AFTER};
