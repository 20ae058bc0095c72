//! The rates at which the counters of a generator grow.

use throng_measure::{Interval, LoadCounters, LoadInterval};

/// Returns each interval with the generator's counters before and after it, and its seconds.
pub fn steps(
    intervals: &[Interval],
) -> impl Iterator<Item = (&Interval, &LoadInterval, &LoadInterval, f64)> {
    intervals.windows(2).filter_map(|pair| {
        let (before, now) = (pair[0].load.as_ref()?, pair[1].load.as_ref()?);
        let seconds = pair[1].span_ms as f64 / 1000.0;
        (seconds > 0.0).then_some((&pair[1], before, now, seconds))
    })
}

/// A window of a run.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The earliest beginning of an interval within the window.
    pub from_ms: u64,
    /// The latest end of an interval within the window.
    pub until_ms: u64,
    /// The shortest length of an interval within the window.
    pub span_ms_least: u64,
}

/// Returns the rate of the counter `count` over the intervals within the window. Intervals in which
/// the users leave do not count.
pub fn rate_within(
    intervals: &[Interval],
    within: Window,
    count: impl Fn(&LoadCounters) -> u64,
) -> Option<f64> {
    let (mut done, mut seconds) = (0, 0.0);
    for (interval, before, now, span) in steps(intervals) {
        let is_within = interval.at_ms - interval.span_ms >= within.from_ms
            && interval.at_ms <= within.until_ms
            && interval.span_ms >= within.span_ms_least;
        if is_within && !now.is_leaving() {
            done += count(&now.counters.since(&before.counters));
            seconds += span;
        }
    }
    (done > 0).then(|| done as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a run with these connects in each second.
    fn connecting(connects: &[u64]) -> Vec<Interval> {
        let mut load = LoadInterval::default();
        let mut intervals = vec![Interval { load: Some(load.clone()), ..Interval::default() }];
        for (i, n) in connects.iter().enumerate() {
            load.counters.connects_ok += n;
            let at_ms = 1000 * (i as u64 + 1);
            let load = Some(load.clone());
            intervals.push(Interval { at_ms, span_ms: 1000, load, ..Interval::default() });
        }
        intervals
    }

    fn rate(run: &[Interval]) -> Option<f64> {
        rate_until(run, u64::MAX)
    }

    fn rate_until(run: &[Interval], until_ms: u64) -> Option<f64> {
        let within = Window { from_ms: 900, until_ms, span_ms_least: 500 };
        rate_within(run, within, |counters| counters.connects_ok)
    }

    #[test]
    fn intervals_outside_the_window_do_not_count() {
        let run = connecting(&[1_000, 12_000, 14_000, 100]);
        assert_eq!(rate_until(&run, 3_000), Some(13_000.0));
        assert_eq!(rate_until(&run, 2_999), Some(12_000.0));
        let mut run = connecting(&[1_000, 12_000, 14_000]);
        run[3].span_ms = 400;
        assert_eq!(rate(&run), Some(12_000.0));
    }

    #[test]
    fn the_first_second_does_not_count() {
        assert_eq!(rate(&connecting(&[1_000, 12_000, 14_000])), Some(13_000.0));
        assert_eq!(rate(&connecting(&[9_000])), None);
    }

    #[test]
    fn a_second_in_which_the_users_leave_does_not_count() {
        let mut run = connecting(&[1_000, 12_000, 500]);
        run[3].load.as_mut().unwrap().phase = throng_measure::LEAVING.to_owned();
        assert_eq!(rate(&run), Some(12_000.0));
    }

    #[test]
    fn nothing_is_no_rate() {
        assert_eq!(rate(&connecting(&[0, 0, 0])), None);
        assert_eq!(rate(&[]), None);
    }
}
