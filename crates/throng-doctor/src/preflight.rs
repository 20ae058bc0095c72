//! The preflight: whether a machine can hold a number of connections, limit by limit, before any
//! packet is sent.
//!
//! It is arithmetic. Every [`Check`] states a limit, how much of it the connections need, and for
//! how many connections it is enough. [`preflight`] is pure: [`MachineLimits::read`] reads the
//! machine beforehand. A limit that could not be read stops no run, and is reported.

mod check;
mod fds;
mod memory;
mod ports;
mod queues;
mod requirements;
mod show;
mod tables;
#[cfg(test)]
mod tests;

use serde::Serialize;
use throng_base::units::show_count;
use throng_machine::MachineLimits;
use throng_measure::Limit;

pub use check::{Check, CheckState, Remedy, Sysctl, Unit};
pub use fds::cores_for;
pub use memory::{KERNEL_BYTES, kernel_bytes};
pub use requirements::{MachineRole, PortChoice, PortRequirements, Requirements};

/// Checks every limit on the way against the requirements.
pub fn preflight(required: &Requirements, machine: &MachineLimits) -> Preflight {
    let counts =
        CHECKS.iter().filter(|(limit, _)| limit.is_none_or(|limit| required.counts_against(limit)));
    Preflight {
        connections: required.connections,
        role: required.role,
        checks: counts.filter_map(|(_, check)| check(required, machine)).collect(),
    }
}

/// A check of one limit, if it applies.
type CheckLimit = fn(&Requirements, &MachineLimits) -> Option<Check>;

/// All checks. Some apply only where the driver's connections count against a limit.
const CHECKS: [(Option<Limit>, CheckLimit); 14] = [
    (Some(Limit::FDS), fds::tables),
    (Some(Limit::FILES), fds::files),
    (Some(Limit::FDS), fds::threads),
    (Some(Limit::PORTS), ports::ports),
    (Some(Limit::TIME_WAIT), ports::time_wait),
    (None, ports::listening_port),
    (None, memory::machine),
    (None, memory::cgroup),
    (Some(Limit::TCP_MEMORY), memory::buffers),
    (Some(Limit::EPOLL_WATCHES), tables::epoll_watches),
    (Some(Limit::CONNTRACK), tables::conntrack),
    (Some(Limit::TCP_HASH), tables::hash),
    (None, queues::accept_queue),
    (None, queues::syn_queue),
];

/// The result of a preflight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preflight {
    /// Required connections.
    pub connections: u64,
    /// Sides that run on this machine.
    pub role: MachineRole,
    /// Checks of all limits, in a fixed order.
    pub checks: Vec<Check>,
}

impl Preflight {
    /// Reports whether every known limit is enough.
    pub fn fits(&self) -> bool {
        self.in_state(CheckState::Short).next().is_none()
    }

    /// Returns the most connections that all known limits allow, or `None` if no limit is known.
    pub fn holds(&self) -> Option<u64> {
        self.nearest().and_then(holds)
    }

    /// Returns the limit that is reached first as connections grow.
    pub fn nearest(&self) -> Option<&Check> {
        let stops = self.checks.iter().filter(|check| check.stops && holds(check).is_some());
        stops.min_by_key(|check| holds(check))
    }

    /// Returns the checks in this state.
    pub fn in_state(&self, state: CheckState) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.state == state)
    }

    /// Returns the sysctls to change, each once, with the largest value that a check needs.
    pub fn sysctls(&self) -> Vec<&Sysctl> {
        let mut all: Vec<&Sysctl> = Vec::new();
        for sysctl in self.checks.iter().filter_map(Check::sysctl) {
            match all.iter_mut().find(|known| known.name == sysctl.name) {
                Some(known) if known.limit() < sysctl.limit() => *known = sysctl,
                Some(_) => {}
                None => all.push(sysctl),
            }
        }
        all
    }

    /// Returns one sentence: whether the connections fit, and which limit is reached first.
    pub fn verdict(&self) -> String {
        let (plural, fit, not) = match self.connections {
            1 => ("", "fits", "does not fit"),
            _ => ("s", "fit", "do not fit"),
        };
        let (number, role) = (show_count(self.connections), self.role.describe());
        let what = format!("{number} connection{plural}{role}");
        let (of, short) = (self.checks.len(), self.in_state(CheckState::Short).count());
        let unknown = self.in_state(CheckState::Unknown).count();
        let tight = self.in_state(CheckState::Tight).count();
        let first = self.in_state(CheckState::Short).min_by_key(|check| check.holds.unwrap_or(0));
        let mut text = match (first, self.nearest()) {
            (None, None) => format!("no limit that could be read is too low for {what}"),
            (None, Some(nearest)) => {
                let (limit, holds) = (&nearest.limit, nearest.show_holds());
                format!("{what} {fit}: of {of} limits {limit} is reached first, at {holds}")
            }
            (Some(first), _) => {
                let are = if short == 1 { "is" } else { "are" };
                let holds = first
                    .holds
                    .map_or_else(String::new, |_| format!(", holds {}", first.show_holds()));
                let is = if holds.is_empty() { " is " } else { ", " };
                format!(
                    "{what} {not}: {short} of {of} limits {are} short; the first{is}{}{holds}",
                    first.limit
                )
            }
        };
        if tight > 0 {
            text += &format!("; {tight} {} tight", if tight == 1 { "is" } else { "are" });
        }
        if unknown > 0 {
            text += &format!("; {unknown} of {of} could not be read");
        }
        text
    }
}

/// Returns the connections that a check allows: a limit that is short for any number allows none.
fn holds(check: &Check) -> Option<u64> {
    check.holds.or((check.state == CheckState::Short).then_some(0))
}
