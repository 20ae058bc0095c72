//! The server answered nobody for a time: all users waited at once, and then got their answers at once.

use throng_report::render::{count, micros};
use throng_report::{Evidence, Finding, Severity, Side};

use super::Rule;
use crate::case::{Case, End};
use crate::gaps::{Gap, gaps};
use crate::harm::{GAP_MS, gap_evidence};
use crate::history::Moment;

pub(super) const RULE: Rule = Rule {
    id: "server_stalled",
    explains: &[
        "server_slow",
        "server_lost",
        "hot_core",
        "accept_queue_overflow",
        "syn_queue_overflow",
        "half_open",
    ],
    find,
};

/// One long time, or several shorter ones. What the server did meanwhile is told as far as its CPU time, its state and its queue
/// say: a loop that computes and a process that was stopped look the same to those who wait.
fn find(case: &Case<'_>) -> Option<Finding> {
    let found = gaps(case, SHORT_MS);
    let found: Vec<_> = found.into_iter().filter(|gap| !waits_for_a_cpu(case, gap)).collect();
    let longest = found.iter().max_by_key(|gap| gap.gap.length_ms())?;
    let is_long = longest.gap.length_ms() >= long_ms(case);
    if !is_long && found.len() < SEVERAL {
        return None;
    }
    let told: Vec<_> = match is_long {
        // Beside a long one, those that are much shorter are what comes after it.
        true => {
            found.iter().filter(|gap| gap.gap.length_ms() * 4 >= longest.gap.length_ms()).collect()
        }
        false => found.iter().collect(),
    };
    let doing = Doing::of(case, longest);
    let (text, remedy) = words(&told, longest, &doing);
    let mut found = Finding::new(RULE.id, Side::Server, text)
        .with_severity(if gave_up(case, &told) { Severity::Stopped } else { Severity::Slowed })
        .with_confidence(if doing.is_seen { 0.9 } else { 0.7 });
    found.evidence.extend(told.iter().take(GAPS_SHOWN).map(|gap| gap_evidence(gap.gap)));
    found.evidence.extend(doing.evidence);
    Some(found.remedied_by(remedy))
}

/// From which length on a single gap is told: shorter where a threshold about latencies was missed.
fn long_ms(case: &Case<'_>) -> u64 {
    let kinds = ["message", "push", "join"];
    let asked_us = kinds.iter().filter_map(|kind| case.asked.latency_us(kind)).min();
    asked_us.map_or(GAP_MS, |us| (us / 1000).clamp(SHORT_MS, GAP_MS))
}

/// Whether the server waited for a CPU then: it is not the server that stood still.
fn waits_for_a_cpu(case: &Case<'_>, gap: &Gap<'_>) -> bool {
    let name = "process.server.most_delayed_thread_permille";
    let delayed = |moment: &&Moment| case.value(End::Server, moment, name) > Some(DELAYED_MOST);
    within(case, gap).any(|moment| delayed(&moment))
}

/// The intervals that a gap has a part in.
fn within<'a>(case: &Case<'a>, gap: &Gap<'_>) -> impl Iterator<Item = &'a Moment> {
    let (from_ms, to_ms) = (gap.gap.from_ms, gap.gap.to_ms);
    case.moments().iter().filter(move |moment| {
        let end_ms = moment.interval.at_ms;
        end_ms > from_ms && end_ms.saturating_sub(moment.interval.span_ms) < to_ms
    })
}

/// Whether users gave up waiting meanwhile.
fn gave_up(case: &Case<'_>, gaps: &[&Gap<'_>]) -> bool {
    ["expect_timeout", "push_timeout", "join_timeout", "heartbeat_timeout"]
        .into_iter()
        .filter_map(|kind| case.errors(kind))
        .any(|growth| gaps.iter().any(|gap| growth.began_ms + 1_000 >= gap.gap.from_ms))
}

/// What the server did in a gap.
struct Doing {
    what: What,
    /// Whether its process could be looked at.
    is_seen: bool,
    /// Connections that waited to be accepted, where they became more.
    queued: Option<i64>,
    /// Its control socket was silent too.
    is_silent: bool,
    /// CPUs that it took.
    cpus: Option<f64>,
    pid: Option<u64>,
    evidence: Vec<Evidence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A signal or a debugger had stopped it.
    Stopped,
    /// It used no CPU, and waited in the kernel.
    Uninterruptible,
    /// It used no CPU.
    Idle,
    /// It computed without a rest.
    Busy,
    /// Either, or both.
    Unclear,
}

impl Doing {
    fn of(case: &Case<'_>, gap: &Gap<'_>) -> Self {
        let moments: Vec<_> = within(case, gap).collect();
        let inside = || {
            let is_inside =
                |moment: &&&Moment| moment.interval.at_ms < gap.gap.to_ms || gap.is_open;
            moments.iter().filter(is_inside).copied()
        };
        let value = |moment: &Moment, name: &str| {
            case.value(End::Server, moment, &format!("process.server.{name}"))
        };
        let most = |name: &str| moments.iter().filter_map(|moment| value(moment, name)).max();
        let is_so = |name: &str| inside().any(|moment| value(moment, name) > Some(0));
        let length_ms = gap.gap.length_ms() as i64;
        let is_most_of = |name: &str| most(name) >= Some(length_ms * 6 / 10);
        let cpus = cpus(case, gap);
        let what = match () {
            () if is_so("stopped") => What::Stopped,
            () if is_most_of("busy_ms_most") => What::Busy,
            () if is_most_of("idle_ms_most") && is_so("uninterruptible") => What::Uninterruptible,
            () if is_most_of("idle_ms_most") => What::Idle,
            () if most("idle_ms_most").is_none() && cpus.is_some_and(|cpus| cpus < IDLE_CPUS) => {
                What::Idle
            }
            () => What::Unclear,
        };
        let mut evidence = Vec::new();
        let queue = |moment: &Moment| case.value(End::Server, moment, "listener.accept_queue");
        let before = case.moments().iter().rev();
        let before = before.clone().find(|moment| moment.interval.at_ms <= gap.gap.from_ms);
        let queued_before = before.and_then(|moment| queue(moment)).unwrap_or(0);
        let fullest =
            inside().filter_map(|m| Some((m.interval.at_ms, queue(m)?))).max_by_key(|(_, n)| *n);
        let queued = fullest.filter(|(_, queued)| *queued >= queued_before + QUEUED_MIN);
        evidence.extend(queued.map(|(at_ms, queued)| Evidence {
            counter: "listener.accept_queue".to_owned(),
            from: queued_before as f64,
            to: queued as f64,
            at_ms,
        }));
        let name = match what {
            What::Stopped => "stopped",
            What::Busy => "busy_ms_most",
            _ => "idle_ms_most",
        };
        evidence.extend(
            moments
                .iter()
                .filter_map(|m| Some((m.interval.at_ms, value(m, name)?)))
                .max_by_key(|(_, n)| *n)
                .map(|(at_ms, to)| Evidence {
                    counter: format!("process.server.{name}"),
                    from: before.and_then(|moment| value(moment, name)).unwrap_or(0) as f64,
                    to: to as f64,
                    at_ms,
                }),
        );
        let spoke = before.is_some_and(|moment| moment.interval.server.is_some());
        Self {
            what,
            is_seen: most("cpu_us").is_some(),
            queued: queued.map(|(_, queued)| queued),
            is_silent: spoke
                && inside().count() > 0
                && inside().all(|moment| moment.interval.server.is_none()),
            cpus,
            pid: case.server_pid(),
            evidence,
        }
    }
}

/// CPUs that the server took in the intervals that lie in the gap.
fn cpus(case: &Case<'_>, gap: &Gap<'_>) -> Option<f64> {
    let inside = case.steps().filter(|(before, now)| {
        before.interval.at_ms >= gap.gap.from_ms && now.interval.at_ms <= gap.gap.to_ms
    });
    let used = |moment: &Moment| case.value(End::Server, moment, "process.server.cpu_us");
    let mut sum = (0, 0);
    for (before, now) in inside {
        sum.0 += (used(now)? - used(before)?).max(0);
        sum.1 += now.interval.span_ms as i64;
    }
    (sum.1 > 0).then(|| sum.0 as f64 / 1000.0 / sum.1 as f64)
}

/// The finding in words, and what to do.
fn words(gaps: &[&Gap<'_>], longest: &Gap<'_>, doing: &Doing) -> (String, String) {
    let seconds = |ms: u64| {
        format!("{:.*}", if longest.gap.length_ms() < 1_000 { 2 } else { 1 }, ms as f64 / 1000.0)
    };
    let AnswerTime { from, to } =
        AnswerTime { from: seconds(longest.gap.from_ms), to: seconds(longest.gap.to_ms) };
    let when = match (gaps.len(), longest.is_open) {
        (1, true) => format!("from {from} s to the end"),
        (1, false) => format!("from {from} to {to} s"),
        (n, _) => format!(
            "{n} times, for up to {}{}",
            micros(longest.gap.length_ms() * 1000),
            rhythm(gaps).map_or_else(String::new, |each| format!(", about every {each}"))
        ),
    };
    let mut did = vec!["answered nobody".to_owned()];
    did.extend(
        doing.queued.map(|queued| format!("accepted nobody ({} waited)", count(queued as f64))),
    );
    let did_not = |and: &str| format!("{}{and}", did.join(", "));
    let pid = doing.pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    let whole = doing.queued.is_some() || doing.is_silent;
    let (sentence, why, remedy) = match doing.what {
        What::Stopped => (
            format!("The server was stopped {when} (state T): it {}", did_not(" and used no CPU")),
            "A signal (SIGSTOP), a debugger or the job control of a shell leaves a process so.".to_owned(),
            format!("find what stops it; kill -CONT {pid} lets it go on"),
        ),
        What::Uninterruptible => (
            format!("The server did nothing {when}: it {}", did_not(" and waited in the kernel (state D)")),
            "So it waits for a disk or a network file system, or is frozen by its control group.".to_owned(),
            format!("look while it lasts: cat /proc/{pid}/wchan /proc/{pid}/stack; the freezer of its control group; iostat -x 1"),
        ),
        What::Idle => (
            format!("The server did nothing {when}: it {}", did_not(" and used no CPU")),
            match whole {
                true => "It was paused as a whole (frozen, a pause of its virtual machine), or its only loop waited for something: a \\
                         lock, a disk, a sleep."
                    .to_owned(),
                false => "It was paused, or everybody waited for the same thing: a lock, a database, a disk, a sleep.".to_owned(),
            },
            format!(
                "see what it waits for while it lasts (ps -o stat,wchan -p {pid}, strace -f -p {pid}, a stack dump), and who pauses it \\
                 (freezer, VM, garbage collector)"
            ),
        ),
        What::Busy => (
            format!("The server was busy with something else {when}: it computed without a rest and {}", did_not("")),
            "One long piece of work holds up everybody who is served by the same thread.".to_owned(),
            format!("profile what it computes then (perf top -p {pid}, or the profiler of its language): do it in another thread, or in pieces"),
        ),
        What::Unclear => (
            format!("The server stood still {when}: it {}{}", did_not(""), match (doing.is_seen, doing.cpus) {
                (false, _) => ", and what it did cannot be seen from here".to_owned(),
                (true, Some(cpus)) => format!(", and took {cpus:.2} CPUs"),
                (true, None) => String::new(),
            }),
            "It computed, or it waited for something that everybody needs: the figures do not tell which.".to_owned(),
            match doing.is_seen {
                true => format!("profile it while it lasts (perf top -p {pid}), and see what it waits for (strace -f -p {pid}, a stack dump)"),
                false => "throng doctor --watch --listen ADDR:PORT on its machine and throng run --server-facts HOST:PORT here show which".to_owned(),
            },
        ),
    };
    let first = match gaps.len() {
        1 => String::new(),
        _ => format!(
            " The first time was at {} s, the longest from {from} to {to} s.",
            seconds(gaps[0].gap.from_ms)
        ),
    };
    (format!("{sentence}. {why}{first}"), remedy)
}

struct AnswerTime {
    from: String,
    to: String,
}

/// The time between two of them, where it is about the same each time.
fn rhythm(gaps: &[&Gap<'_>]) -> Option<String> {
    let mut apart: Vec<u64> = gaps
        .windows(2)
        .map(|pair| pair[1].gap.from_ms.saturating_sub(pair[0].gap.from_ms))
        .collect();
    apart.sort_unstable();
    let median = *apart.get(apart.len() / 2).filter(|_| apart.len() + 1 >= SEVERAL)?;
    let is_even = |ms: &&u64| ms.abs_diff(median) * 3 <= median;
    let even = apart.iter().filter(is_even).count();
    (even * 3 >= apart.len() * 2 && median > 0).then(|| micros(median * 1000))
}

/// Shorter ones are what a garbage collector, a neighbour or a scheduler does to any program.
const SHORT_MS: u64 = 100;

/// So many short ones are a pattern.
const SEVERAL: usize = 3;

/// Of so many the evidence shows when they were.
const GAPS_SHOWN: usize = 3;

/// A thread that waits longer for a CPU does not stand still by itself, in thousandths of the time.
const DELAYED_MOST: i64 = 300;

/// Connections that wait to be accepted, by so many more than before.
const QUEUED_MIN: i64 = 3;

/// A server that takes less does nothing.
const IDLE_CPUS: f64 = 0.05;

#[cfg(test)]
mod tests {
    use throng_report::AnswerGap;

    use super::super::fixture::Run;
    use super::*;

    /// A gap from the fourth second on, which ends after so many milliseconds; other answers take 0.2 ms.
    fn stalled(ms: u64) -> Run {
        let ends = (4_000 + ms).div_ceil(1_000);
        Run::quiet().growing("process.server.cpu_us", 0, 20_000, 0).loaded(move |load, second| {
            let lost = if second > 4 { 1_000 * (second.min(ends - 1) - 4) } else { 0 };
            load.counters.messages_answered -= if second < ends { lost } else { 0 };
            if second == ends {
                load.answer_gap = Some(AnswerGap { from_ms: 4_000, to_ms: 4_000 + ms });
                load.message.record_n(ms * 1000, 500);
            }
        })
    }

    /// The same with a gauge of the server's process in the seconds that have a part in it.
    fn doing(ms: u64, gauge: &str, value: i64) -> Run {
        let ends = (4_000 + ms).div_ceil(1_000);
        let name = format!("process.server.{gauge}");
        stalled(ms).changed(move |interval, second| {
            let is_in = (5..=ends).contains(&second);
            interval.kernel.insert(name.clone(), if is_in { value } else { 0 });
        })
    }

    #[track_caller]
    fn says(run: &Run, begin: &str) -> Finding {
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with(begin), "{found}");
        found
    }

    #[test]
    fn a_process_that_was_stopped_is_told_with_when() {
        let run = doing(2_900, "stopped", 1).changed(|interval, second| {
            let queued = if (5..7).contains(&second) { 200 * (second as i64 - 4) } else { 0 };
            interval.kernel.insert("listener.accept_queue".to_owned(), queued);
        });
        let found = says(
            &run,
            "The server was stopped from 4.0 to 6.9 s (state T): it answered nobody, accepted nobody (400 waited) and used no CPU.",
        );
        assert_eq!((found.severity, found.began_ms()), (Severity::Slowed, Some(4_000)));
        assert!(found.remedy.contains("kill -CONT"), "{found}");
        run.check_all(&["server_stalled"]);
        let (history, summary) = run.whole();
        let said = crate::diagnose(&history, &summary, &[]).verdict;
        let begin = "Slowed down on the server side at 800 connections, 200/s connects and 1k/s messages: the server was stopped";
        assert!(said.starts_with(begin), "{said}");
    }

    #[test]
    fn a_loop_that_computes_and_one_that_waits_are_told_apart() {
        let busy = doing(1_900, "busy_ms_most", 1_900);
        let found = says(
            &busy,
            "The server was busy with something else from 4.0 to 5.9 s: it computed without a rest",
        );
        assert!(found.remedy.starts_with("profile"), "{found}");
        let idle = doing(1_900, "idle_ms_most", 1_880);
        says(
            &idle,
            "The server did nothing from 4.0 to 5.9 s: it answered nobody and used no CPU. It was paused, or",
        );
        let silent = idle.changed(|interval, second| {
            interval.server = (second < 5 || second > 6).then(Default::default);
        });
        assert!(silent.speaks(&RULE).text.contains("paused as a whole"));
        let disk = doing(2_900, "idle_ms_most", 2_880).with("process.server.uninterruptible", 1);
        says(
            &disk,
            "The server did nothing from 4.0 to 6.9 s: it answered nobody and waited in the kernel (state D)",
        );
        let either = doing(2_900, "busy_ms_most", 700).with("process.server.idle_ms_most", 600);
        let found = says(
            &either,
            "The server stood still from 4.0 to 6.9 s: it answered nobody, and took 0.02 CPUs. It computed, or it",
        );
        assert!(found.remedy.contains("perf top") && found.remedy.contains("strace"), "{found}");
        let mut unseen = stalled(2_900);
        unseen.header.target_is_here = false;
        says(
            &unseen,
            "The server stood still from 4.0 to 6.9 s: it answered nobody, and what it did cannot be seen from here",
        );
    }

    #[test]
    fn a_short_gap_is_none_unless_there_are_several_or_less_was_asked_for() {
        stalled(700).is_silent(&RULE);
        stalled(1_100).speaks(&RULE);
        let pausing = |each: u64, ms: u64| {
            Run::quiet().loaded(move |load, second| {
                if second > 1 && second % each == 0 {
                    let from_ms = second * 1_000 - 500;
                    load.answer_gap = Some(AnswerGap { from_ms, to_ms: from_ms + ms });
                }
            })
        };
        says(
            &pausing(2, 300),
            "The server stood still 5 times, for up to 300 ms, about every 2.00 s: it answered nobody",
        );
        pausing(4, 300).is_silent(&RULE);
        pausing(2, 90).is_silent(&RULE);
        let (history, summary) = stalled(700).whole();
        let judged =
            "message.p99 < 100ms".parse::<throng_report::Threshold>().unwrap().judge(&summary);
        let said = crate::diagnose(&history, &summary, &[judged]).verdict;
        assert!(
            said.contains("asked < 100ms at 800 connections")
                && said.contains(": the server stood still from 4.00 to 4.70 s"),
            "{said}"
        );
    }

    #[test]
    fn a_target_that_stands_still_until_the_end_is_told() {
        let run = Run::quiet().loaded(|load, second| {
            load.counters.messages_answered = 1_000 * second.min(6);
            if second > 6 {
                load.message.clear();
            }
            let ends = u64::from(second == 10);
            load.counters.users_waiting = 1_000 * ends;
            load.counters.users_waiting_us_most = 3_900_000 * ends;
        });
        says(&run, "The server stood still from 6.1 s to the end: it answered nobody");
    }

    #[test]
    fn gaps_that_others_made_or_in_which_little_was_to_come_are_none() {
        // The generator was late itself.
        stalled(1_500).loaded(|load, _| load.lag.record_n(1_400_000, 1)).is_silent(&RULE);
        // The server waited for a CPU.
        doing(1_500, "most_delayed_thread_permille", 600).is_silent(&RULE);
        // Its connections were lost.
        stalled(1_500)
            .loaded(|load, second| {
                if second == 5 {
                    load.outage =
                        Some(throng_report::Outage { lost_ms: Some(4_010), ..Default::default() });
                }
            })
            .is_silent(&RULE);
        // Few asked anything.
        stalled(1_500)
            .loaded(|load, second| load.counters.messages_answered = 3 * second)
            .is_silent(&RULE);
        // Every answer takes long: that is another fault.
        stalled(1_500)
            .loaded(|load, _| {
                load.message.clear();
                load.message.record_n(800_000, 100);
            })
            .is_silent(&RULE);
    }
}
