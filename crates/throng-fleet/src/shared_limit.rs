//! A limit that an agent shares with the other agents of its machine.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use throng_bus::Text;
use throng_doctor::preflight::Check;
use throng_run::{boot_id, net_namespace};

use crate::within;

/// A limit that an agent shares with all agents that name the same place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLimit {
    /// The limit, as the system writes it.
    pub limit: Text,
    /// Where it holds: the machine, or source addresses in a network namespace.
    pub place: Text<PLACE_BYTES_MAX>,
    /// Connections of all agents there that it allows.
    #[serde(deserialize_with = "within::count")]
    pub connections: u64,
}

impl SharedLimit {
    /// Returns the limits among these checks that others share who run on this machine, or connect
    /// from these source addresses of its network namespace.
    pub(crate) fn of_checks(checks: &[Check], sources: &[IpAddr]) -> Vec<Self> {
        let Some(machine) = boot_id() else { return Vec::new() };
        let network = net_namespace().map(|network| {
            let mut sources: Vec<_> = sources.iter().map(ToString::to_string).collect();
            sources.sort();
            format!("{machine} {network} {}", sources.join(" "))
        });
        let shared = |check: &Check| {
            let place = match check.id {
                "memory" | "fs_file_max" => machine.clone(),
                "ports" => network.clone()?,
                _ => return None,
            };
            let connections = check.holds.filter(|_| check.stops)?;
            let (limit, place) = (Text::cut(&check.limit), Text::cut(&place));
            Some(Self { limit, place, connections })
        };
        checks.iter().filter_map(shared).collect()
    }
}

/// Bytes of a place at most: it has the source addresses of an agent.
const PLACE_BYTES_MAX: usize = 4 << 10;
