//! What cores say to one another about probes.

use serde::{Deserialize, Serialize};
use throng_driver::CoreId;

/// Messages about probes between cores. A core is named by its number among those of all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeMessage {
    /// Requests to open this probe: its present subscribers' deliveries become expected.
    Open(u32),
    /// Confirms that a core has opened the probe.
    Opened {
        /// The probe.
        number: u32,
        /// The core that has opened it.
        core: CoreId,
        /// Subscribers of that core, whose deliveries are expected.
        subscribers: u64,
    },
    /// Requests to send the probe when it is due.
    Send {
        /// The probe.
        number: u32,
        /// Cores that had no user to send it.
        tried: usize,
    },
    /// Reports that the probe was sent, or that no user can send it.
    Done(u32),
    /// Reports that the probe is not sent: no delivery is expected.
    Drop(u32),
}
