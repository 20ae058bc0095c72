//! Connects to one address of a target whose name has several.

use serde::{Deserialize, Serialize};

use crate::Tally;

/// Counters of the connects to one address of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddressConnects {
    /// The address, `192.0.2.7:4000`.
    pub address: String,
    /// Connects that succeeded.
    pub ok: u64,
    /// Connects that failed, by errno, `timeout` or the fault of the upgrade.
    pub failed: Tally,
}
