//! What the cores of several machines say to one another in a run that they make together.
//!
//! Cores of one machine have mailboxes and shared memory. Between machines, each core sends
//! [`PeerMessage`]s to the [`PeerHub`] of the run's coordinator, and hears [`PeerOrder`]s from it.
//! A core's number among those of all machines is its slot.
//!
//! A group of users that waits for one another goes on at a moment that the hub chooses a little
//! ahead ([`OPENED_AHEAD`]): by then all machines know it, and all users of the group go on at the
//! same time.

pub mod bounds;
mod hub;
mod remote_cues;
mod stats_bounds;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_base::Instant;

use crate::generator::ProbeMessage;
pub use hub::PeerHub;
pub(crate) use remote_cues::RemoteCues;

/// What a core says to cores of other machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerMessage {
    /// A message about a probe, to another core.
    Probe {
        /// The core's slot.
        to: usize,
        /// The message.
        message: ProbeMessage,
    },
    /// Users that have come to a barrier and left it.
    CueCount {
        /// The core's slot.
        from: usize,
        /// The barrier or signal.
        cue: u16,
        /// All users of the core so far.
        count: CueCount,
    },
    /// A user has given a signal.
    Raise {
        /// The signal.
        cue: u16,
    },
}

/// Users of one core at one barrier, since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CueCount {
    /// That have come.
    pub come: u64,
    /// That have left while they waited.
    pub left: u64,
    /// That were to go on, but had left meanwhile.
    pub absent: u64,
    /// That have gone on.
    pub gone_on: u64,
}

/// What a core hears from the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerOrder {
    /// A message about a probe, from another core.
    Probe {
        /// The core's slot.
        to: usize,
        /// The message.
        message: ProbeMessage,
    },
    /// Users that wait go on.
    OpenCue {
        /// The core's slot.
        to: usize,
        /// The barrier or signal.
        cue: u16,
        /// Number of the users, those who wait longest; all of them and all that come later for a
        /// signal.
        users: u64,
        /// The moment at which they go on, in microseconds since the run began.
        at_us: u64,
    },
}

impl PeerOrder {
    /// Returns the slot of the core that hears it.
    pub fn slot(&self) -> usize {
        match self {
            Self::Probe { to, .. } | Self::OpenCue { to, .. } => *to,
        }
    }

    /// Returns the moment of an order in a run that began at `start_at`.
    pub(crate) fn moment(at_us: u64, start_at: Instant) -> Instant {
        start_at + Duration::from_micros(at_us)
    }
}

/// Users that one core can have: they take 3.4 GiB there. A larger number of another machine is
/// refused.
pub const CORE_USERS_MAX: u64 = 1 << 24;
/// The time by which a moment of another machine may be ahead.
pub const AHEAD_MAX: Duration = Duration::from_secs(60);
/// The number of users that stands for all.
pub(crate) const ALL_USERS: u64 = u64::MAX;
/// Time between the decision that a group goes on and the moment at which it does.
pub const OPENED_AHEAD: Duration = Duration::from_millis(250);
