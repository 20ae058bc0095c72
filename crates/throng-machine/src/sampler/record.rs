//! The result of one sample.

use throng_measure::{
    Endpoint, KernelCounters, MachineUse, Metric, ProcessUse, ProgramUse, RunEventKind,
};

use crate::fact::{Fact, Unknown};
use crate::netstat::NetCounters;

/// The kernel at one time, in the form in which an interval of the run file keeps it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSample {
    /// Counters since the machine or the namespace started, and gauges, by name.
    pub counters: KernelCounters,
    /// CPU time of the whole machine.
    pub machine: Option<MachineUse>,
    /// Sampled processes, in the order of the options.
    pub processes: Vec<ProcessSample>,
    /// Other programs that used the most CPU time since the previous scan, the busiest first. They
    /// are looked for only while the sampled programs do not explain how busy the machine is.
    pub programs: Vec<ProgramUse>,
    /// Events that the sample found.
    pub events: Vec<RunEventKind>,
    /// Sources that could not be read, and why.
    pub unknown: Vec<Unknown>,
}

/// The use by one sampled process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSample {
    /// The program that it belongs to.
    pub program: Endpoint,
    /// Use by the process; `rss_bytes_at_start` is its memory when the sampler first saw it.
    pub used: Fact<ProcessUse>,
}

impl KernelSample {
    pub(super) fn set(&mut self, metric: Metric, value: u64) {
        self.counters.set(metric, i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(super) fn set_some(&mut self, metric: Metric, value: Option<u64>) {
        if let Some(value) = value {
            self.set(metric, value);
        }
    }

    pub(super) fn set_sum(&mut self, metric: Metric, values: impl Iterator<Item = u64>) {
        self.set(metric, values.fold(0, u64::saturating_add));
    }

    pub(super) fn set_all(&mut self, counters: &NetCounters<'_>, metrics: &[Metric]) {
        for metric in metrics {
            let value = metric.name().split_once('.');
            let value = value.and_then(|(group, name)| counters.get(group, name));
            self.set_some(*metric, value);
        }
    }

    /// Returns a known value, or keeps the reason why it is unknown.
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
