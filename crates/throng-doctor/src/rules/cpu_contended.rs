//! Programs that do not belong to the run took CPUs that it needed, or could have used.

use throng_measure::{Endpoint, Evidence, Finding, Operation, ProcessMetric, Severity};

use super::{FindingClass, Rule, RuleTrait};
use crate::cpus::{CpuUse, FULL_SHARE, INTERVALS_MIN, LONG_DELAY_SHARE, ProcessCpus, mean, shares};
use crate::history::Sample;
use crate::impact::{Impact, impact_of_waiting};
use crate::kernels::{Kernel, machines};
use crate::other_programs::OtherPrograms;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("cpu_contended", find)
    .of_class(FindingClass::Note)
    .with(&[RuleTrait::OtherPrograms, RuleTrait::LacksCpu, RuleTrait::OnlyDelays])
    .explains(&["generator_saturated", "server_cpu_saturated", "hot_core", "slow_consumers"]);

/// If threads of the run waited for a CPU, and that explains what happened, other programs are the
/// cause. If the machine was full of other programs but the run shows no symptom, they are a
/// caveat: the next run may suffer, and there was no room for more load.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let machines = machines(run);
    let caused = || {
        let impact = impact_of_waiting(run)?;
        machines.iter().find_map(|machine| cause(run, machine, &impact))
    };
    caused().or_else(|| machines.iter().find_map(|machine| caveat(run, machine)))
}

/// Returns the finding about programs that the run had to wait for.
fn cause(run: &RunView<'_>, machine: &Kernel, impact: &Impact) -> Option<Finding> {
    let mut uses = CpuUse::of(run, machine.endpoint);
    uses.retain(|used| is_busy_with_others(run, used));
    let is_missed = !run.thresholds.missed().is_empty();
    let rose = rise(run, &uses);
    let is_felt = |used: &CpuUse| {
        // A short wait matters if a threshold was missed, or if answers were faster without the
        // other programs.
        let least = if is_missed || rose.is_some() { DELAYED_LITTLE } else { LONG_DELAY_SHARE };
        used.wanted() < used.cpus * WANTED_MOST && delayed(used) > least
    };
    let felt: Vec<_> = uses.iter().copied().filter(is_felt).collect();
    let used =
        mean(&felt).filter(|used| felt.len() >= INTERVALS_MIN && used.from_ms <= impact.last_ms)?;
    // They were there for longer than the run waited for them; a little use is another matter.
    let taken = |used: &CpuUse| used.strangers(run).unwrap_or(0.0);
    uses.retain(|one| taken(one) >= taken(&used) * ALIKE_MIN);
    let waited = match seconds(&felt) / seconds(&uses) {
        share if share > WAITED_ALL => String::new(),
        _ => format!(" for {:.0} of {:.0} s", seconds(&felt), seconds(&uses)),
    };
    let others = OtherPrograms::of(run, machine, uses)?;
    let rose = rose
        .map_or_else(String::new, |times| format!(", {times:.0} times as long as without them"));
    let text = format!(
        "{}, and the run had to wait for them{waited}. CPU use: {}. Meanwhile {}{rose}.",
        others.describe(machine),
        shares(run, &used),
        impact.what
    );
    // Contention from before the first symptom is not when it stopped anything.
    let felt_ms = used.at_ms.max(impact.first_ms);
    let finding = Finding::new(RULE.id, machine.side, text)
        .with_severity(impact.severity)
        .with_confidence(0.9)
        .with_evidence(evidence(run, machine.endpoint, felt_ms))
        .with_evidence([impact.evidence.clone()])
        .remedied_by(REMEDY);
    Some(finding)
}

/// Returns the finding about programs that filled the machine although the run shows no symptom.
fn caveat(run: &RunView<'_>, machine: &Kernel) -> Option<Finding> {
    let mut uses = CpuUse::of(run, machine.endpoint);
    uses.retain(|used| {
        let is_full = used.full_share() > FULL_SHARE || delayed(used) > LONG_DELAY_SHARE;
        is_full && used.strangers(run).unwrap_or(0.0) > used.cpus * CAVEAT_SHARE_MIN
    });
    let first = mean(&uses).filter(|_| uses.len() >= INTERVALS_MIN)?;
    let others = OtherPrograms::of(run, machine, uses)?;
    let text = format!(
        "{}. The run did not visibly wait for them, but its measurements may be worse because of \
         them, and more load would have met them. CPU use: {}.",
        others.describe(machine),
        shares(run, &first)
    );
    let finding = Finding::new(RULE.id, machine.side, text)
        .with_severity(Severity::Noted)
        .with_confidence(0.9)
        .with_evidence(evidence(run, machine.endpoint, first.at_ms))
        .remedied_by(REMEDY);
    Some(finding)
}

/// Reports whether other programs used more of the machine than usual background work.
fn is_busy_with_others(run: &RunView<'_>, used: &CpuUse) -> bool {
    let strangers = used.strangers(run).unwrap_or(0.0);
    strangers > (used.cpus * STRANGERS_SHARE_MIN).max(STRANGERS_CPUS_MIN)
}

/// Returns the time of these intervals.
fn seconds(uses: &[CpuUse]) -> f64 {
    let ms = uses.iter().map(|used| used.at_ms.saturating_sub(used.from_ms));
    ms.sum::<u64>() as f64 / 1000.0
}

/// Returns the share of time for which the thread that waited most was ready to run.
fn delayed(used: &CpuUse) -> f64 {
    let of = |process: Option<ProcessCpus>| process.and_then(|process| process.most_delayed);
    of(used.client).unwrap_or(0.0).max(of(used.server).unwrap_or(0.0))
}

/// Returns how many times as long answers took in these intervals as in the others, or `None` if
/// the factor is small or there are too few intervals of either kind.
fn rise(run: &RunView<'_>, uses: &[CpuUse]) -> Option<f64> {
    let p99 = |sample: &Sample| {
        let of = |operation| sample.latency(operation).p99_us;
        Operation::requests().filter(|of| *of != Operation::Http).map(of).max()
    };
    let is_in = |sample: &Sample| uses.iter().any(|used| used.at_ms == sample.interval.at_ms);
    let (within, without): (Vec<_>, Vec<_>) =
        run.steps().map(|(_, now)| now).partition(|sample| is_in(sample));
    let median = |samples: &[&Sample]| {
        let mut all: Vec<u64> = samples.iter().filter_map(|sample| p99(sample)).collect();
        all.retain(|us| *us > 0);
        all.sort_unstable();
        (all.len() >= INTERVALS_MIN).then(|| all[all.len() / 2] as f64)
    };
    let times = median(&within)? / median(&without)?;
    (times >= RISE_MIN).then_some(times)
}

/// Returns how long threads of the run waited, and how busy the machine was.
fn evidence(run: &RunView<'_>, end: Endpoint, at_ms: u64) -> Vec<Evidence> {
    let delays = [Endpoint::Client, Endpoint::Server]
        .into_iter()
        .filter_map(|end| run.peak(end, ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.of(end)))
        .map(|peak| peak.evidence())
        .map(|evidence| Evidence { at_ms: evidence.at_ms.max(at_ms), ..evidence });
    let busy = run.growth_of("machine.cpu_busy_us", |sample| {
        Some(run.machine(end, sample)?.cpu_busy_us as i64)
    });
    delays.chain(busy.map(|growth| growth.evidence_from(at_ms))).collect()
}

/// The demand above which the run would fill the machine alone, in machines. Two programs with a
/// thread for each CPU need at most twice the CPUs, however long others keep them waiting.
const WANTED_MOST: f64 = 2.5;

/// The use of CPUs by other programs, as a part of that for which the run waited, from which they
/// are the same ones.
const ALIKE_MIN: f64 = 0.5;

/// The part of their time for which the run waited for them that counts as all of it.
const WAITED_ALL: f64 = 0.9;

/// The smallest delay that matters when a threshold was missed or answers became slower.
const DELAYED_LITTLE: f64 = 0.05;

/// The smallest factor by which slower answers count as delayed.
const RISE_MIN: f64 = 3.0;

/// The smallest share of a full machine at which other programs are a caveat: with less, the run
/// fills it itself.
const CAVEAT_SHARE_MIN: f64 = 0.25;

/// Remedy for both findings.
const REMEDY: &str =
    "stop the other programs, or use a machine that does nothing else (see them with: top -o %CPU)";

/// Background work of a machine, as a share of its CPUs: with less, other programs do not fill it.
const STRANGERS_SHARE_MIN: f64 = 0.10;
/// Background work of a small machine, in CPUs.
const STRANGERS_CPUS_MIN: f64 = 0.25;

#[cfg(test)]
mod tests {
    use throng_measure::{ErrorKind, Metric, ProcessMetric, ProgramUse};

    use super::super::fixture::Run;
    use super::*;

    /// A run on a full machine of two CPUs: the server uses 0.2, the generator 0.05, and the
    /// generator is late.
    fn beside(delayed: i64) -> Run {
        Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 0, 200_000, 0)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client, delayed)
            .loaded(|load, second| load.lag.record_n(30_000, if second > 5 { 900 } else { 0 }))
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) = (1_980_000 * second, 20_000 * second);
            })
    }

    #[test]
    fn others_that_take_what_the_run_waits_for_are_the_cause() {
        let found = beside(600).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "Other programs had 86 % of the 2 CPUs of this machine throughout, and the run had to \
             wait for them"
        );
        beside(600).check_all(&["cpu_contended", "generator_saturated"]);
    }

    #[test]
    fn their_time_is_all_of_it_though_the_run_waited_for_a_part() {
        let run = beside(600).changed(|interval, second| {
            let delayed = if (3..=6).contains(&second) { 600 } else { 20 };
            interval.kernel.set(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client, delayed);
        });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "Other programs had 86 % of the 2 CPUs of this machine throughout, and the run had to \
             wait for them for 4 of 10 s"
        );
    }

    #[test]
    fn an_interval_of_a_damaged_file_may_end_before_it_begins() {
        let of = |from_ms, at_ms| CpuUse { from_ms, at_ms, ..CpuUse::default() };
        assert_eq!(seconds(&[of(1_000, 3_000), of(4_000, 2_000)]), 2.0);
    }

    fn program(pid: u32, program: &str, millicpus: u64) -> ProgramUse {
        ProgramUse { pid, program: program.to_owned(), millicpus }
    }

    #[test]
    fn they_are_named_with_their_time() {
        // From 5 to 9 s other programs use nearly everything.
        let run = Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 0, 200_000, 0)
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.client, 300)
            .loaded(|load, second| {
                load.times[Operation::Message]
                    .record_n(400_000, if (6..=9).contains(&second) { 500 } else { 0 });
            })
            .changed(|interval, second| {
                let others = 1_700_000 * second.saturating_sub(5).min(4);
                let machine = interval.machine.as_mut().unwrap();
                machine.cpu_busy_us = 280_000 * second + others;
                machine.cpu_idle_us = 2_000_000 * second - machine.cpu_busy_us;
                if (7..=9).contains(&second) {
                    interval.programs = vec![program(4711, "sh", 1_000), program(4712, "sh", 600)];
                }
            });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "Other programs had 86 % of the 2 CPUs of this machine from 5.0 to 9.0 s (sh, 2 \
             processes, pid 4711 first, 80 %), and the run had to wait for them"
        );
        assert_eq!((found.severity, found.began_ms()), (Severity::Slowed, Some(6_000)));
        let verdict = run.verdict();
        assert!(
            verdict.starts_with("Slowed down on the client side at 1k connections"),
            "{verdict}"
        );
    }

    #[test]
    fn a_full_machine_is_a_caveat_without_a_symptom() {
        let run = beside(30).loaded(|load, _| load.lag.clear());
        let found = run.speaks(&RULE);
        assert_eq!(found.severity, Severity::Noted);
        let verdict = run.verdict();
        assert_eq!(
            verdict,
            "Nothing stopped it: the plan was met, with no headroom: other programs had 86 % of \
             the 2 CPUs of this machine throughout."
        );
        // A machine that is not full has CPUs left.
        let half = run.changed(|interval, second| {
            let machine = interval.machine.as_mut().unwrap();
            (machine.cpu_busy_us, machine.cpu_idle_us) = (1_200_000 * second, 800_000 * second);
        });
        half.is_silent(&RULE);
    }

    #[test]
    fn a_run_that_is_held_to_one_cpu_has_no_use_for_the_idle_one() {
        let run = beside(30)
            .loaded(|load, _| load.lag.clear())
            .with(ProcessMetric::CPUS_ALLOWED.client, 1)
            .growing(ProcessMetric::CPUS_BUSY_US.client, 0, 990_000, 0)
            .growing(ProcessMetric::CPUS_IDLE_US.client, 0, 10_000, 0)
            .changed(|interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                (machine.cpu_busy_us, machine.cpu_idle_us) =
                    (1_000_000 * second, 1_000_000 * second);
            });
        assert_eq!(
            run.verdict(),
            "Nothing stopped it: the plan was met, with no headroom: other programs had 38 % of \
             the 2 CPUs of this machine, 1 of which the run may use, throughout."
        );
    }

    #[test]
    fn they_are_behind_what_the_server_does_by_itself() {
        let closing = |delayed| {
            beside(delayed).loaded(|load, second| {
                load.lag.clear();
                load.errors.add(ErrorKind::CloseFrame.with(1011), 40 * second.saturating_sub(1));
            })
        };
        // Connections that the server closes are no reason to blame other programs, …
        let run = closing(600);
        assert_eq!(run.speaks(&RULE).severity, Severity::Noted);
        run.check_all(&["server_closes_early", "cpu_contended"]);
        let verdict = run.verdict();
        assert!(verdict.contains("Besides, other programs had 86 % of the 2 CPUs"), "{verdict}");
        // … but another symptom is.
        let late = closing(600)
            .loaded(|load, second| load.lag.record_n(250_000, if second > 5 { 900 } else { 0 }));
        late.check_all(&["server_closes_early", "cpu_contended", "generator_saturated"]);
    }

    #[test]
    fn a_small_wait_is_the_cause_where_little_was_asked_for() {
        let run = |delayed| {
            beside(delayed).loaded(|load, second| {
                load.lag.clear();
                load.times[Operation::Message].record_n(2_400, if second > 5 { 500 } else { 0 });
            })
        };
        let judge = |run: &Run, threshold: &str| {
            let (history, summary) = run.whole();
            let judged = threshold.parse::<throng_report::Threshold>().unwrap().judge(&summary);
            crate::diagnose(&history, &summary, &[judged]).verdict
        };
        let verdict = judge(&run(136), "message.p99 < 2ms");
        let begin = "Missed: message.p99 2.40 ms, required < 2ms at 1k connections and 1k/s \
                     messages: other programs had 86 %";
        assert!(verdict.starts_with(begin), "{verdict}");
        let verdict = judge(&run(136), "message.p99 < 3ms");
        assert!(
            verdict.starts_with("Nothing stopped it: the plan was met, with no headroom"),
            "{verdict}"
        );
        let verdict = judge(&run(10), "message.p99 < 2ms");
        assert!(
            verdict.starts_with("Missed: message.p99 2.40 ms, required < 2ms; no cause"),
            "{verdict}"
        );
        assert!(verdict.contains("Besides, other programs had"), "{verdict}");
    }

    #[test]
    fn others_that_take_only_what_is_idle_are_not() {
        assert_eq!(beside(30).speaks(&RULE).severity, Severity::Noted);
    }

    #[test]
    fn a_machine_that_the_run_fills_itself_is_not_contended() {
        beside(600).growing(ProcessMetric::CPU_US.server, 0, 1_800_000, 0).is_silent(&RULE);
    }

    #[test]
    fn threads_that_would_fill_the_machine_many_times_are_not_held_up_by_others() {
        let wanting = |us| beside(600).growing(ProcessMetric::RUN_DELAY_US.server, 0, us, 0);
        assert_eq!(wanting(3_000_000).speaks(&RULE).severity, Severity::Slowed);
        assert_eq!(wanting(40_000_000).speaks(&RULE).severity, Severity::Noted);
    }

    #[test]
    fn where_the_server_cannot_be_seen_it_might_be_the_server() {
        let unseen = beside(600).changed(|interval, _| {
            interval.kernel.remove(ProcessMetric::CPU_US.server);
        });
        unseen.is_silent(&RULE);
    }

    #[test]
    fn without_a_symptom_contention_is_only_noted() {
        let run = beside(600).loaded(|load, _| load.lag.clear());
        assert_eq!(run.speaks(&RULE).severity, Severity::Noted);
    }

    #[test]
    fn the_kernels_own_work_on_packets_is_not_another_programs() {
        beside(600).growing(Metric::CPU_SOFTIRQ_US, 0, 1_700_000, 0).is_silent(&RULE);
    }
}
