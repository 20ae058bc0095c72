//! The server answered no user for a time: all users waited at once, and then got their answers at
//! once.

mod activity;

use throng_measure::{ErrorKind, Finding, Severity, Side};
use throng_report::render::{count, micros};

use super::{Rule, RuleTrait, network_lost};
use crate::cpu_waits::CpuWaits;
use crate::gaps::{Gap, gaps};
use crate::impact::{GAP_MS, gap_evidence};
use crate::run_view::RunView;
use activity::{ActivityKind, ServerActivity, waits_for_a_cpu};

pub(super) const RULE: Rule = Rule::new("server_stalled", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::LacksCpu, RuleTrait::OnlyDelays])
    .explains_later(&["server_slow"])
    .explains(&[
        "server_lost",
        "generator_saturated",
        "hot_core",
        "accept_queue_overflow",
        "syn_queue_overflow",
        "half_open",
    ]);

/// Looks for one long gap, or several shorter ones. The server's CPU time, state and accept queue
/// tell what it did in the meantime: to its clients, a loop that computes and a process that was
/// stopped look the same.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let mut found = gaps(run, SHORT_MS);
    found.retain(|gap| !waits_for_a_cpu(run, gap));
    let longest = *found.iter().max_by_key(|gap| gap.gap.length_ms())?;
    let is_long = longest.gap.length_ms() >= long_ms(run);
    // A network that goes away silences a server, too.
    if (!is_long && found.len() < SEVERAL) || network_lost::RULE.find(run).is_some() {
        return None;
    }
    let waits = CpuWaits::of(run);
    let (from_ms, to_ms) = (longest.gap.from_ms, longest.gap.to_ms);
    if found.len() < SEVERAL && waits.may_explain_silence(from_ms, to_ms) {
        return None;
    }
    if is_long {
        // Beside a long gap, much shorter ones are its aftermath.
        found.retain(|gap| gap.gap.length_ms() * 4 >= longest.gap.length_ms());
    }
    let activity = ServerActivity::of(run, &longest);
    let (text, remedy) = describe(&found, &longest, &activity);
    let severity = if gave_up(run, &found) { Severity::Stopped } else { Severity::Slowed };
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(severity)
        .with_confidence(if activity.is_seen { 0.9 } else { 0.7 })
        .with_evidence(found.iter().take(GAPS_SHOWN).map(|gap| gap_evidence(gap.gap)))
        .with_evidence(activity.evidence)
        .remedied_by(remedy);
    Some(finding)
}

/// Reports whether the server stalled for so long that its users gave up for it.
pub(super) fn explains_waits_of(run: &RunView<'_>, us: u64) -> bool {
    let is_as_long = |gap: &Gap<'_>| gap.gap.length_ms() * 2_000 >= us;
    gaps(run, SHORT_MS).iter().any(is_as_long) && RULE.find(run).is_some()
}

/// Returns the length from which a single gap counts: shorter if a latency threshold was missed.
fn long_ms(run: &RunView<'_>) -> u64 {
    run.thresholds.answer_us().map_or(GAP_MS, |us| (us / 1000).clamp(SHORT_MS, GAP_MS))
}

/// Reports whether users gave up waiting during one of the gaps.
fn gave_up(run: &RunView<'_>, gaps: &[Gap<'_>]) -> bool {
    ErrorKind::unanswered()
        .filter_map(|kind| run.errors(kind))
        .any(|growth| gaps.iter().any(|gap| growth.began_ms + 1_000 >= gap.gap.from_ms))
}

/// Returns the text of the finding and its remedy.
fn describe(gaps: &[Gap<'_>], longest: &Gap<'_>, activity: &ServerActivity) -> (String, String) {
    let when = when(gaps, longest);
    let mut did = vec!["answered no user".to_owned()];
    did.extend(
        activity
            .queued
            .map(|queued| format!("accepted no connection ({} waited)", count(queued as f64))),
    );
    let did = did.join(", ");
    let used = match activity.cpus {
        Some(cpus) if cpus >= NO_CPU_MAX => format!("used hardly any CPU ({cpus:.2} CPUs)"),
        _ => "used no CPU".to_owned(),
    };
    let sentence = match activity.what {
        ActivityKind::Stopped => format!("was stopped {when} (state T): it {did} and used no CPU"),
        ActivityKind::Uninterruptible => {
            format!("did nothing {when}: it {did} and waited in the kernel (state D)")
        }
        ActivityKind::Idle => format!("did nothing {when}: it {did} and {used}"),
        ActivityKind::Collects => format!("collected garbage {when}: it computed and {did}"),
        ActivityKind::Busy => {
            format!("was busy with something else {when}: it computed all the time and {did}")
        }
        ActivityKind::Unclear => match (activity.is_seen, activity.cpus) {
            (false, _) => {
                format!("stood still {when}: it {did}, and its activity cannot be seen from here")
            }
            (true, Some(cpus)) => format!("stood still {when}: it {did}, and used {cpus:.2} CPUs"),
            (true, None) => format!("stood still {when}: it {did}"),
        },
    };
    let first = match gaps {
        [] | [_] => String::new(),
        [first, ..] => format!(
            " The first time was at {} s, the longest from {} to {} s.",
            seconds(first.gap.from_ms, longest),
            seconds(longest.gap.from_ms, longest),
            seconds(longest.gap.to_ms, longest)
        ),
    };
    (format!("The server {sentence}. {}{first}", activity.why()), activity.remedy())
}

/// Returns when the gaps were: from one time to another, or how often.
fn when(gaps: &[Gap<'_>], longest: &Gap<'_>) -> String {
    let [from, to] = [longest.gap.from_ms, longest.gap.to_ms].map(|ms| seconds(ms, longest));
    match (gaps.len(), longest.is_open) {
        (1, true) => format!("from {from} s to the end"),
        (1, false) => format!("from {from} to {to} s"),
        (n, _) => {
            let rhythm = rhythm(gaps).map(|each| format!(", about every {each}"));
            let length = micros(longest.gap.length_ms() * 1000);
            let at_least = if may_be_more(gaps) { "at least " } else { "" };
            format!("{at_least}{n} times, for up to {length}{}", rhythm.unwrap_or_default())
        }
    }
}

/// Formats a time with the precision that matters for a gap of this length.
fn seconds(ms: u64, longest: &Gap<'_>) -> String {
    let places = if longest.gap.length_ms() < 1_000 { 2 } else { 1 };
    format!("{:.places$}", ms as f64 / 1000.0)
}

/// Reports whether there may have been more gaps: each interval knows only its longest, and two
/// neighbours have one each. Gaps that follow one another evenly are all gaps: of several in an
/// interval, now one would be the longest and now another.
fn may_be_more(gaps: &[Gap<'_>]) -> bool {
    let interval = |gap: &Gap<'_>| (gap.sample.interval.at_ms, gap.sample.interval.span_ms);
    let has_neighbours = gaps.windows(2).any(|pair| {
        let [(before_ms, _), (at_ms, span_ms)] = [interval(&pair[0]), interval(&pair[1])];
        at_ms.saturating_sub(span_ms) <= before_ms
    });
    let is_even = || {
        let span_ms = gaps.iter().map(|gap| interval(gap).1).max().unwrap_or(0);
        // One in each interval, at the same place, may be the first or the last of several.
        rhythm_ms(gaps, EVEN_PART).is_some_and(|ms| ms.abs_diff(span_ms) * EVEN_PART > span_ms)
    };
    has_neighbours && !is_even()
}

/// Returns the time between two gaps, if it is about the same each time and all are known.
fn rhythm(gaps: &[Gap<'_>]) -> Option<String> {
    let ms = rhythm_ms(gaps, ABOUT_EVEN_PART)?;
    (!may_be_more(gaps)).then(|| micros(ms * 1000))
}

/// Returns the usual time between two gaps, if most differ from it by less than this part of it.
fn rhythm_ms(gaps: &[Gap<'_>], part: u64) -> Option<u64> {
    let pairs = gaps.windows(2);
    let mut apart: Vec<u64> =
        pairs.map(|pair| pair[1].gap.from_ms.saturating_sub(pair[0].gap.from_ms)).collect();
    apart.sort_unstable();
    let median = *apart.get(apart.len() / 2).filter(|_| apart.len() + 1 >= SEVERAL)?;
    let even = apart.iter().filter(|ms| ms.abs_diff(median) * part <= median).count();
    (even * 3 >= apart.len() * 2 && median > 0).then_some(median)
}

/// Gaps are about even where the times between them differ by a third at most, …
const ABOUT_EVEN_PART: u64 = 3;
/// … and even where they differ by a tenth.
const EVEN_PART: u64 = 10;

/// The shortest gap that counts: garbage collectors, other programs and schedulers cause shorter
/// ones in any program.
const SHORT_MS: u64 = 100;

/// The CPUs below which a server used none: they would be shown as 0.00.
const NO_CPU_MAX: f64 = 0.005;

/// The number of short gaps that make a pattern.
const SEVERAL: usize = 3;

/// The most gaps that the evidence shows.
const GAPS_SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use throng_measure::{AnswerGap, Metric, Operation, ProcessMetric};

    use super::super::fixture::Run;
    use super::super::server_slow;
    use super::*;
    use crate::missed_thresholds::MissedThresholds;

    /// A run with a gap in which the server used this much CPU time.
    fn using(ms: u64, cpu_ms: i64) -> Run {
        let ends = (4_000 + ms).div_ceil(1_000);
        Run::silent(ms).changed(move |interval, second| {
            if second == ends {
                interval.kernel.set(ProcessMetric::GAP_CPU_US.server, cpu_ms * 1000);
            }
        })
    }

    /// A run with a gap, and with a gauge of the server's process in the seconds that it touches.
    fn doing(ms: u64, gauge: ProcessMetric, value: i64) -> Run {
        let ends = (4_000 + ms).div_ceil(1_000);
        Run::silent(ms).changed(move |interval, second| {
            let is_in = (5..=ends).contains(&second);
            interval.kernel.set(gauge.server, if is_in { value } else { 0 });
        })
    }

    #[track_caller]
    fn says(run: &Run, begin: &str) -> Finding {
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with(begin), "{found}");
        found
    }

    #[test]
    fn a_process_that_was_stopped_is_reported_with_its_time() {
        let run = doing(2_900, ProcessMetric::STOPPED, 1).changed(|interval, second| {
            let queued = if (5..7).contains(&second) { 200 * (second as i64 - 4) } else { 0 };
            interval.kernel.set(Metric::LISTENER_ACCEPT_QUEUE, queued);
        });
        let found = says(
            &run,
            "The server was stopped from 4.0 to 6.9 s (state T): it answered no user, accepted no \
             connection (400 waited) and used no CPU.",
        );
        assert_eq!((found.severity, found.began_ms()), (Severity::Slowed, Some(4_000)));
        assert!(found.remedy.contains("kill -CONT"), "{found}");
        run.check_all(&["server_stalled"]);
        let verdict = run.verdict();
        let begin = "Slowed down on the server side at 800 connections, 200/s connects and 1k/s \
                     messages: the server was stopped";
        assert!(verdict.starts_with(begin), "{verdict}");
    }

    #[test]
    fn the_cpu_time_of_another_gap_is_no_evidence_of_this_one() {
        // A gap before it, in which the server computed, ended in the second in which this begins.
        let run = using(2_900, 10).changed(|interval, second| {
            if second == 4 || second == 5 {
                interval.kernel.set(ProcessMetric::GAP_CPU_US.server, 700_000);
            }
        });
        let found = says(&run, "The server did nothing from 4.0 to 6.9 s: it answered no user and");
        let shown = found.evidence.iter().find(|shown| shown.counter.contains("gap_cpu_us"));
        let shown = shown.unwrap_or_else(|| panic!("{found}"));
        assert_eq!((shown.from, shown.to, shown.at_ms), (0.0, 10_000.0, 7_000), "{found}");
    }

    #[test]
    fn what_became_due_in_a_gap_and_is_asked_after_it_is_not_slow() {
        let later = |second_late: u64| {
            using(2_900, 10).loaded(move |load, second| {
                if second == second_late {
                    load.times[Operation::Message].record_n(1_900_000, 50);
                }
            })
        };
        later(8).is_silent(&server_slow::RULE);
        later(9).speaks(&server_slow::RULE);
    }

    #[test]
    fn a_little_cpu_time_is_not_none() {
        let found = using(2_900, 200).speaks(&RULE);
        assert!(found.text.contains("and used hardly any CPU (0.07 CPUs)."), "{found}");
        let found = using(2_900, 46).speaks(&RULE);
        assert!(found.text.contains("and used hardly any CPU (0.02 CPUs)."), "{found}");
        assert!(using(2_900, 10).speaks(&RULE).text.contains("and used no CPU."));
    }

    #[test]
    fn a_loop_that_computes_and_one_that_waits_are_told_apart() {
        let busy = using(1_900, 1_850);
        let found = says(
            &busy,
            "The server was busy with something else from 4.0 to 5.9 s: it computed all the time",
        );
        assert!(found.remedy.starts_with("profile"), "{found}");
        let shared =
            using(1_900, 900).with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, 500);
        says(&shared, "The server was busy with something else from 4.0 to 5.9 s");
        let idle = using(1_900, 5);
        says(
            &idle,
            "The server did nothing from 4.0 to 5.9 s: it answered no user and used no CPU. It was \
             paused, or",
        );
        let silent = idle.changed(|interval, second| {
            interval.server = (!(5..=6).contains(&second)).then(Default::default);
        });
        assert!(silent.speaks(&RULE).text.contains("paused as a whole"));
        let collects = using(1_900, 1_850).with(ProcessMetric::COLLECTOR_PERMILLE.server, 900);
        let found = says(&collects, "The server collected garbage from 4.0 to 5.9 s: it computed");
        assert!(found.remedy.contains("-Xmx"), "{found}");
        let disk = using(2_900, 0).with(ProcessMetric::UNINTERRUPTIBLE.server, 1);
        says(
            &disk,
            "The server did nothing from 4.0 to 6.9 s: it answered no user and waited in the \
             kernel (state D)",
        );
        let found = says(
            &using(2_900, 900),
            "The server stood still from 4.0 to 6.9 s: it answered no user, and used 0.31 CPUs. It \
             computed, or it",
        );
        assert!(found.remedy.contains("perf top") && found.remedy.contains("strace"), "{found}");
        let mut unseen = Run::silent(2_900);
        unseen.header.target_is_here = false;
        says(
            &unseen,
            "The server stood still from 4.0 to 6.9 s: it answered no user, and its activity \
             cannot be seen from here",
        );
    }

    #[test]
    fn a_short_gap_is_none_unless_there_are_several_or_less_was_asked_for() {
        Run::silent(700).is_silent(&RULE);
        Run::silent(1_100).speaks(&RULE);
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
            "The server stood still 5 times, for up to 300 ms, about every 2.00 s: it answered no \
             user",
        );
        pausing(4, 300).is_silent(&RULE);
        pausing(2, 90).is_silent(&RULE);
        let (history, summary) = Run::silent(700).whole();
        let judged =
            "message.p99 < 100ms".parse::<throng_report::Threshold>().unwrap().judge(&summary);
        let verdict = crate::diagnose(&history, &summary, &[judged]).verdict;
        assert!(
            verdict.contains("required < 100ms at 800 connections")
                && verdict.contains(": the server stood still from 4.00 to 4.70 s"),
            "{verdict}"
        );
    }

    #[test]
    fn a_short_gap_in_whose_interval_the_server_waited_as_long_for_a_cpu_is_none() {
        let found = |permille| {
            let run = doing(300, ProcessMetric::MOST_DELAYED_THREAD_PERMILLE, permille);
            let (history, summary) = run.whole();
            let threshold = "message.p99 < 100ms".parse::<throng_report::Threshold>().unwrap();
            let thresholds = MissedThresholds::of(&[threshold.judge(&summary)]);
            RULE.find(&RunView::judged(&history, &summary, &thresholds))
        };
        assert!(found(200).is_some());
        assert_eq!(found(350), None);
    }

    #[test]
    fn gaps_of_neighbouring_intervals_may_be_more() {
        let pausing = Run::quiet().loaded(|load, second| {
            if second > 1 {
                let from_ms = second * 1_000 - 500;
                load.answer_gap = Some(AnswerGap { from_ms, to_ms: from_ms + 250 });
            }
        });
        says(&pausing, "The server stood still at least 9 times, for up to 250 ms: it answered");
        let even = Run::quiet().loaded(|load, second| {
            if let Some(at_ms) = (1_200..9_000).step_by(1_200).find(|at| at / 1_000 + 1 == second) {
                load.answer_gap = Some(AnswerGap { from_ms: at_ms, to_ms: at_ms + 250 });
            }
        });
        says(&even, "The server stood still 7 times, for up to 250 ms, about every 1.20 s: it");
    }

    #[test]
    fn a_server_that_was_slow_before_is_slow_by_itself() {
        let slow_from = |from: u64| {
            Run::silent(2_900).loaded(move |load, second| {
                if second >= from && second != 7 {
                    load.times[Operation::Message].clear();
                    load.times[Operation::Message].record_n(200_000, 500);
                }
            })
        };
        for (from, cause) in [(1, None), (8, Some("server_stalled"))] {
            let (history, summary) = slow_from(from).whole();
            let found = crate::diagnose(&history, &summary, &[]).findings;
            assert_eq!(found[0].id, "server_stalled");
            let slow = found.iter().find(|finding| finding.id == "server_slow").unwrap();
            assert_eq!(slow.follows_from.as_deref(), cause, "{slow}");
            let says = "200 ms (p99 of the worst interval in which it did not stand still)";
            assert!(slow.text.contains(says), "{slow}");
        }
    }

    #[test]
    fn a_target_that_stands_still_until_the_end_is_reported() {
        let run = Run::quiet().loaded(|load, second| {
            load.counters.messages_answered = 1_000 * second.min(6);
            if second > 6 {
                load.times[Operation::Message].clear();
            }
            let ends = u64::from(second == 10);
            load.counters.users_waiting = 1_000 * ends;
            load.counters.users_waiting_us_most = 3_900_000 * ends;
        });
        says(&run, "The server stood still from 6.1 s to the end: it answered no user");
    }

    #[test]
    fn gaps_that_others_made_or_in_which_little_was_to_come_are_none() {
        // The generator was late itself.
        Run::silent(1_500).loaded(|load, _| load.lag.record_n(1_400_000, 1)).is_silent(&RULE);
        // The server waited for a CPU.
        doing(1_500, ProcessMetric::MOST_DELAYED_THREAD_PERMILLE, 600).is_silent(&RULE);
        // It waited for one, though not for as long as it answered no user.
        doing(2_000, ProcessMetric::MOST_DELAYED_THREAD_PERMILLE, 350).speaks(&RULE);
        // Its connections were lost.
        Run::silent(1_500)
            .loaded(|load, second| {
                if second == 5 {
                    load.outage =
                        Some(throng_measure::Outage { lost_ms: Some(4_010), ..Default::default() });
                }
            })
            .is_silent(&RULE);
        // Few users waited for an answer.
        Run::silent(1_500)
            .loaded(|load, second| load.counters.messages_answered = 3 * second)
            .is_silent(&RULE);
        // Every answer takes long: that is another cause.
        Run::silent(1_500)
            .loaded(|load, _| {
                load.times[Operation::Message].clear();
                load.times[Operation::Message].record_n(800_000, 100);
            })
            .is_silent(&RULE);
    }
}
