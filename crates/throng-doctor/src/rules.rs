//! What may have stopped a run: one file a cause.
//!
//! A rule is a pure function over a [`Case`] and says at most one thing. It speaks only where something happened to the run that
//! its cause explains; a number that is merely large is no finding. What it has not seen it does not guess.
//! Each has a test for when it must speak and one for when it must stay silent.

mod accept_backlog;
mod accept_queue_overflow;
mod backlog_clamped;
mod cgroup_throttled;
mod connections_max_reached;
mod conntrack_full;
mod cpu_contended;
mod cpu_stolen;
mod deliveries_missing;
mod epoll_watches_exhausted;
mod fds_exhausted;
mod generator_saturated;
mod half_open;
mod handshakes_refused;
mod hot_core;
mod memory_runs_out;
mod orphans_aborted;
mod port_conflict;
mod ports_exhausted;
mod retransmission;
mod retransmits;
mod server_closes_early;
mod server_cpu_saturated;
mod server_lost;
mod server_restarted;
mod server_slow;
mod server_stalled;
mod slow_consumers;
mod softnet_drops;
mod syn_queue_overflow;
mod tcp_hash_crowded;
mod tcp_memory_pressure;
mod time_wait_exhausted;
mod wrong_answers;

use throng_report::Finding;

use crate::run_view::RunView;

/// A cause by its name.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The id of its finding, which is also the name of its file.
    pub id: &'static str,
    /// Ids of what is a mere consequence wherever this one was found too: a finding of such an id comes after it.
    pub explains: &'static [&'static str],
    /// The rule itself.
    pub find: fn(&RunView<'_>) -> Option<Finding>,
}

/// What a program does that does not get the CPUs it wants, or only later.
const SLOW_FOR_WANT_OF_CPUS: &[&str] = &[
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

/// Other programs that have CPUs which the run could use: a caveat wherever they do not explain what happened.
pub const CAVEAT: &str = "cpu_contended";

/// What others do on the machine, or beside it.
pub(crate) const CONTENTION: &[&str] = &[CAVEAT, "cpu_stolen"];

/// What a server does by itself, whatever runs beside it.
pub(crate) const OWN_ACTS: &[&str] = &[
    "server_lost",
    "server_restarted",
    "handshakes_refused",
    "wrong_answers",
    "server_closes_early",
    "connections_max_reached",
    "server_stalled",
];

/// All of them. Where two findings are as grave and neither explains the other, the one that stands here first comes first: what is
/// nearer to the root of things, and easier to move.
pub const RULES: &[Rule] = &[
    cgroup_throttled::RULE,
    cpu_stolen::RULE,
    cpu_contended::RULE,
    generator_saturated::RULE,
    memory_runs_out::RULE,
    server_lost::RULE,
    server_restarted::RULE,
    fds_exhausted::RULE,
    connections_max_reached::RULE,
    ports_exhausted::RULE,
    port_conflict::RULE,
    epoll_watches_exhausted::RULE,
    conntrack_full::RULE,
    tcp_memory_pressure::RULE,
    backlog_clamped::RULE,
    half_open::RULE,
    accept_queue_overflow::RULE,
    syn_queue_overflow::RULE,
    softnet_drops::RULE,
    handshakes_refused::RULE,
    wrong_answers::RULE,
    server_stalled::RULE,
    hot_core::RULE,
    server_cpu_saturated::RULE,
    slow_consumers::RULE,
    orphans_aborted::RULE,
    server_closes_early::RULE,
    server_slow::RULE,
    deliveries_missing::RULE,
    retransmits::RULE,
    time_wait_exhausted::RULE,
    tcp_hash_crowded::RULE,
];

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_explains_rules_that_there_are_and_not_itself() {
        for rule in RULES {
            assert_eq!(RULES.iter().filter(|other| other.id == rule.id).count(), 1, "{}", rule.id);
            for explained in rule.explains {
                assert!(
                    *explained != rule.id && RULES.iter().any(|other| other.id == *explained),
                    "{explained}"
                );
            }
        }
    }

    #[test]
    fn a_quiet_run_gives_no_rule_anything_to_say() {
        fixture::Run::quiet().check_all(&[]);
    }
}
