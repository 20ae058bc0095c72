//! A rule: a cause by its name.

use throng_report::Finding;

use crate::run_view::RunView;

/// A named cause and the function that looks for it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Id of the finding, and name of the rule's file.
    pub id: &'static str,
    /// Ids of findings that are mere consequences when this rule found something too: such a
    /// finding is ranked after this one.
    pub explains: &'static [&'static str],
    /// Looks for the cause in a run.
    pub find: fn(&RunView<'_>) -> Option<Finding>,
}

/// Ids of findings that follow when a program gets too few CPUs, or gets them late.
pub(super) const CPU_SHORTAGE_SYMPTOMS: &[&str] = &[
    "generator_saturated",
    "cpu_contended",
    "server_cpu_saturated",
    "hot_core",
    "server_stalled",
    "server_slow",
    "slow_consumers",
    "half_open",
    "accept_queue_overflow",
];
