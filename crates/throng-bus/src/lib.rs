//! Messages between machines.
//!
//! A [`Bus`] carries messages under subjects. Within one process it is a [`MemoryBus`]; between
//! machines it is NATS (`NatsBus`, the feature `nats`). A bus promises what core NATS does, and no
//! more:
//!
//! - **At most once.** A message that a subscriber cannot take is lost to this subscriber. The
//!   subscription counts it.
//! - **In order.** The messages of one publisher under one subject come in the order in which they
//!   were published. There is no order between publishers.
//! - **To the present.** A subscriber gets what is published after [`Bus::subscribe`] returned. It
//!   gets what it publishes itself, too.
//! - **No queue for a bus that is away.** [`Bus::publish`] refuses a message while the bus is away,
//!   so that its caller knows what it has to say again.
//! - **Permissions are told.** A subscription without permission is refused. A message without it
//!   is lost, and [`Bus::denials_after`] names its subject.
//!
//! Who needs more numbers its messages and keeps them until they are acknowledged: an [`Outbox`]
//! does, and an [`Inbox`] at the other end. Nothing but the buses does input or output, and nothing
//! else here reads a clock.

mod bus_monitor;
mod contract;
mod delivery;
mod denial;
mod memory;
mod name;
#[cfg(feature = "nats")]
mod nats;
mod subject;
mod subscription;
mod text;

pub use bus_monitor::{BusChange, BusMonitor};
pub use contract::{Bus, BusError, PAYLOAD_BYTES_MAX};
pub use delivery::{Inbox, NotANumber, Outbox, RESEND_AFTER};
pub use denial::{BusAction, BusDenial};
pub use memory::MemoryBus;
pub use name::{NAME_BYTES_MAX, Name, NotAName, check_name};
#[cfg(feature = "nats")]
pub use nats::{ClientCertificate, NatsBus, NatsOptions};
pub use subject::SUBJECT_BYTES_MAX;
pub use subscription::{
    BusMessage, BusSubscription, SubscriptionEnd, SubscriptionId, WAITING_BYTES_MAX, WAITING_MAX,
};
pub use text::{NotAText, TEXT_BYTES_MAX, Text};
