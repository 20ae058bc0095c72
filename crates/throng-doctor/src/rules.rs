//! Rules: each file looks for one cause that may have stopped a run.
//!
//! A rule is a pure function over a [`RunView`](crate::RunView). It returns at most one finding. It
//! returns one only when something happened to the run that its cause explains: a number that is
//! merely large is no finding. A rule does not guess what was not measured. Each rule has a test
//! where it must return a finding and a test where it must return none.

mod accept_backlog;
mod accept_queue_overflow;
mod accepts_slowly;
mod address_fails;
mod answer_owner;
mod answers_disordered;
mod answers_incomplete;
mod answers_larger;
mod answers_missing;
mod answers_repeated;
mod answers_unasked;
mod backlog_clamped;
mod certificate_expired;
mod certificate_issuer;
mod certificate_name;
mod cgroup_throttled;
mod client_certificate;
mod close_code;
mod close_times;
mod connections_max_reached;
mod conntrack_full;
mod cpu_cause;
mod cpu_contended;
mod cpu_stolen;
mod cues_unopened;
mod deliveries_missing;
mod epoll_watches_exhausted;
mod fds_exhausted;
mod gap_per_user;
mod generator_saturated;
mod half_open;
mod handshakes_cut;
mod handshakes_refused;
mod hot_core;
mod http_statuses;
mod kernel_row;
mod known_delays;
mod latency_grows;
mod latency_steps;
mod listen_backlog;
mod lost_answers;
mod machine_slow;
mod memory_grows;
mod memory_runs_out;
mod messages_unfinished;
mod network_lost;
mod never_accepts;
mod never_answers;
mod newest_first;
mod not_http;
mod orphans_aborted;
mod plain_at_tls_port;
mod port_conflict;
mod ports_exhausted;
mod proxy_saturated;
mod rate_limited;
mod retransmission;
mod retransmits;
mod rsa_certificate;
mod rule;
mod server_at_capacity;
mod server_closes_early;
mod server_cpu_saturated;
mod server_lost;
mod server_restarted;
mod server_slow;
mod server_stalled;
mod serves_only_some;
mod sessions_not_resumed;
mod slow_consumers;
mod slow_instance;
mod softnet_drops;
mod syn_queue_overflow;
mod tcp_hash_crowded;
mod tcp_memory_pressure;
mod time_wait_exhausted;
mod tls_apart;
mod tls_at_plain_port;
mod tls_fails;
mod tls_failures;
mod tls_truncated;
mod turns_missed;
mod wrong_answers;

pub(crate) use rule::RuleFinding;
pub use rule::{FindingClass, Rule, RuleTrait};

/// All rules. If two findings are equally grave and neither explains the other, the one whose rule
/// stands first here comes first: the cause that is nearer to the root and easier to remove.
pub const RULES: &[Rule] = &[
    cgroup_throttled::RULE,
    cpu_stolen::RULE,
    cpu_contended::RULE,
    machine_slow::RULE,
    generator_saturated::RULE,
    memory_runs_out::RULE,
    address_fails::RULE,
    never_accepts::RULE,
    never_answers::RULE,
    network_lost::RULE,
    server_lost::RULE,
    server_restarted::RULE,
    fds_exhausted::RULE,
    connections_max_reached::RULE,
    serves_only_some::RULE,
    ports_exhausted::RULE,
    port_conflict::RULE,
    epoll_watches_exhausted::RULE,
    conntrack_full::RULE,
    tcp_memory_pressure::RULE,
    backlog_clamped::RULE,
    half_open::RULE,
    accepts_slowly::RULE,
    accept_queue_overflow::RULE,
    syn_queue_overflow::RULE,
    softnet_drops::RULE,
    plain_at_tls_port::RULE,
    not_http::RULE,
    tls_at_plain_port::RULE,
    certificate_expired::RULE,
    certificate_name::RULE,
    certificate_issuer::RULE,
    tls_apart::RULE,
    client_certificate::RULE,
    tls_fails::RULE,
    handshakes_cut::RULE,
    rate_limited::RULE,
    handshakes_refused::RULE,
    http_statuses::RULE,
    answers_disordered::RULE,
    answers_unasked::RULE,
    answers_incomplete::RULE,
    messages_unfinished::RULE,
    wrong_answers::RULE,
    answers_repeated::RULE,
    answers_missing::RULE,
    newest_first::RULE,
    server_stalled::RULE,
    answers_larger::RULE,
    latency_grows::RULE,
    latency_steps::RULE,
    proxy_saturated::RULE,
    hot_core::RULE,
    server_cpu_saturated::RULE,
    slow_consumers::RULE,
    orphans_aborted::RULE,
    server_closes_early::RULE,
    server_at_capacity::RULE,
    slow_instance::RULE,
    server_slow::RULE,
    turns_missed::RULE,
    cues_unopened::RULE,
    deliveries_missing::RULE,
    retransmits::RULE,
    time_wait_exhausted::RULE,
    tcp_hash_crowded::RULE,
    memory_grows::RULE,
    rsa_certificate::RULE,
    sessions_not_resumed::RULE,
    tls_truncated::RULE,
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
            for other in rule.explains.iter().chain(rule.explains_later).chain(rule.follows_from) {
                assert!(*other != rule.id, "{other} explains itself");
                assert!(RULES.iter().any(|rule| rule.id == *other), "{other} is no rule");
            }
        }
    }

    #[test]
    fn a_quiet_run_gives_no_rule_anything_to_say() {
        fixture::Run::quiet().check_all(&[]);
    }
}
