//! One thread of the server was busy all the time while CPUs were idle.

use throng_machine::ThreadKind;
use throng_measure::{Endpoint, Finding, ProcessMetric, ServerSnapshot, Severity, Side};
use throng_report::render::count;

use super::cpu_cause::{BusyThread, CpuCause, collects};
use super::{Rule, RuleTrait};
use crate::cpus::{CpuUse, FULL_SHARE, ProcessCpus, lasting, mean, whole_percent};
use crate::impact::impact_of_server;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("hot_core", find).with(&[RuleTrait::LacksCpu]).explains(&[
    "server_cpu_saturated",
    "server_slow",
    "serves_only_some",
    "slow_consumers",
    "accept_queue_overflow",
]);

/// The thread hardly ever rests: more CPUs would not help it, more threads would. It may have to
/// share its CPU with other threads while others are idle. Several threads of a collector do the
/// same one after the other. Without a symptom it is the next bottleneck.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let intervals = CpuUse::of(run, Endpoint::Server).len();
    let hot = hot_intervals(run)?;
    let used = mean(&hot)?;
    let server = used.server?;
    let impact = impact_of_server(run).filter(|impact| used.at_ms <= impact.last_ms);
    if impact.is_none() && hot.len() * 2 <= intervals {
        return None;
    }
    let symptom =
        impact.as_ref().map_or_else(String::new, |impact| format!(" Meanwhile {}.", impact.what));
    let cause = CpuCause::of(run, &hot);
    let (sentence, remedy, evidence) = match cause {
        Some(CpuCause { sentence, remedy, evidence }) => (sentence, remedy, evidence),
        None => {
            let reason = Reason::of(run, &hot);
            (describe(&server, &reason.what)?, reason.remedy, Vec::new())
        }
    };
    let busiest = run.peak(Endpoint::Server, ProcessMetric::BUSIEST_THREAD_PERMILLE.server)?;
    let taken = run.growth(Endpoint::Server, ProcessMetric::CPU_US.server);
    let finding = Finding::new(RULE.id, Side::Server, format!("{sentence}.{symptom}"))
        .with_severity(impact.as_ref().map_or(Severity::Noted, |impact| impact.severity))
        .with_confidence(0.9)
        .with_evidence([busiest])
        .with_evidence(evidence)
        .with_evidence(taken.map(|growth| growth.evidence_from(used.at_ms)))
        .with_evidence(impact)
        .remedied_by(remedy);
    Some(finding)
}

/// Returns the intervals in which one thread had no time left.
fn hot_intervals(run: &RunView<'_>) -> Option<Vec<CpuUse>> {
    let uses = CpuUse::of(run, Endpoint::Server);
    let those = |is_so: fn(&CpuUse, &ProcessCpus) -> bool| {
        lasting(uses.clone(), |used| used.server.is_some_and(|server| is_so(used, &server)))
    };
    those(is_hot)
        .or_else(|| those(shares_its_cpu))
        .or_else(|| those(|used, server| collects(server) && used.taken_share() < FULL_SHARE))
}

/// Reports whether the thread is busy with something that more threads or workers would not change.
pub(super) fn has_cause(run: &RunView<'_>) -> bool {
    hot_intervals(run).is_some_and(|hot| CpuCause::of(run, &hot).is_some())
}

/// Describes a thread that was busy, and why it had all the work.
fn describe(server: &ProcessCpus, why: &str) -> Option<String> {
    let busy = server.busiest?;
    let waited = match wanted(server) - busy {
        waited if busy > BUSY_MIN || waited <= 0.0 => String::new(),
        waited => format!(" and waited for a CPU for another {}", whole_percent(waited)),
    };
    Some(format!(
        "One thread of the server was busy for {} of the time{waited} while the server used {:.1} \
         of the {:.0} CPUs that it may use: {why}",
        whole_percent(busy),
        server.taken,
        server.allowed,
    ))
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
    fn of(run: &RunView<'_>, hot: &[CpuUse]) -> Self {
        let last =
            run.samples().iter().filter_map(|sample| sample.interval.server.as_ref()).next_back();
        let Some(server) = last else { return Self::foreign(run, hot) };
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
    fn foreign(run: &RunView<'_>, hot: &[CpuUse]) -> Self {
        let threads =
            run.peak(Endpoint::Server, ProcessMetric::THREADS.server).map_or(1, |peak| peak.from);
        let busy = BusyThread::of(run, hot);
        let kind = busy.as_ref().and_then(|busy| ThreadKind::of(busy.thread));
        let who = busy.map_or_else(String::new, |busy| match busy.is_main {
            true => format!("the main thread of {}; ", busy.program),
            false => format!("`{}` of {}; ", busy.thread, busy.program),
        });
        let (what, remedy) = match kind {
            Some(ThreadKind::ErlangScheduler) => ("one Erlang process has the work", ONE_PROCESS),
            Some(ThreadKind::Compiler) => ("it still compiles what runs often", WARM_UP),
            _ if let Some(per_s) = handshakes_per_s(run, hot) => {
                let per_s = count(per_s);
                let what = format!("{who}it makes all {per_s} TLS handshakes a second");
                return Self { what, remedy: MORE_HANDSHAKES.to_owned() };
            }
            _ if threads == 1 => ("it has one thread", MORE_LOOPS),
            _ => {
                let what = format!("{who}the rest of its {threads} threads had little to do");
                return Self { what, remedy: MORE_LOOPS.to_owned() };
            }
        };
        Self { what: format!("{who}{what}"), remedy: remedy.to_owned() }
    }
}

const MORE_LOOPS: &str = "add processes or event loops on the same port (workers, SO_REUSEPORT), \
                          or move work out of that thread";

const MORE_HANDSHAKES: &str = "add processes or event loops on the same port (nginx \
                               worker_processes auto, Node cluster, SO_REUSEPORT); let sessions \
                               resume (the same ticket keys everywhere); use an ECDSA key";

/// Returns the handshakes of TLS a second in these intervals, if they are many, and users do hardly
/// anything else.
fn handshakes_per_s(run: &RunView<'_>, hot: &[CpuUse]) -> Option<f64> {
    let is_hot = |at_ms: u64| hot.iter().any(|used| used.at_ms == at_ms);
    let steps = run.steps().filter(|(_, now)| is_hot(now.interval.at_ms));
    let (mut handshakes, mut requests, mut ms) = (0, 0, 0);
    for (before, now) in steps {
        let grown = now.load()?.counters.since(&before.load()?.counters);
        handshakes += grown.tls_ok - grown.tls_resumed.min(grown.tls_ok);
        requests += grown.requests_begun();
        ms += now.interval.span_ms;
    }
    let per_s = handshakes as f64 * 1_000.0 / ms.max(1) as f64;
    (per_s >= HANDSHAKES_PER_S_MIN && requests <= handshakes * 2).then_some(per_s)
}

/// The fewest handshakes a second that can fill a thread.
const HANDSHAKES_PER_S_MIN: f64 = 20.0;

const ONE_PROCESS: &str = "find the process with the longest queue of messages (observer, \
                           process_info), and split its work: all of its callers wait for it";

const WARM_UP: &str = "let the server warm up under load before the run that counts; if it goes on \
                       for minutes, look at its code cache";

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
    use throng_measure::{Metric, Operation, RunEvent, RunEventKind};

    use super::super::fixture::Run;
    use super::*;

    /// A run with slow answers while one thread of the server uses 0.95 of two CPUs.
    fn hot() -> Run {
        Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 0, 980_000, 0)
            .with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 950)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 10)
            .with(ProcessMetric::THREADS.server, 9)
            .loaded(|load, _| load.times[Operation::Message].record_n(400_000, 500))
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

    /// The same run, in which this thread of the server was the busiest.
    fn hot_thread(program: &'static str, thread: &'static str, is_main: bool) -> Run {
        hot().changed(move |interval, second| {
            if second == 2 {
                let (program, thread) = (program.to_owned(), thread.to_owned());
                let busy = RunEventKind::ServerThreadBusy {
                    pid: 7,
                    program,
                    thread,
                    is_main,
                    permille: 950,
                };
                interval.events.push(RunEvent::new(2_000, busy));
            }
        })
    }

    #[test]
    fn the_thread_is_named_and_what_it_is() {
        let check = |run: Run, what: &str, remedy: &str| {
            let found = run.speaks(&RULE);
            assert!(found.first_sentence().ends_with(what), "{found}");
            assert!(found.remedy.contains(remedy), "{found}");
        };
        let rest = "the rest of its 9 threads had little to do";
        check(
            hot_thread("node", "node", true),
            &format!(": the main thread of node; {rest}"),
            "add processes",
        );
        check(
            hot_thread("java", "http-nio-1", false),
            &format!(": `http-nio-1` of java; {rest}"),
            "add processes",
        );
        check(
            hot_thread("beam.smp", "2_scheduler", false),
            ": `2_scheduler` of beam.smp; one Erlang process has the work",
            "longest queue of messages",
        );
        check(
            hot_thread("java", "C2 CompilerThre", false),
            "of java; it still compiles what runs often",
            "warm up",
        );
    }

    #[test]
    fn handshakes_of_tls_that_fill_a_thread_are_named() {
        let shaking = |requests: u64| {
            hot_thread("node", "node", true).loaded(move |load, second| {
                load.counters.tls_ok = 300 * second;
                load.counters.messages_sent = requests * second;
                load.counters.messages_answered = requests * second;
            })
        };
        let found = shaking(300).speaks(&RULE);
        assert!(
            found
                .first_sentence()
                .ends_with("the main thread of node; it makes all 300 TLS handshakes a second"),
            "{found}"
        );
        assert!(found.remedy.contains("worker_processes auto"), "{found}");
        assert!(!shaking(3_000).speaks(&RULE).text.contains("TLS"));
    }

    #[test]
    fn a_collector_needs_memory_and_no_processes() {
        let run = hot_thread("java", "VM Thread", false)
            .with(ProcessMetric::COLLECTOR_PERMILLE.server, 900);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The server's garbage collector (thread `VM Thread` of java) used 0.90 CPUs, 92 % of \
             all that the server used: its heap is too small, or each request makes too much \
             garbage"
        );
        assert!(found.remedy.contains("larger heap"), "{found}");
        assert!(!found.remedy.contains("processes"), "{found}");
        // Several threads share the work.
        let several = run.with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 460);
        assert!(several.speaks(&RULE).text.starts_with("The server's garbage collector"));
        several.with(ProcessMetric::COLLECTOR_PERMILLE.server, 300).is_silent(&RULE);
    }

    #[test]
    fn where_workers_are_idle_more_of_them_do_not_help() {
        let workers = |idle| {
            hot()
                .with(ProcessMetric::WORKERS.server, 4)
                .with(ProcessMetric::WORKERS_IDLE.server, idle)
        };
        let found = workers(3).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "One of the server's 4 worker processes was busy for 95 % of the time, and 3 were \
             idle: the connections are not spread over the workers"
        );
        assert!(!found.remedy.contains("add processes"), "{found}");
        assert!(workers(0).speaks(&RULE).remedy.starts_with("add processes"));
    }

    /// A run with ten times as many users and messages in its second half, where the median of
    /// answers is this long.
    fn two_loads(us: u64) -> Run {
        hot().loaded(move |load, second| {
            let done = 20 * second + 180 * second.saturating_sub(5);
            let counters = &mut load.counters;
            (counters.messages_sent, counters.messages_answered) = (done, done);
            counters.connected = if second > 5 { 500 } else { 50 };
            counters.connects_started = 500;
            load.times[Operation::Message].clear();
            load.times[Operation::Message].record_n(us, 20);
        })
    }

    #[test]
    fn a_thread_that_is_busy_at_any_load_computes_something_else() {
        let found = two_loads(300).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "One thread of the server was busy for 95 % of the time at any load, at 20 messages a \
             second as at 200: what it computes does not follow the load"
        );
        assert!(found.remedy.contains("epoll_wait"), "{found}");
        let closed = two_loads(300).with(Metric::LISTENER_CLOSE_WAIT, 500).speaks(&RULE);
        assert!(closed.remedy.contains("500 sockets that clients have closed"), "{closed}");
        // Where there was a queue, it had all that work to do.
        assert!(two_loads(300_000).speaks(&RULE).remedy.starts_with("add processes"));
        // It rested for a while where there was little to do.
        let follows = two_loads(300).changed(|interval, second| {
            if (2..4).contains(&second) {
                interval.kernel.set(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 300);
            }
        });
        assert!(follows.speaks(&RULE).remedy.starts_with("add processes"));
    }

    #[test]
    fn sockets_that_clients_have_closed_keep_a_loop_awake() {
        let in_time = |closed| {
            hot()
                .loaded(|load, _| {
                    load.times[Operation::Message].clear();
                    load.times[Operation::Message].record_n(300, 500);
                })
                .growing(Metric::LISTENER_CLOSE_WAIT, 0, closed, 0)
        };
        let found = in_time(50).speaks(&RULE);
        assert!(found.text.contains("keeps 500 sockets open that clients have closed"), "{found}");
        assert!(found.remedy.starts_with("close each socket"), "{found}");
        assert!(in_time(0).speaks(&RULE).remedy.starts_with("add processes"));
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
        let well = hot().loaded(|load, _| load.times[Operation::Message].clear());
        assert_eq!(well.speaks(&RULE).severity, Severity::Noted);
        let for_a_while = well.changed(|interval, second| {
            if second > 4 {
                interval.kernel.set(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, 300);
            }
        });
        for_a_while.is_silent(&RULE);
    }
}
