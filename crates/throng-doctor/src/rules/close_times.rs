//! When the server closes connections: always after the same idle time, always at the same age, or
//! at any time.

use throng_report::render::micros;

use crate::run_view::RunView;

/// What the times of closes have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseTimes {
    /// All had been idle for this long, in milliseconds: a time-out.
    Idle(u64),
    /// All were this old, in milliseconds, idle or not: a largest age.
    Age(u64),
}

impl CloseTimes {
    /// Returns what the sampled closes of these kinds have in common.
    pub(super) fn of(run: &RunView<'_>, kinds: &[&str]) -> Option<Self> {
        let closes = run.samples().iter().filter_map(|sample| sample.load());
        let closes = closes.flat_map(|load| &load.early_closes);
        let closes = closes.filter(|close| kinds.contains(&close.error.as_str()));
        let (mut ages, mut idles): (Vec<u64>, Vec<u64>) =
            closes.map(|close| (close.open_ms, close.idle_ms)).unzip();
        let (age, idle) = (alike(&mut ages), alike(&mut idles));
        match (idle, age) {
            // Where users do nothing after they connect, both are true; time-outs are more common.
            (Some(idle), _) => Some(Self::Idle(idle)),
            (None, Some(age)) => Some(Self::Age(age)),
            (None, None) => None,
        }
    }

    /// Describes it as a part of a sentence.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Idle(ms) => format!("each after {} without a message", micros(ms * 1000)),
            Self::Age(ms) => format!("each {} after it was opened", micros(ms * 1000)),
        }
    }

    /// Returns what to do.
    pub(super) fn remedy(self) -> String {
        match self {
            Self::Idle(ms) => format!(
                "send something more often than each {} (a heartbeat, a ping), or raise the idle \
                 time-out of the server and of each proxy before it (nginx: proxy_read_timeout)",
                micros(ms * 1000)
            ),
            Self::Age(ms) => format!(
                "find the limit of {} on a connection's age, in the server or in a proxy before \
                 it; if it is wanted, let users connect again",
                micros(ms * 1000)
            ),
        }
    }
}

/// Returns the median, if four of five times are near it and it is long enough to be a time-out.
fn alike(times_ms: &mut [u64]) -> Option<u64> {
    times_ms.sort_unstable();
    let median = *times_ms.get(times_ms.len() / 2)?;
    let room = (median / NEAR_ONE_IN).max(NEAR_MS);
    let near = times_ms.iter().filter(|ms| ms.abs_diff(median) <= room).count();
    let is_alike = times_ms.len() >= CLOSES_MIN && near * 5 >= times_ms.len() * 4;
    (is_alike && median >= TIME_OUT_MS_MIN).then_some(median)
}

/// The fewest closes that show a pattern.
const CLOSES_MIN: usize = 5;

/// How far from their median times may be and count as alike.
const NEAR_ONE_IN: u64 = 10;
const NEAR_MS: u64 = 100;

/// The shortest time that may be a time-out. A server that closes at once has other reasons.
const TIME_OUT_MS_MIN: u64 = 500;

#[cfg(test)]
mod tests {
    use throng_report::EarlyClose;

    use super::super::fixture::Run;
    use super::*;

    fn of(closes: &[(u64, u64)]) -> Option<CloseTimes> {
        let closes = closes.to_vec();
        let run = Run::quiet().loaded(move |load, second| {
            let close = |(open_ms, idle_ms): &(u64, u64)| EarlyClose {
                error: "closed_by_peer".to_owned(),
                open_ms: *open_ms,
                idle_ms: *idle_ms,
            };
            if second == 5 {
                load.early_closes = closes.iter().map(close).collect();
            }
        });
        let (history, summary) = run.whole();
        CloseTimes::of(&RunView::new(&history, &summary), &["closed_by_peer"])
    }

    #[test]
    fn a_time_out_makes_all_idle_times_alike() {
        let idle = [(7_000, 2_010), (3_100, 2_000), (2_400, 2_004), (9_000, 1_990), (4_000, 2_100)];
        assert_eq!(of(&idle), Some(CloseTimes::Idle(2_004)));
        assert_eq!(of(&idle[..4]), None, "too few");
        let aged = idle.map(|(open, idle)| (idle, open));
        assert_eq!(of(&aged), Some(CloseTimes::Age(2_004)));
        assert_eq!(of(&idle.map(|(open, _)| (open, open / 7))), None);
        assert_eq!(of(&[(3, 2); 9]), None, "it closes at once");
    }
}
