//! The metrics of one sample.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Serialize};

use crate::Metric;
use crate::metric::MetricKind;

/// Values of a machine's metrics at one moment. An absent one is unknown, never zero.
///
/// Names that a newer version wrote are kept when a file is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelCounters(BTreeMap<Cow<'static, str>, i64>);

impl KernelCounters {
    /// Returns the value of a metric, if it is known.
    pub fn get(&self, metric: Metric) -> Option<i64> {
        self.0.get(metric.name()).copied()
    }

    /// Sets the value of a metric.
    pub fn set(&mut self, metric: Metric, value: i64) {
        self.0.insert(Cow::Borrowed(metric.name()), value);
    }

    /// Removes a metric.
    pub fn remove(&mut self, metric: Metric) {
        self.0.remove(metric.name());
    }

    /// Reports whether no metric is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the known metrics in order, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// Keeps the metrics whose names begin with one of `prefixes`.
    pub fn retain(&mut self, prefixes: &[&str]) {
        self.0.retain(|name, _| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    }

    /// Limits the values to between zero and `max`, and reports whether one was beyond. A limit of
    /// the machine may be larger: `files.max` is `i64::MAX` where there is none.
    pub(crate) fn bound(&mut self, max: i64) -> bool {
        let mut any = false;
        for (name, value) in &mut self.0 {
            // A counter of a limit's hits is no limit.
            let is_gauge = Metric::named(name).is_none_or(|it| it.kind() == MetricKind::Gauge);
            let is_limit = is_gauge && (name.contains("max") || name.contains("limit"));
            let bounded = (*value).clamp(0, if is_limit { i64::MAX } else { max });
            any |= bounded != *value;
            *value = bounded;
        }
        any
    }

    /// Adds up with the metrics of another network namespace: counters and gauges as a sum, maxima
    /// as the larger one. If that is not `of_another_kernel`, what is not about the network is the
    /// same number and counts once.
    pub fn add(&mut self, other: &Self, of_another_kernel: bool) {
        for (name, value) in &other.0 {
            let is_maximum = Metric::named(name).is_some_and(|it| it.kind() == MetricKind::Maximum);
            let is_apart = of_another_kernel || OF_A_NAMESPACE.iter().any(|p| name.starts_with(p));
            let sum = self.0.entry(name.clone()).or_insert(0);
            *sum =
                if is_maximum || !is_apart { *value.max(sum) } else { sum.saturating_add(*value) };
        }
    }

    /// Adds the metrics of `other`.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// How the names of metrics begin that each network namespace has for itself.
const OF_A_NAMESPACE: [&str; 6] =
    ["Tcp.", "TcpExt.", "IpExt.", "conntrack.", "listener.", "sockets."];

impl Index<Metric> for KernelCounters {
    type Output = i64;

    /// Returns the value of a metric that the sample has.
    ///
    /// # Panics
    /// The metric is not known: [`get`](KernelCounters::get) asks whether it is.
    fn index(&self, metric: Metric) -> &i64 {
        &self.0[metric.name()]
    }
}

impl FromIterator<(Metric, i64)> for KernelCounters {
    fn from_iter<T: IntoIterator<Item = (Metric, i64)>>(values: T) -> Self {
        let mut counters = Self::default();
        values.into_iter().for_each(|(metric, value)| counters.set(metric, value));
        counters
    }
}

impl<const N: usize> From<[(Metric, i64); N]> for KernelCounters {
    fn from(values: [(Metric, i64); N]) -> Self {
        values.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_may_be_larger_than_any_counter() {
        let names = [
            (Metric::FILES_MAX.name(), i64::MAX),
            (Metric::CGROUP_MEMORY_LIMIT_HITS.name(), 9),
            ("a.newer_max", 77),
        ];
        for (name, kept) in names {
            let mut counters = KernelCounters::default();
            let value = if kept == 9 { i64::MAX } else { kept };
            counters.0.insert(Cow::Borrowed(name), value);
            assert_eq!((counters.bound(9), counters.0[name]), (kept == 9, kept), "{name}");
        }
    }
}
