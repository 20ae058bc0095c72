//! The stretch of a run in which its load did not change.

use throng_measure::Operation;

use crate::history::{Quantiles, Sample};
use crate::run_view::{LoadLevel, RunView};

/// The last intervals of a run, with the same number of connections and no more messages.
#[derive(Clone, Debug)]
pub(crate) struct SteadyLoad<'a> {
    pub(crate) samples: &'a [Sample],
    /// Its load.
    pub(crate) level: LoadLevel,
}

impl<'a> SteadyLoad<'a> {
    /// Returns the longest stretch at the end of the load, or `None` if it is too short to show a
    /// trend, or if the users send more and more in it.
    pub(crate) fn of(run: &RunView<'a>) -> Option<Self> {
        Self::of_samples(run.samples())
    }

    /// Returns the longest such stretch at the end of these samples.
    pub(crate) fn of_samples(all: &'a [Sample]) -> Option<Self> {
        let held = connected(all.last()?);
        let is_held = |sample: &Sample| {
            connected(sample).abs_diff(held).saturating_mul(CHANGE_ONE_IN) <= held
        };
        let from = all.iter().rposition(|sample| !is_held(sample)).map_or(0, |at| at + 1);
        let samples = all.get(from..)?;
        let (first, last) = (samples.first()?, samples.last()?);
        let is_long = samples.len() > INTERVALS_MIN
            && last.interval.at_ms >= first.interval.at_ms + STEADY_MIN_MS;
        if held == 0 || !is_long {
            return None;
        }
        let half = samples.len() / 2;
        let [before, after] = [&samples[..=half], &samples[half..]].map(sent_per_s);
        let sends_more = after > before * RATE_TIMES_MOST;
        let level = LoadLevel { connections: held, connects_per_s: 0.0, messages_per_s: before };
        (!sends_more).then_some(Self { samples, level })
    }

    /// Returns the longest stretch at the end of these samples in which users arrive and leave, and
    /// send as much in each interval.
    pub(crate) fn of_arrivals(all: &'a [Sample]) -> Option<Self> {
        let per_s: Vec<f64> = all.windows(2).map(sent_per_s).collect();
        // The load may end within an interval, and before the last ones.
        let most = per_s.iter().copied().fold(0.0, f64::max);
        let end = per_s.iter().rposition(|rate| rate * 2.0 >= most)?;
        let usual = *per_s.get(end.checked_sub(1)?)?;
        let is_usual = |rate: &f64| (rate - usual).abs() <= usual * ARRIVALS_SHARE;
        let end = per_s.iter().rposition(is_usual)? + 1;
        let from = per_s[..end].iter().rposition(|rate| !is_usual(rate)).map_or(0, |at| at + 1);
        let samples = &all[from..=end];
        let (first, last) = (samples.first()?, samples.last()?);
        let is_long = samples.len() > INTERVALS_MIN
            && last.interval.at_ms >= first.interval.at_ms + STEADY_MIN_MS;
        let connections = connected(last);
        let level = LoadLevel { connections, connects_per_s: 0.0, messages_per_s: usual };
        (usual > 0.0 && is_long).then_some(Self { samples, level })
    }

    /// Returns the intervals of it in which the users got on with their turns: a turn that is late
    /// counts from when it was due, so its time grows though the server's does not. After a stall
    /// users catch up.
    pub(crate) fn in_time(&self) -> Vec<&'a Sample> {
        let behind = |sample: &Sample| {
            let counters = sample.load().map(|load| load.counters.clone()).unwrap_or_default();
            counters.turns_intended.saturating_sub(counters.turns_started)
        };
        let most = (self.level.messages_per_s * BEHIND_MOST_S) as u64;
        let most = self.samples.first().map_or(0, behind) + most;
        self.samples.iter().filter(|now| behind(now) <= most).collect()
    }
}

/// Returns the answers of the most frequent kind, with its name.
pub(crate) fn answers(sample: &Sample) -> (&'static str, Quantiles) {
    let kinds = Operation::requests();
    let kinds = kinds.map(|operation| (operation.name(), sample.latency(operation)));
    kinds.max_by_key(|(_, quantiles)| quantiles.count).unwrap_or_default()
}

fn connected(sample: &Sample) -> u64 {
    sample.load().map_or(0, |load| load.counters.connected)
}

/// Returns the messages, pushes and HTTP requests that users sent a second.
fn sent_per_s(samples: &[Sample]) -> f64 {
    let sent = |sample: &Sample| sample.load().map_or(0, |load| load.counters.requests_begun());
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return 0.0 };
    let ms = last.interval.at_ms.saturating_sub(first.interval.at_ms).max(1);
    sent(last).saturating_sub(sent(first)) as f64 * 1000.0 / ms as f64
}

/// The part of the connections, one in so many, that may come or go.
const CHANGE_ONE_IN: u64 = 20;

/// How many times as many messages a second the second half may have.
const RATE_TIMES_MOST: f64 = 1.15;

/// The largest distance of an interval's messages a second from the usual, as a share of it.
const ARRIVALS_SHARE: f64 = 0.2;

/// The fewest intervals of a steady load.
const INTERVALS_MIN: usize = 4;

/// The shortest steady load.
const STEADY_MIN_MS: u64 = 4_000;

/// The turns that may be late, in seconds of the usual rate.
const BEHIND_MOST_S: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    /// Returns the beginning of the steady load in seconds, if there is one.
    fn begins(run: &Run) -> Option<u64> {
        let (history, summary) = run.whole();
        let steady = SteadyLoad::of(&RunView::new(&history, &summary))?;
        Some(steady.samples.first()?.interval.at_ms / 1_000)
    }

    #[test]
    fn the_ramp_is_no_part_of_it() {
        assert_eq!(begins(&Run::quiet()), Some(5));
        let grows = Run::quiet().loaded(|load, second| load.counters.connected = 100 * second);
        assert_eq!(begins(&grows), None);
        let busier = Run::quiet().loaded(|load, second| {
            load.counters.messages_sent = 100 * second * second;
        });
        assert_eq!(begins(&busier), None);
    }

    #[test]
    fn users_that_arrive_and_leave_send_steadily() {
        let arriving = |per_s: fn(u64) -> u64| {
            Run::quiet().loaded(move |load, second| {
                load.counters.connected = 3 + second * 7 % 5;
                load.counters.messages_sent = (1..=second).map(per_s).sum();
            })
        };
        let spans = |per_s: fn(u64) -> u64| {
            let (history, _) = arriving(per_s).whole();
            let steady = SteadyLoad::of_arrivals(history.samples())?;
            let at = |sample: &Sample| sample.interval.at_ms / 1_000;
            Some((at(&steady.samples[0]), at(steady.samples.last().unwrap())))
        };
        assert_eq!(spans(|second| if second < 3 { 200 } else { 400 }), Some((2, 10)));
        assert_eq!(spans(|second| if second < 10 { 400 } else { 0 }), Some((0, 9)));
        // The load ended at the beginning of the interval before the last.
        let ends_early = |second: u64| [400, 20, 0][usize::try_from(second.max(8) - 8).unwrap()];
        assert_eq!(spans(ends_early), Some((0, 8)));
        assert_eq!(spans(|second| 40 * second * second), None);
    }

    #[test]
    fn intervals_with_late_turns_are_no_time_in_which_users_get_on() {
        let in_time = |late: fn(u64) -> bool| {
            let late = Run::quiet().loaded(move |load, second| {
                load.counters.turns_intended = 1_000 * second;
                load.counters.turns_started = 1_000 * second - 500 * u64::from(late(second));
            });
            let (history, summary) = late.whole();
            let steady = SteadyLoad::of(&RunView::new(&history, &summary)).unwrap();
            assert_eq!(steady.samples.len(), 6);
            let in_time = steady.in_time();
            in_time.iter().map(|sample| sample.interval.at_ms / 1_000).collect::<Vec<_>>()
        };
        assert_eq!(in_time(|second| second > 8), [5, 6, 7, 8]);
        assert_eq!(in_time(|second| second == 8), [5, 6, 7, 9, 10], "they catch up");
    }
}
