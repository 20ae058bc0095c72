//! The preflight: whether a machine can hold so many connections, limit by limit, before anything is sent.
//!
//! It is arithmetic: every [`Check`] says what a limit is, how much of it the connections need, and for how many
//! connections it is enough. [`preflight`] is pure: [`MachineLimits::read`] has asked the machine beforehand. A limit that
//! could not be read stops nobody, and is said.

mod check;
mod fds;
mod machine;
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

pub use check::{Check, CheckState, Remedy, Sysctl, Unit};
pub use fds::cores_for;
pub use machine::{Conntrack, MachineLimits, parse_threads};
pub use memory::{KERNEL_BYTES, kernel_bytes};
pub use requirements::{MachineRole, PortChoice, PortRequirements, Requirements};

/// Holds every limit on the way against what was asked for.
pub fn preflight(ask: &Requirements, machine: &MachineLimits) -> Preflight {
    let checks = [
        fds::tables(ask, machine),
        fds::files(ask, machine),
        fds::threads(ask, machine),
        ports::ports(ask, machine),
        ports::time_wait(ask, machine),
        ports::listening_port(ask, machine),
        memory::machine(ask, machine),
        memory::cgroup(ask, machine),
        memory::buffers(ask, machine),
        tables::epoll_watches(ask, machine),
        tables::conntrack(ask, machine),
        tables::hash(ask, machine),
        queues::accept_queue(ask, machine),
        queues::syn_queue(ask, machine),
    ];
    Preflight {
        connections: ask.connections,
        role: ask.role,
        checks: checks.into_iter().flatten().collect(),
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preflight {
    /// How many connections were asked for.
    pub connections: u64,
    /// Which ends are here.
    pub role: MachineRole,
    /// The limits on the way, in a fixed order.
    pub checks: Vec<Check>,
}

impl Preflight {
    /// Whether no limit stands against it.
    pub fn fits(&self) -> bool {
        self.in_state(CheckState::Short).next().is_none()
    }

    /// The most connections that every limit which is known allows; none when none is known.
    pub fn holds(&self) -> Option<u64> {
        self.nearest().and_then(holds)
    }

    /// The limit that comes first as connections grow.
    pub fn nearest(&self) -> Option<&Check> {
        let stops = self.checks.iter().filter(|check| check.stops && holds(check).is_some());
        stops.min_by_key(|check| holds(check))
    }

    /// The checks that came out so.
    pub fn in_state(&self, state: CheckState) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.state == state)
    }

    /// The sysctls that would have to change, each once with the largest value that a check asks for.
    pub fn sysctls(&self) -> Vec<&Sysctl> {
        let mut all: Vec<&Sysctl> = Vec::new();
        for sysctl in self.checks.iter().filter_map(Check::sysctl) {
            match all.iter_mut().find(|known| known.name == sysctl.name) {
                Some(known) if known.height() < sysctl.height() => *known = sysctl,
                Some(_) => {}
                None => all.push(sysctl),
            }
        }
        all
    }

    /// One sentence: they fit or they do not, and which limit comes first.
    pub fn verdict(&self) -> String {
        let (plural, fit, not) = match self.connections {
            1 => ("", "fits", "does not fit"),
            _ => ("s", "fit", "do not fit"),
        };
        let (number, role) = (show_count(self.connections), self.role.words());
        let what = format!("{number} connection{plural}{role}");
        let (of, short) = (self.checks.len(), self.in_state(CheckState::Short).count());
        let unknown = self.in_state(CheckState::Unknown).count();
        let tight = self.in_state(CheckState::Tight).count();
        let first = self.in_state(CheckState::Short).min_by_key(|check| check.holds.unwrap_or(0));
        let mut text = match (first, self.nearest()) {
            (None, None) => format!("nothing that could be read stands against {what}"),
            (None, Some(nearest)) => {
                let (limit, holds) = (&nearest.limit, nearest.show_holds());
                format!("{what} {fit}: of {of} limits {limit} comes first, at {holds}")
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

/// How many connections a check allows: what is short whatever their number allows none.
fn holds(check: &Check) -> Option<u64> {
    check.holds.or((check.state == CheckState::Short).then_some(0))
}
