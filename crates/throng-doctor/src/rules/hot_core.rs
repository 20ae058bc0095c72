//! One thread of the server was busy all the time while CPUs were idle.

use throng_report::render::count;
use throng_report::{Endpoint, Finding, ProcessMetric, ServerSnapshot, Severity, Side};

use super::{Rule, RuleTrait};
use crate::cpus::{CpuUse, FULL_SHARE, ProcessCpus, lasting, mean, whole_percent};
use crate::impact::impact_of_server;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("hot_core", find).with(&[RuleTrait::LacksCpu]).explains(&[
    "server_cpu_saturated",
    "server_slow",
    "slow_consumers",
    "accept_queue_overflow",
]);

/// The thread hardly ever rests: more CPUs would not help it, more threads would. It may have to
/// share its CPU with other threads while others are idle. Without a symptom it is the next
/// bottleneck.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let uses = CpuUse::of(run, Endpoint::Server);
    let intervals = uses.len();
    let those = |is_so: fn(&CpuUse, &ProcessCpus) -> bool| {
        lasting(uses.clone(), |used| used.server.is_some_and(|server| is_so(used, &server)))
    };
    let hot = those(is_hot).or_else(|| those(shares_its_cpu))?;
    let used = mean(&hot)?;
    let server = used.server?;
    let impact = impact_of_server(run).filter(|impact| used.at_ms <= impact.last_ms);
    if impact.is_none() && hot.len() * 2 <= intervals {
        return None;
    }
    let reason = Reason::of(run);
    let symptom =
        impact.as_ref().map_or_else(String::new, |impact| format!(" Meanwhile {}.", impact.what));
    let busy = server.busiest?;
    let waited = match wanted(&server) - busy {
        waited if busy > BUSY_MIN || waited <= 0.0 => String::new(),
        waited => format!(" and waited for a CPU for another {}", whole_percent(waited)),
    };
    let text = format!(
        "One thread of the server was busy for {} of the time{waited} while the server used {:.1} \
         of the {:.0} CPUs that it may use: {}.{symptom}",
        whole_percent(busy),
        server.taken,
        server.allowed,
        reason.what
    );
    let busiest = run.peak(Endpoint::Server, ProcessMetric::BUSIEST_THREAD_PERMILLE.server)?;
    let taken = run.growth(Endpoint::Server, ProcessMetric::CPU_US.server);
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(impact.as_ref().map_or(Severity::Noted, |impact| impact.severity))
        .with_confidence(0.9)
        .with_evidence([busiest])
        .with_evidence(taken.map(|growth| growth.evidence_from(used.at_ms)))
        .with_evidence(impact)
        .remedied_by(reason.remedy);
    Some(finding)
}

/// Reports whether one thread of the server is busy while CPUs are left for others.
fn is_hot(used: &CpuUse, server: &ProcessCpus) -> bool {
    let waits = server.most_delayed.unwrap_or(0.0) > DELAYED_MAX;
    let left = server.allowed > 1.0 && server.taken < server.allowed * LEFT_BELOW;
    let room = used.taken_share() < FULL_SHARE || !waits;
    server.busiest.unwrap_or(0.0) > BUSY_MIN && left && room
}

/// Reports whether one thread would be busy if it had a CPU for itself, while CPUs are idle.
fn shares_its_cpu(used: &CpuUse, server: &ProcessCpus) -> bool {
    wanted(server) > BUSY_MIN && server.allowed > 1.0 && used.taken_share() < FULL_SHARE
}

/// Returns the share of time for which the busiest thread ran or waited for a CPU. The wait is
/// known only for a server in which no other thread has much to do.
fn wanted(server: &ProcessCpus) -> f64 {
    let busiest = server.busiest.unwrap_or(0.0);
    let is_one = server.taken <= busiest * OTHERS_TIMES;
    busiest + server.missed.filter(|_| is_one).unwrap_or(0.0).min(1.0 - busiest)
}

/// Reason why one thread had all the work.
struct Reason {
    what: String,
    remedy: String,
}

impl Reason {
    fn of(run: &RunView<'_>) -> Self {
        let last =
            run.samples().iter().filter_map(|sample| sample.interval.server.as_ref()).next_back();
        let Some(server) = last else { return Self::foreign(run) };
        let waiting = run.peak_of("server.counters.registry_mailbox_most", |sample| {
            Some(sample.interval.server.as_ref()?.counters.registry_mailbox_most as i64)
        });
        if server.cores == 1 {
            return Self {
                what: "it has one event loop".to_owned(),
                remedy: "throng serve --cores 2, or more".to_owned(),
            };
        }
        if let Some(waiting) =
            waiting.filter(|waiting| server.accept == "dispatch" && waiting.value >= WAITING_MIN)
        {
            return Self {
                what: format!("{} accepts waited for one registry", count(waiting.value as f64)),
                remedy: "throng serve --accept reuseport: then no accept waits for another core"
                    .to_owned(),
            };
        }
        if let Some((most, all)) = unbalanced(server) {
            return Self {
                what: format!(
                    "one core has {} of {} connections",
                    count(most as f64),
                    count(all as f64)
                ),
                remedy: "spread connections evenly (throng serve --accept reuseport), from more \
                         source addresses or ports"
                    .to_owned(),
            };
        }
        let counters = &server.counters;
        if counters.topics > 0
            && counters.topics <= server.cores
            && counters.fanned_out > counters.messages_sent
        {
            return Self {
                what: "one topic causes most of the work".to_owned(),
                remedy: "split the topic, publish less often to it, or give each message to fewer \
                         members"
                    .to_owned(),
            };
        }
        Self {
            what: format!("its {} event loops do not share the work", server.cores),
            remedy: "spread the busiest connections over more cores".to_owned(),
        }
    }

    /// Returns the reason for a server that is not throng: only its threads are known.
    fn foreign(run: &RunView<'_>) -> Self {
        let threads =
            run.peak(Endpoint::Server, ProcessMetric::THREADS.server).map_or(1, |peak| peak.from);
        Self {
            what: match threads {
                1 => "it has one thread".to_owned(),
                threads => format!("the rest of its {threads} threads had little to do"),
            },
            remedy: "add processes or event loops on the same port (workers, SO_REUSEPORT), or \
                     move work out of that thread"
                .to_owned(),
        }
    }
}

/// Returns the connections of the fullest core and of all cores, if that core has more than one and
/// a half times its share.
fn unbalanced(server: &ServerSnapshot) -> Option<(u64, u64)> {
    let all: u64 = server.open_per_core.iter().sum();
    let most = server.open_per_core.iter().copied().max()?;
    let cores = server.open_per_core.len() as u64;
    (all >= CONNECTIONS_MIN && cores > 1 && most * cores > all * 3 / 2).then_some((most, all))
}

/// The load above which a thread has no time left.
const BUSY_MIN: f64 = 0.85;

/// The CPU time of all threads, in times that of the busiest, up to which the others do nothing.
const OTHERS_TIMES: f64 = 1.1;

/// The share of its CPUs below which a server has some left that its busiest thread cannot use.
const LEFT_BELOW: f64 = 0.85;

/// The longest delay of a hot thread on a full machine: a thread that waits longer lacks CPU time.
const DELAYED_MAX: f64 = 0.10;

/// The fewest accepts in a mailbox at a time that are no coincidence.
const WAITING_MIN: i64 = 16;

/// The fewest connections whose distribution means something: fewer are uneven by chance.
const CONNECTIONS_MIN: u64 = 32;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    /// A run with slow answers while one thread of the server uses 0.95 of two CPUs.
    fn hot() -> Run {
        Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 0, 980_000, 0)
            .with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 950)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 10)
            .with(ProcessMetric::THREADS.server, 9)
            .loaded(|load, _| load.message.record_n(400_000, 500))
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_400_000 * second, 600_000 * second);
            })
    }

    fn serving(run: Run, change: impl Fn(&mut ServerSnapshot)) -> Run {
        run.changed(move |interval, _| {
            let mut server =
                ServerSnapshot { cores: 4, accept: "reuseport".into(), ..Default::default() };
            change(&mut server);
            interval.server = Some(server);
        })
    }

    #[test]
    fn a_thread_at_its_end_beside_idle_cpus_is_reported() {
        let found = hot().speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "One thread of the server was busy for 95 % of the time while the server used 1.0 of \
             the 2 CPUs that it may use: the rest of its 9 threads had little to do"
        );
        hot().check_all(&["hot_core"]);
    }

    #[test]
    fn a_thread_that_shares_its_cpu_beside_idle_ones_is_reported() {
        let sharing = |delay_us| {
            hot()
                .growing(ProcessMetric::CPU_US.server, 0, 520_000, 0)
                .growing(ProcessMetric::RUN_DELAY_US.server, 0, delay_us, 0)
                .with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 500)
                .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, delay_us / 1000)
        };
        let begin = "One thread of the server was busy for 50 % of the time and waited for a CPU \
                     for another 45 % while the server used 0.5 of the 2 CPUs";
        let found = sharing(450_000).speaks(&RULE);
        assert!(found.text.starts_with(begin), "{found}");
        // It has time left; or other threads wait.
        sharing(200_000).is_silent(&RULE);
        sharing(450_000).growing(ProcessMetric::CPU_US.server, 0, 900_000, 0).is_silent(&RULE);
    }

    #[test]
    fn a_throng_server_says_why_it_was_one() {
        let check = |run: Run, what: &str, remedy: &str| {
            let found = run.speaks(&RULE);
            assert!(found.first_sentence().ends_with(what), "{found}");
            assert!(found.remedy.contains(remedy), "{found}");
        };
        check(serving(hot(), |server| server.cores = 1), "it has one event loop", "--cores");
        check(
            serving(hot(), |server| {
                server.accept = "dispatch".into();
                server.counters.registry_mailbox_most = 400;
            }),
            "400 accepts waited for one registry",
            "reuseport",
        );
        check(
            serving(hot(), |server| server.open_per_core = vec![900, 50, 30, 20]),
            "one core has 900 of 1k connections",
            "evenly",
        );
        check(
            serving(hot(), |server| {
                server.open_per_core = vec![250; 4];
                (server.counters.topics, server.counters.fanned_out) = (4, 1_000_000);
            }),
            "one topic causes most of the work",
            "split the topic",
        );
    }

    #[test]
    fn threads_that_are_all_busy_or_wait_for_a_full_machine_are_not_one_thread() {
        hot().growing(ProcessMetric::CPU_US.server, 0, 1_900_000, 0).is_silent(&RULE);
        hot()
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 400)
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_990_000 * second, 10_000 * second);
            })
            .is_silent(&RULE);
        hot().with(ProcessMetric::CPUS_ALLOWED.server, 1).is_silent(&RULE);
    }

    #[test]
    fn a_busy_thread_that_was_in_time_is_what_comes_next() {
        let well = hot().loaded(|load, _| load.message.clear());
        assert_eq!(well.speaks(&RULE).severity, Severity::Noted);
        let for_a_while = well.changed(|interval, second| {
            if second > 4 {
                interval.kernel.set(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 300);
            }
        });
        for_a_while.is_silent(&RULE);
    }
}
