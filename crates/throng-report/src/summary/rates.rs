//! Rates and costs from the growth of the counters in each interval.

use std::collections::VecDeque;

use throng_measure::PerOperation;

/// The growth of the counters in an interval, or in several that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntervalGrowth {
    pub span_ms: u64,
    /// The time in which the generator's counters grew.
    pub grown_us: u64,
    /// Operations that ended as expected.
    pub ok: PerOperation<u64>,
    /// Handshakes of TLS that resumed a session.
    pub resumed: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages received over WebSockets.
    pub received_by_users: u64,
    pub turns_intended: u64,
    pub errors: u64,
    /// Connects, joins, pushes, HTTP requests and messages that began.
    pub attempts: u64,
    pub accepted: u64,
    pub received: u64,
    /// CPU time in microseconds; `None` in an interval where it is unknown.
    pub load_cpu_us: Option<u64>,
    pub machine_cpu: Option<MachineCpu>,
    /// The server's CPU time since its previous snapshot, which may be several intervals ago.
    pub server_cpu: Option<Cpu>,
    /// The CPU time of a server that is not throng's.
    pub foreign_cpu: Option<Cpu>,
    /// Whether all users were leaving at its end, or before it.
    pub leaving: bool,
}

/// CPU time, and the time span in which it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpu {
    pub span_ms: u64,
    pub us: u64,
}

impl IntervalGrowth {
    pub(super) fn load_cpu(&self) -> Option<Cpu> {
        self.load_cpu_us.map(|us| Cpu { span_ms: self.span_ms, us })
    }

    /// Adds the interval after it, so that the two are one.
    pub(super) fn merge(&mut self, next: &Self) {
        for (sum, more) in [
            (&mut self.span_ms, next.span_ms),
            (&mut self.grown_us, next.grown_us),
            (&mut self.resumed, next.resumed),
            (&mut self.sent, next.sent),
            (&mut self.received_by_users, next.received_by_users),
            (&mut self.turns_intended, next.turns_intended),
            (&mut self.errors, next.errors),
            (&mut self.attempts, next.attempts),
            (&mut self.accepted, next.accepted),
            (&mut self.received, next.received),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (operation, ok) in self.ok.iter_mut() {
            *ok = ok.saturating_add(next.ok[operation]);
        }
        // These are of the whole span, so they are known only if both are.
        self.load_cpu_us = both(self.load_cpu_us, next.load_cpu_us, u64::saturating_add);
        self.machine_cpu = both(self.machine_cpu, next.machine_cpu, MachineCpu::plus);
        // These have spans of their own.
        self.server_cpu = either(self.server_cpu, next.server_cpu, Cpu::plus);
        self.foreign_cpu = either(self.foreign_cpu, next.foreign_cpu, Cpu::plus);
        self.leaving |= next.leaving;
    }

    pub(super) fn machine_busy(&self) -> Option<Cpu> {
        self.machine_cpu.map(|cpu| Cpu { span_ms: self.span_ms, us: cpu.busy_us })
    }
}

impl Cpu {
    fn plus(self, other: Self) -> Self {
        Self {
            span_ms: self.span_ms.saturating_add(other.span_ms),
            us: self.us.saturating_add(other.us),
        }
    }
}

fn both<T>(one: Option<T>, two: Option<T>, sum: fn(T, T) -> T) -> Option<T> {
    Some(sum(one?, two?))
}

fn either<T>(one: Option<T>, two: Option<T>, sum: fn(T, T) -> T) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(sum(one, two)),
        (one, two) => one.or(two),
    }
}

/// The CPU time of all CPUs of a machine in one interval, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachineCpu {
    pub busy_us: u64,
    pub idle_us: u64,
    pub stolen_us: u64,
}

impl MachineCpu {
    /// Sums the part of the run that is [`measured`]; `None` if it has no data.
    pub(super) fn of(growths: &[IntervalGrowth]) -> Option<Self> {
        let known = measured(growths, |growth| u64::from(growth.machine_cpu.is_some()));
        known.iter().filter_map(|growth| growth.machine_cpu).reduce(Self::plus)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            busy_us: self.busy_us.saturating_add(other.busy_us),
            idle_us: self.idle_us.saturating_add(other.idle_us),
            stolen_us: self.stolen_us.saturating_add(other.stolen_us),
        }
    }
}

/// Returns the intervals before all users began to leave. The interval in which that began is part
/// of both: it counts only if there was none of `n` before it, as in a run that ended within its
/// first second.
fn measured(growths: &[IntervalGrowth], n: impl Fn(&IntervalGrowth) -> u64) -> &[IntervalGrowth] {
    let leaving_from = growths.iter().position(|growth| growth.leaving).unwrap_or(growths.len());
    let before = &growths[..leaving_from];
    if before.iter().any(|growth| n(growth) > 0) {
        before
    } else {
        &growths[..growths.len().min(leaving_from + 1)]
    }
}

/// Returns the rate of the best stretch of at least a second; in a shorter run, the rate over all
/// of it.
///
/// The time of an interval is the time in which its counters grew, not the time between two lines:
/// otherwise the best of many stretches would be one that was longer than it says.
pub(super) fn rate_most(
    growths: &[IntervalGrowth],
    n: impl Fn(&IntervalGrowth) -> u64,
) -> Option<f64> {
    let growths = measured(growths, &n);
    // A sum of any numbers that a file may hold fits.
    let (mut count, mut span_us, mut first) = (0_u128, 0_u128, 0);
    let mut best: Option<f64> = None;
    for growth in growths {
        count += u128::from(n(growth));
        span_us += u128::from(growth.grown_us);
        while span_us - u128::from(growths[first].grown_us) >= STRETCH_US {
            span_us -= u128::from(growths[first].grown_us);
            count -= u128::from(n(&growths[first]));
            first += 1;
        }
        if span_us >= STRETCH_US {
            let rate = per_second(count, span_us);
            best = Some(best.map_or(rate, |best| best.max(rate)));
        }
    }
    let best = best.or_else(|| (span_us > 0).then(|| per_second(count, span_us)));
    best.filter(|rate| *rate > 0.0)
}

/// Returns the rate from the first to the last interval in which `n` grew. The run, and not the
/// clock, begins and ends these two intervals, so they are left out if as many others remain.
pub(super) fn rate_mean(
    growths: &[IntervalGrowth],
    n: impl Fn(&IntervalGrowth) -> u64,
) -> Option<f64> {
    let growths = measured(growths, &n);
    let first = growths.iter().position(|growth| n(growth) > 0)?;
    let last = growths.iter().rposition(|growth| n(growth) > 0)?;
    let mut during = &growths[first..=last];
    if let [_, whole @ .., _] = during
        && whole.len() >= 2
        && whole.iter().any(|growth| n(growth) > 0)
    {
        during = whole;
    }
    let span_us: u128 = during.iter().map(|growth| u128::from(growth.grown_us)).sum();
    let count = during.iter().map(|growth| u128::from(n(growth))).sum();
    (span_us > 0).then(|| per_second(count, span_us))
}

/// A mean rate like that of [`rate_mean`], over intervals that are not kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanRate {
    /// The first interval with any, the last one, and all from the one to the other.
    first: RatePart,
    last: RatePart,
    all: RatePart,
    /// Intervals in `all`.
    intervals: u64,
    /// The time since the last interval with any, and its intervals.
    idle_us: u64,
    idle_intervals: u64,
    has_left: bool,
}

/// A number and the time in which it grew.
#[derive(Clone, Copy, Debug, Default)]
struct RatePart {
    n: u64,
    us: u64,
}

impl MeanRate {
    /// Adds the next interval. While all users leave it counts only if nothing did before.
    pub(super) fn add(&mut self, n: u64, grown_us: u64, is_leaving: bool) {
        let is_over = std::mem::replace(&mut self.has_left, is_leaving);
        if is_leaving && (is_over || self.intervals > 0) {
            return;
        }
        if n == 0 {
            self.idle_us = self.idle_us.saturating_add(grown_us);
            self.idle_intervals += 1;
            return;
        }
        let part = RatePart { n, us: grown_us };
        if self.intervals == 0 {
            (self.idle_us, self.idle_intervals) = (0, 0);
            self.first = part;
        }
        self.all.n = self.all.n.saturating_add(n);
        self.all.us = self.all.us.saturating_add(self.idle_us).saturating_add(grown_us);
        self.intervals += self.idle_intervals + 1;
        (self.idle_us, self.idle_intervals) = (0, 0);
        self.last = part;
    }

    pub(super) fn per_second(&self) -> Option<f64> {
        let Self { first, last, all, .. } = self;
        let whole = RatePart {
            n: all.n.saturating_sub(first.n).saturating_sub(last.n),
            us: all.us.saturating_sub(first.us).saturating_sub(last.us),
        };
        let during = if self.intervals >= 4 && whole.n > 0 { whole } else { *all };
        (during.us > 0).then(|| per_second(during.n.into(), during.us.into()))
    }
}

/// A best rate like that of [`rate_most`], over intervals that are not kept.
#[derive(Clone, Debug, Default)]
pub(super) struct BestRate {
    /// The intervals of the stretch that ends with the last one.
    stretch: VecDeque<RatePart>,
    count: u128,
    span_us: u128,
    best: Option<f64>,
    has_begun: bool,
    has_left: bool,
}

impl BestRate {
    /// Adds the next interval. While all users leave it counts only if nothing did before.
    pub(super) fn add(&mut self, n: u64, us: u64, is_leaving: bool) {
        let is_over = std::mem::replace(&mut self.has_left, is_leaving);
        if is_leaving && (is_over || self.has_begun) {
            return;
        }
        self.has_begun |= n > 0;
        self.count += u128::from(n);
        self.span_us += u128::from(us);
        self.stretch.push_back(RatePart { n, us });
        while let Some(first) = self.stretch.front()
            && self.span_us - u128::from(first.us) >= STRETCH_US
        {
            self.count -= u128::from(first.n);
            self.span_us -= u128::from(first.us);
            self.stretch.pop_front();
        }
        if self.span_us >= STRETCH_US {
            let rate = per_second(self.count, self.span_us);
            self.best = Some(self.best.map_or(rate, |best| best.max(rate)));
        }
    }

    pub(super) fn per_second(&self) -> Option<f64> {
        let of_all = || (self.span_us > 0).then(|| per_second(self.count, self.span_us));
        self.best.or_else(of_all).filter(|rate| *rate > 0.0)
    }
}

/// Returns the CPU microseconds per unit of `n`, over the busy intervals.
pub(super) fn cost(
    growths: &[IntervalGrowth],
    n: impl Fn(&IntervalGrowth) -> u64,
    cpu: impl Fn(&IntervalGrowth) -> Option<Cpu>,
) -> Option<f64> {
    let growths = measured(growths, &n);
    let known = || growths.iter().filter_map(|growth| Some((n(growth), cpu(growth)?)));
    let rate = |n: u64, cpu: Cpu| per_second(n.into(), u128::from(cpu.span_ms.max(1)) * 1_000);
    let most = known().map(|(n, cpu)| rate(n, cpu)).fold(0.0, f64::max);
    let busy = known().filter(|(n, cpu)| *n > 0 && rate(*n, *cpu) >= most / BUSY);
    let (count, cpu_us) = busy.fold((0_u128, 0_u128), |sum, (n, cpu)| {
        (sum.0 + u128::from(n), sum.1 + u128::from(cpu.us))
    });
    (count > 0).then(|| cpu_us as f64 / count as f64)
}

/// Returns the CPUs kept busy on average, over the intervals with data.
pub(super) fn cores_used(
    growths: &[IntervalGrowth],
    cpu: impl Fn(&IntervalGrowth) -> Option<Cpu>,
) -> Option<f64> {
    let growths = measured(growths, |growth| u64::from(cpu(growth).is_some()));
    let known = growths.iter().filter_map(cpu);
    let (span_ms, cpu_us) = known.fold((0_u128, 0_u128), |sum, cpu| {
        (sum.0 + u128::from(cpu.span_ms), sum.1 + u128::from(cpu.us))
    });
    (span_ms > 0).then(|| cpu_us as f64 / (span_ms * 1000) as f64)
}

fn per_second(count: u128, span_us: u128) -> f64 {
    count as f64 * 1e6 / span_us as f64
}

/// One second, with a margin for an interval that the scheduler made a little short.
const STRETCH_US: u128 = 950_000;
/// The fraction of the busiest interval's rate that makes an interval busy: one of this number.
const BUSY: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::Operation;

    fn connected(connects: u64) -> PerOperation<u64> {
        let mut ok = PerOperation::default();
        ok[Operation::Connect] = connects;
        ok
    }

    fn growths(done: &[(u64, u64, u64)]) -> Vec<IntervalGrowth> {
        let growth = |&(span_ms, connects, cpu_us): &(u64, u64, u64)| IntervalGrowth {
            span_ms,
            grown_us: span_ms * 1_000,
            ok: connected(connects),
            load_cpu_us: Some(cpu_us),
            ..IntervalGrowth::default()
        };
        done.iter().map(growth).collect()
    }

    #[test]
    fn the_mean_rate_of_a_steady_run_is_its_rate_though_it_begins_and_ends_in_mid_interval() {
        let growth = |connects| IntervalGrowth {
            grown_us: 1_000_000,
            ok: connected(connects),
            ..IntervalGrowth::default()
        };
        let growths = [growth(950), growth(1_000), growth(1_000), growth(50)];
        assert_eq!(rate_mean(&growths, |growth| growth.ok[Operation::Connect]), Some(1_000.0));
        assert_eq!(rate_mean(&growths[..2], |growth| growth.ok[Operation::Connect]), Some(975.0));
    }

    #[test]
    fn the_mean_rate_is_the_same_where_intervals_are_not_kept() {
        let of = |done: &[(u64, bool)]| {
            let growth = |&(connects, leaving): &(u64, bool)| IntervalGrowth {
                grown_us: 1_000_000,
                ok: connected(connects),
                leaving,
                ..IntervalGrowth::default()
            };
            let growths: Vec<IntervalGrowth> = done.iter().map(growth).collect();
            let mut rate = MeanRate::default();
            let mut best = BestRate::default();
            for (n, leaving) in done {
                rate.add(*n, 1_000_000, *leaving);
                best.add(*n, 1_000_000, *leaving);
            }
            let connects = |growth: &IntervalGrowth| growth.ok[Operation::Connect];
            assert_eq!(best.per_second(), rate_most(&growths, connects), "{done:?}");
            let mean = rate_mean(&growths, connects);
            assert_eq!(rate.per_second(), mean, "{done:?}");
            mean
        };
        let during = |counts: &[u64]| counts.iter().map(|n| (*n, false)).collect::<Vec<_>>();
        assert_eq!(of(&during(&[950, 1_000, 1_000, 50])), Some(1_000.0));
        assert_eq!(of(&during(&[0, 0, 950, 1_000])), Some(975.0));
        assert_eq!(of(&during(&[7, 0, 0, 0, 5, 0])), Some(2.4));
        assert_eq!(of(&during(&[7, 0, 9, 0, 5, 0])), Some(3.0));
        assert_eq!(of(&during(&[0, 0])), None);
        assert_eq!(of(&[(4, false), (6, false), (9, true), (9, true)]), Some(5.0));
        assert_eq!(of(&[(0, false), (8, true), (9, true)]), Some(8.0));
    }

    #[test]
    fn the_best_second_is_found_in_intervals_of_any_length() {
        let most =
            |done: &[(u64, u64, u64)]| rate_most(&growths(done), |s| s.ok[Operation::Connect]);
        assert_eq!(most(&[(1000, 5, 0), (1000, 9, 0), (1000, 7, 0)]), Some(9.0));
        let short: Vec<_> = (0..8).map(|i| (250, if i < 4 { 1 } else { 2 }, 0)).collect();
        assert_eq!(most(&short), Some(8.0));
        assert_eq!(most(&[(2000, 10, 0), (10, 1, 0)]), Some(11_000.0 / 2010.0));
        assert_eq!(most(&[(500, 10, 0)]), Some(20.0));
        assert_eq!(most(&[(1000, 0, 0)]), None);
    }

    #[test]
    fn a_second_that_was_collected_late_is_no_record() {
        let late = |grown_us: u64| IntervalGrowth {
            span_ms: 1_000,
            grown_us,
            ok: connected(grown_us / 1_000),
            ..IntervalGrowth::default()
        };
        let growths = [late(1_000_000), late(1_050_000), late(960_000), late(1_500_000)];
        assert_eq!(rate_most(&growths, |growth| growth.ok[Operation::Connect]), Some(1_000.0));
        assert_eq!(rate_mean(&growths, |growth| growth.ok[Operation::Connect]), Some(1_000.0));
    }

    #[test]
    fn the_mean_rate_leaves_out_the_quiet_before_and_after() {
        let done = [(1000, 0, 0), (1000, 10, 0), (1000, 0, 0), (1000, 20, 0), (60_000, 0, 0)];
        assert_eq!(rate_mean(&growths(&done), |s| s.ok[Operation::Connect]), Some(10.0));
    }

    #[test]
    fn cost_is_that_of_the_busy_intervals() {
        let done = [(1000, 100, 2000), (20_000, 2000, 40_000), (1000, 1, 900_000), (1000, 0, 5)];
        assert_eq!(
            cost(&growths(&done), |s| s.ok[Operation::Connect], IntervalGrowth::load_cpu),
            Some(20.0)
        );
        assert_eq!(
            cost(&growths(&done), |s| s.ok[Operation::Message], IntervalGrowth::load_cpu),
            None
        );
        assert_eq!(cost(&growths(&done), |s| s.ok[Operation::Connect], |s| s.server_cpu), None);
    }

    #[test]
    fn leaving_is_no_drop_in_rate_no_record_and_no_cost() {
        let mut run = growths(&[(1000, 10, 200), (1000, 10, 200), (1000, 9, 900), (1000, 90, 900)]);
        run[2].leaving = true;
        run[3].leaving = true;
        assert_eq!(rate_mean(&run, |s| s.ok[Operation::Connect]), Some(10.0));
        assert_eq!(rate_most(&run, |s| s.ok[Operation::Connect]), Some(10.0));
        assert_eq!(cost(&run, |s| s.ok[Operation::Connect], IntervalGrowth::load_cpu), Some(20.0));
        assert_eq!(cores_used(&run, IntervalGrowth::load_cpu), Some(0.0002));
    }

    #[test]
    fn a_run_that_is_over_within_a_second_has_the_rates_of_that_second() {
        let mut run = growths(&[(0, 0, 0), (1000, 8, 160), (1000, 50, 160)]);
        run[0].load_cpu_us = None;
        run[1].leaving = true;
        run[2].leaving = true;
        assert_eq!(rate_mean(&run, |s| s.ok[Operation::Connect]), Some(8.0));
        assert_eq!(rate_most(&run, |s| s.ok[Operation::Connect]), Some(8.0));
        assert_eq!(cost(&run, |s| s.ok[Operation::Connect], IntervalGrowth::load_cpu), Some(20.0));
        assert_eq!(cores_used(&run, IntervalGrowth::load_cpu), Some(0.00016));
    }

    #[test]
    fn cores_used_is_cpu_time_over_wall_time() {
        let done = [(1000, 0, 1_500_000), (3000, 0, 500_000)];
        assert_eq!(cores_used(&growths(&done), IntervalGrowth::load_cpu), Some(0.5));
    }

    #[test]
    fn a_server_that_reports_now_and_then_used_its_cpu_over_all_the_time_between() {
        let reported = |n: u64| Cpu { span_ms: 5_000, us: 10_000_000 * n };
        let all: Vec<IntervalGrowth> = (1..=10)
            .map(|second| IntervalGrowth {
                span_ms: 1_000,
                accepted: if second % 5 == 0 { 50_000 } else { 0 },
                server_cpu: (second % 5 == 0).then(|| reported(1)),
                ..IntervalGrowth::default()
            })
            .collect();
        assert_eq!(cores_used(&all, |growth| growth.server_cpu), Some(2.0));
        assert_eq!(cost(&all, |growth| growth.accepted, |growth| growth.server_cpu), Some(200.0));
    }
}
