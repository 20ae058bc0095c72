//! What one look brings back.

use std::collections::BTreeMap;

use throng_report::{MachineUse, ProcessUse, ProgramUse};

use crate::fact::{Fact, Unknown};
use crate::netstat::NetCounters;

/// The kernel at one moment, in the form in which an interval of the run file keeps it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSample {
    /// Counters since the machine or the namespace began, and gauges, by name.
    pub counters: BTreeMap<String, i64>,
    /// CPU time of the whole machine.
    pub machine: Option<MachineUse>,
    /// The processes of interest, in the order of the options.
    pub processes: Vec<ProcessSample>,
    /// Other programs that took the most CPU time since they were last looked at, the most first; looked
    /// for only while the watched ones do not explain how busy the machine is.
    pub programs: Vec<ProgramUse>,
    /// What could not be read, and why.
    pub unknown: Vec<Unknown>,
}

/// A process of interest.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSample {
    /// As in [`Watched`](crate::Watched).
    pub label: String,
    /// What it used; `rss_bytes_at_start` is its memory when the sampler first saw it.
    pub used: Fact<ProcessUse>,
}

impl KernelSample {
    pub(super) fn set(&mut self, name: &str, value: u64) {
        self.counters.insert(name.to_owned(), i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(super) fn set_some(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    pub(super) fn set_sum(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        self.set(name, values.fold(0, u64::saturating_add));
    }

    pub(super) fn set_all(&mut self, counters: &NetCounters<'_>, group: &str, names: &[&str]) {
        for name in names {
            self.set_some(&format!("{group}.{name}"), counters.get(group, name));
        }
    }

    /// The value, or else a note of why there is none.
    pub(super) fn take<T>(&mut self, fact: Fact<T>) -> Option<T> {
        match fact {
            Fact::Known(value) => Some(value),
            Fact::Unknown(why) => {
                self.unknown.push(why);
                None
            }
        }
    }
}
