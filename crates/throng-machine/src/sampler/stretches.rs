//! The longest times for which a program used a CPU without a rest, and for which it used none.
//!
//! The mean over a second does not distinguish a server that computes for 300 ms and then rests
//! from one that answers evenly: both use 0.3 CPUs. Users of the first wait in between.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::time::Instant;

/// Follows one program's CPU time in short steps.
#[derive(Clone, Debug, Default)]
pub(super) struct StretchMeter {
    last: Option<(Instant, u64)>,
    busy: Stretch,
    idle: Stretch,
    /// Latest steps, for requests about a time in the past.
    steps: VecDeque<(Instant, u64)>,
}

/// The current stretch, and the longest since the last call of `take`.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    now_us: u64,
    longest_us: u64,
}

/// The longest stretches of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stretches {
    /// Longest time with hardly a rest on a CPU, in milliseconds.
    pub(super) busy_ms: u64,
    /// Longest time without any CPU time, in milliseconds.
    pub(super) idle_ms: u64,
}

impl StretchMeter {
    /// Adds the CPU time that the program has used until `now`.
    pub(super) fn step(&mut self, now: Instant, cpu_us: u64) {
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back((now, cpu_us));
        let Some((at, before_us)) = self.last.replace((now, cpu_us)) else { return };
        let elapsed_us = now.micros_since(at);
        let used_us = cpu_us.saturating_sub(before_us);
        // CPU time grows in steps of 10 ms: in a short step, half of it is as much as can be
        // expected.
        self.busy.step(elapsed_us, used_us * 2 >= elapsed_us);
        self.idle.step(elapsed_us, used_us == 0);
    }

    /// Returns the CPU time that was used between two times, as far back as is known, or `None` if
    /// less than half of it is known.
    pub(super) fn used_between(&self, from: Instant, to: Instant) -> Option<u64> {
        let first = self.steps.front()?.0.max(from);
        let last = self.steps.back()?.0.min(to);
        let is_most = last.micros_since(first) * 2 >= to.micros_since(from);
        is_most.then(|| Some(self.used_by(last)?.saturating_sub(self.used_by(first)?)))?
    }

    /// Returns the CPU time until a time between two steps, in proportion.
    fn used_by(&self, at: Instant) -> Option<u64> {
        let after = self.steps.partition_point(|(step, _)| *step < at);
        let (next, next_us) = *self.steps.get(after)?;
        let Some((before, before_us)) = after.checked_sub(1).map(|n| self.steps[n]) else {
            return Some(next_us);
        };
        let share = at.micros_since(before) as f64 / next.micros_since(before).max(1) as f64;
        Some(before_us + (next_us.saturating_sub(before_us) as f64 * share) as u64)
    }

    /// Returns the longest stretches since the last call. A stretch that continues counts up to
    /// now, and continues.
    pub(super) fn take(&mut self) -> Option<Stretches> {
        self.last?;
        let [busy_ms, idle_ms] = [&mut self.busy, &mut self.idle].map(|stretch| {
            let longest_us = stretch.longest_us.max(stretch.now_us);
            stretch.longest_us = 0;
            longest_us / 1000
        });
        Some(Stretches { busy_ms, idle_ms })
    }
}

impl Stretch {
    fn step(&mut self, elapsed_us: u64, goes_on: bool) {
        self.now_us = if goes_on { self.now_us + elapsed_us } else { 0 };
        self.longest_us = self.longest_us.max(self.now_us);
    }
}

/// The shortest time between two steps: shorter ones see less than a tick of the kernel's
/// accounting.
pub(crate) const STEP: Duration = Duration::from_millis(20);

/// The most steps that are kept: half a minute, in 24 KB.
const STEPS_MAX: usize = 1_500;

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a meter after steps of 20 ms with this many milliseconds of CPU time each.
    fn meter(steps: &[u64]) -> StretchMeter {
        let mut meter = StretchMeter::default();
        let (mut now, mut cpu_us) = (Instant::from_nanos(1), 0);
        meter.step(now, cpu_us);
        for used_ms in steps {
            (now, cpu_us) = (now + STEP, cpu_us + used_ms * 1000);
            meter.step(now, cpu_us);
        }
        meter
    }

    #[test]
    fn a_program_that_computes_in_bursts_has_long_stretches() {
        let burst = [vec![20; 15], vec![0; 35]].concat();
        assert_eq!(meter(&burst).take(), Some(Stretches { busy_ms: 300, idle_ms: 700 }));
        // As much CPU time, but evenly.
        let even: Vec<u64> = (0..50).map(|n| if n % 3 == 0 { 10 } else { 0 }).collect();
        assert_eq!(meter(&even).take(), Some(Stretches { busy_ms: 20, idle_ms: 40 }));
    }

    #[test]
    fn a_stretch_that_lasts_longer_than_an_interval_goes_on() {
        let mut meter = meter(&[0; 50]);
        assert_eq!(meter.take().unwrap().idle_ms, 1_000);
        let (now, cpu_us) = meter.last.unwrap();
        meter.step(now + STEP, cpu_us);
        assert_eq!(meter.take().unwrap().idle_ms, 1_020);
        meter.step(now + STEP + STEP, cpu_us + 10_000);
        meter.step(now + STEP + STEP + STEP, cpu_us + 10_000);
        assert_eq!(meter.take(), Some(Stretches { busy_ms: 20, idle_ms: 20 }));
    }

    #[test]
    fn cpu_time_of_a_past_time_is_known_for_a_while() {
        let burst = [vec![0; 10], vec![20; 15], vec![0; 25]].concat();
        let meter = meter(&burst);
        let at = |ms: u64| Instant::from_nanos(1 + ms * 1_000_000);
        let used_ms = |from, to| meter.used_between(at(from), at(to)).map(|us| us / 1000);
        assert_eq!(used_ms(200, 500), Some(300));
        assert_eq!(used_ms(250, 450), Some(200));
        assert_eq!(used_ms(600, 900), Some(0));
        assert_eq!(used_ms(0, 1_500), Some(300), "the last steps are still to come");
        assert_eq!(used_ms(900, 3_000), None);
    }

    #[test]
    fn a_program_without_steps_has_no_stretches() {
        assert_eq!(StretchMeter::default().take(), None);
    }
}
