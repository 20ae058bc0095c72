//! The time for which threads of the run waited for a CPU, and the latencies that this explains.
//!
//! Other programs on a machine are to blame for late answers only as far as the run waited for
//! them. The kernel measures that wait for each thread. A thread that waited for 30 ms in a second
//! made no answer late by 2 s, however busy the machine was.

use throng_measure::{Endpoint, ProcessMetric};

use crate::cpus::LONG_DELAY_SHARE;
use crate::history::Sample;
use crate::run_view::RunView;

/// The waits for a CPU of generator and server over a run.
#[derive(Clone, Debug)]
pub(crate) struct CpuWaits {
    /// The intervals of the generator and of the server in which the waits are known.
    sides: [Vec<Wait>; 2],
}

/// The use of CPUs by one side's threads in an interval, in shares of its time.
#[derive(Clone, Copy, Debug)]
struct Wait {
    from_ms: u64,
    to_ms: u64,
    /// The share for which its most delayed thread was ready to run and did not.
    waited: f64,
    /// The share for which its busiest thread ran.
    ran: f64,
}

impl CpuWaits {
    pub(crate) fn of(run: &RunView<'_>) -> Self {
        Self { sides: [Endpoint::Client, Endpoint::Server].map(|end| waits(run, end)) }
    }

    /// Reports whether they explain an answer of an interval that took this long.
    pub(crate) fn explain_answer(&self, sample: &Sample, us: u64) -> bool {
        let to_ms = sample.interval.at_ms;
        let begin_ms = to_ms.saturating_sub(sample.interval.span_ms);
        // When in the interval it came is not known, nor when its threads waited there.
        let waited_from_ms = to_ms.saturating_sub(us / 1000).min(begin_ms);
        let came_first_from_ms = begin_ms.saturating_sub(us / 1000);
        self.sides.iter().any(|side| {
            explains(side, waited_from_ms, to_ms, us)
                || explains(side, came_first_from_ms, begin_ms, us)
        })
    }

    /// Reports whether they explain most of these answers: their intervals, and how long they took.
    pub(crate) fn explain_most(&self, late: &[(&Sample, u64)]) -> bool {
        let explained = late.iter().filter(|(sample, us)| self.explain_answer(sample, *us)).count();
        explained * 2 >= late.len()
    }

    /// Reports whether they explain most of these medians. Half of the answers of an interval took
    /// so long, so the threads waited throughout: a short wait delays few of them.
    pub(crate) fn explain_medians(&self, late: &[(&Sample, u64)]) -> bool {
        let is_explained = |(sample, us): &&(&Sample, u64)| {
            let (to_ms, span_ms) = (sample.interval.at_ms, sample.interval.span_ms);
            let ms = span_ms.max(us / 1000).min(to_ms);
            self.sides.iter().any(|side| explains(side, to_ms - ms, to_ms, ms * 1000))
        };
        late.iter().filter(is_explained).count() * 2 >= late.len()
    }

    /// Reports whether the waits of the server alone explain a time in which it answered no user.
    pub(crate) fn explain_silence(&self, from_ms: u64, to_ms: u64) -> bool {
        let [_, server] = &self.sides;
        explains(server, from_ms, to_ms, to_ms.saturating_sub(from_ms).saturating_mul(1000))
    }

    /// Reports whether the server waited for as long as a short silence in the intervals that the
    /// silence touches. When in an interval it waited is not known.
    pub(crate) fn may_explain_silence(&self, from_ms: u64, to_ms: u64) -> bool {
        let [_, server] = &self.sides;
        let touched = server.iter().filter(|wait| wait.to_ms > from_ms && wait.from_ms < to_ms);
        let (mut waited_ms, mut longest_ms) = (0.0, 0.0_f64);
        for wait in touched {
            waited_ms += wait.waited * wait.span_ms();
            longest_ms = longest_ms.max(wait.span_ms());
        }
        let silence_ms = to_ms.saturating_sub(from_ms) as f64;
        silence_ms < longest_ms && waited_ms >= silence_ms
    }
}

/// Reports whether the waits between two times explain a delay in them. At least half of what the
/// thread did not compute itself must be waits: a thread that is always ready to run has a queue
/// before it, which each wait makes longer, so its own work is a part of the delay.
fn explains(side: &[Wait], from_ms: u64, to_ms: u64, us: u64) -> bool {
    let (mut waited_us, mut ran_us) = (0.0, 0.0);
    for wait in side {
        let ms = wait.to_ms.min(to_ms).saturating_sub(wait.from_ms.max(from_ms));
        waited_us += wait.waited * ms as f64 * 1000.0;
        ran_us += wait.ran * ms as f64 * 1000.0;
    }
    let us = us as f64;
    waited_us * WAITED_TIMES + ran_us >= us && waited_us >= us * LONG_DELAY_SHARE
}

/// Returns the waits of one side, interval by interval, as far as they are known.
fn waits(run: &RunView<'_>, end: Endpoint) -> Vec<Wait> {
    let share = |sample: &Sample, gauge: ProcessMetric| {
        run.value(end, sample, gauge.of(end)).map(|permille| permille as f64 / 1000.0)
    };
    let delayed = |sample: &Sample| share(sample, ProcessMetric::MOST_DELAYED_THREAD_PERMILLE);
    // Without the waits of threads, those for a quota and for a hypervisor may be known.
    let are_known = run.samples().iter().any(|sample| delayed(sample).is_some());
    let mut found: Vec<Wait> = Vec::new();
    for sample in run.samples() {
        let waited = delayed(sample);
        if are_known && waited.is_none() {
            continue;
        }
        let to_ms = sample.interval.at_ms;
        let begin_ms = to_ms.saturating_sub(sample.interval.span_ms);
        // A recording of the server may have longer intervals than the run.
        let from_ms = found.last().map_or(begin_ms, |before| before.to_ms);
        let ran = share(sample, ProcessMetric::BUSIEST_THREAD_PERMILLE).unwrap_or(0.0);
        found.push(Wait { from_ms, to_ms, waited: waited.unwrap_or(0.0), ran });
    }
    for wait in &mut found {
        let lacking = throttled(run, end, wait).max(wait.waited) + stolen(run, end, wait);
        wait.waited = lacking.min(1.0);
    }
    found
}

impl Wait {
    /// Returns the length of the interval, at least a millisecond: the times of a damaged file may
    /// go backwards.
    fn span_ms(&self) -> f64 {
        self.to_ms.saturating_sub(self.from_ms).max(1) as f64
    }
}

/// Returns the share of an interval for which a quota held up the threads of one side.
fn throttled(run: &RunView<'_>, end: Endpoint, wait: &Wait) -> f64 {
    let of = |sample: &Sample| run.value(end, sample, ProcessMetric::THROTTLED_US.of(end));
    let us = grown(run, wait, |sample| Some(of(sample)? as f64));
    us / wait.span_ms() / 1000.0
}

/// Returns the share of a CPU's time that the hypervisor gave to other guests in an interval.
fn stolen(run: &RunView<'_>, end: Endpoint, wait: &Wait) -> f64 {
    let us = grown(run, wait, |sample| {
        let machine = run.machine(end, sample)?;
        Some(machine.cpu_stolen_us as f64 / machine.cpus.max(1) as f64)
    });
    us / wait.span_ms() / 1000.0
}

/// Returns the growth of a value over an interval, or 0 if it is not known at both ends.
fn grown(run: &RunView<'_>, wait: &Wait, of: impl Fn(&Sample) -> Option<f64>) -> f64 {
    let at = |ms: u64| {
        let after = run.samples().partition_point(|sample| sample.interval.at_ms < ms);
        of(run.samples().get(after)?)
    };
    at(wait.from_ms).zip(at(wait.to_ms)).map_or(0.0, |(from, to)| (to - from).max(0.0))
}

/// How many times the waits must fit into a delay at most: if they are less than half of it,
/// something else is the larger part.
const WAITED_TIMES: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    /// Checks whether the waits of a run explain that answers of the eighth second took this long.
    #[track_caller]
    fn check(run: &Run, ms: u64, expected: bool) {
        let (history, summary) = run.whole();
        let view = RunView::new(&history, &summary);
        let sample = &view.samples()[8];
        let found = CpuWaits::of(&view).explain_answer(sample, ms * 1000);
        assert_eq!(found, expected, "{ms} ms");
    }

    fn waiting(delayed: i64, busy: i64) -> Run {
        Run::quiet()
            .with(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, delayed)
            .with(ProcessMetric::BUSIEST_THREAD_PERMILLE.server, busy)
    }

    #[test]
    fn a_few_milliseconds_a_second_do_not_explain_two_seconds() {
        check(&waiting(30, 20), 2_000, false);
        check(&waiting(330, 20), 2_000, false);
        check(&waiting(30, 20), 50, true);
        check(&waiting(330, 20), 400, true);
        check(&Run::quiet(), 50, false);
    }

    #[test]
    fn a_thread_that_always_runs_or_waits_has_a_queue_before_it() {
        check(&waiting(600, 20), 5_000, true);
        check(&waiting(300, 650), 5_000, true);
        // It computes nearly all of that itself.
        check(&waiting(100, 890), 5_000, false);
    }

    #[test]
    fn a_gap_of_a_damaged_file_may_end_before_it_begins() {
        let (history, summary) = waiting(600, 20).whole();
        let waits = CpuWaits::of(&RunView::new(&history, &summary));
        assert!(waits.explain_silence(5_000, 6_000));
        // No time needs no explanation.
        assert!(waits.explain_silence(6_000, 5_000));
    }

    #[test]
    fn one_long_wait_explains_the_answers_after_it() {
        let run = waiting(0, 10).changed(|interval, second| {
            let delayed = if second == 7 { 1_000 } else { 0 };
            interval.kernel.set(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE.server, delayed);
        });
        check(&run, 1_800, true);
        check(&run, 700, true);
        check(&run, 2_500, false);
    }

    #[test]
    fn what_a_quota_or_a_hypervisor_takes_is_a_wait_too() {
        check(
            &waiting(0, 20).growing(ProcessMetric::THROTTLED_US.server, 0, 500_000, 0),
            400,
            true,
        );
        let robbed = |us: u64| {
            waiting(0, 20).changed(move |interval, second| {
                interval.machine.as_mut().unwrap().cpu_stolen_us = us * second;
            })
        };
        check(&robbed(600_000), 400, true);
        check(&robbed(20_000), 400, false);
    }
}
