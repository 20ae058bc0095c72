//! When the server closes connections: always after the same idle time, always at the same age, or
//! at any time.

use throng_measure::EarlyClose;
use throng_report::render::micros;

use crate::run_view::RunView;

/// What the times of closes have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseTimes {
    /// All had been idle for this long, in milliseconds: a time-out.
    Idle(u64),
    /// All were this old, in milliseconds, idle or not: a largest age.
    Age(u64),
    /// All were this old, in milliseconds, and idle for nearly all of that: either of the two.
    IdleOrAge(u64),
}

impl CloseTimes {
    /// Returns what the sampled closes of these kinds have in common.
    pub(super) fn of(run: &RunView<'_>, kinds: &[&str]) -> Option<Self> {
        let closes = run.samples().iter().filter_map(|sample| sample.load());
        let closes = closes.flat_map(|load| &load.early_closes);
        let closes = closes.filter(|close| kinds.contains(&close.error.as_str()));
        let closes: Vec<_> = closes.collect();
        let of = |time: fn(&EarlyClose) -> u64| {
            alike(&mut closes.iter().map(|close| time(close)).collect::<Vec<_>>())
        };
        let (age, idle) = (of(|close| close.open_ms), of(|close| close.idle_ms));
        // A connection that was idle for longer before, and stayed open, has no such time-out.
        let outlived = closes.iter().filter(|close| {
            close.idle_ms_before > close.idle_ms + close.idle_ms / OUTLIVED_ONE_IN + OUTLIVED_MS
        });
        let idle = idle.filter(|_| outlived.count() * 2 < closes.len());
        match (idle, age) {
            // Where users do nothing after their first message, both are true.
            (Some(idle), Some(age)) if idle + room(age) >= age => Some(Self::IdleOrAge(age)),
            (Some(idle), _) => Some(Self::Idle(idle)),
            (None, Some(age)) => Some(Self::Age(age)),
            (None, None) => None,
        }
    }

    /// Returns the time, in milliseconds.
    pub(super) const fn millis(self) -> u64 {
        match self {
            Self::Idle(ms) | Self::Age(ms) | Self::IdleOrAge(ms) => ms,
        }
    }

    /// Describes it as a part of a sentence.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Idle(ms) => format!("each after {} without a message", micros(ms * 1000)),
            Self::Age(ms) => format!("each {} after it was opened", micros(ms * 1000)),
            Self::IdleOrAge(ms) => format!(
                "each {} after it was opened, without a message for as long",
                micros(ms * 1000)
            ),
        }
    }

    /// Returns what to do, if users receive messages that answer nothing or if they do not.
    pub(super) fn remedy(self, gets_others: bool) -> String {
        match self {
            Self::Idle(ms) => format!(
                "send something more often than each {} (a heartbeat, a ping), answer the server's \
                 own pings (`on_message`), or raise the idle time-out of the server and of each \
                 proxy before it (nginx: proxy_read_timeout)",
                micros(ms * 1000)
            ),
            Self::Age(ms) if gets_others => format!(
                "if some of the messages that no step asks for are pings, answer them \
                 (`on_message`); if none is, find the limit of {} on a connection's age, in the \
                 server or in a proxy before it",
                micros(ms * 1000)
            ),
            Self::Age(ms) => format!(
                "find the limit of {} on a connection's age, in the server or in a proxy before \
                 it; if it is wanted, let users connect again",
                micros(ms * 1000)
            ),
            Self::IdleOrAge(ms) => format!(
                "send something each {} (a heartbeat, a ping), or answer the server's own pings \
                 (`on_message`): if connections then live longer, raise the idle time-out of the \
                 server or of a proxy before it; if not, find the limit on their age",
                micros(ms * 500)
            ),
        }
    }
}

/// Returns the median, if four of five times are near it and it is long enough to be a time-out.
fn alike(times_ms: &mut [u64]) -> Option<u64> {
    times_ms.sort_unstable();
    let median = *times_ms.get(times_ms.len() / 2)?;
    let near = times_ms.iter().filter(|ms| ms.abs_diff(median) <= room(median)).count();
    let is_alike = times_ms.len() >= CLOSES_MIN && near * 5 >= times_ms.len() * 4;
    (is_alike && median >= TIME_OUT_MS_MIN).then_some(median)
}

/// Returns how far from a time others may be and count as alike.
fn room(ms: u64) -> u64 {
    (ms / NEAR_ONE_IN).max(NEAR_MS)
}

/// The fewest closes that show a pattern.
const CLOSES_MIN: usize = 5;

/// How far from a time others may be and count as alike: a part of it, and at least this.
const NEAR_ONE_IN: u64 = 10;
const NEAR_MS: u64 = 100;

/// How much longer than at the end a connection was idle before if it had no idle time-out: a part
/// of that time, and this.
const OUTLIVED_ONE_IN: u64 = 5;
const OUTLIVED_MS: u64 = 50;

/// The shortest time that may be a time-out. A server that closes at once has other reasons.
const TIME_OUT_MS_MIN: u64 = 500;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;
    use throng_measure::ErrorKind;

    /// Returns what closes with these ages and idle times have in common, whose connections were
    /// idle for this long before.
    fn of_outliving(closes: &[(u64, u64)], idle_ms_before: u64) -> Option<CloseTimes> {
        let closes = closes.to_vec();
        let run = Run::quiet().loaded(move |load, second| {
            let close = |(open_ms, idle_ms): &(u64, u64)| EarlyClose {
                error: ErrorKind::ClosedByPeer.into(),
                open_ms: *open_ms,
                idle_ms: *idle_ms,
                idle_ms_before,
            };
            if second == 5 {
                load.early_closes = closes.iter().map(close).collect();
            }
        });
        let (history, summary) = run.whole();
        CloseTimes::of(&RunView::new(&history, &summary), &[ErrorKind::ClosedByPeer.name()])
    }

    fn of(closes: &[(u64, u64)]) -> Option<CloseTimes> {
        of_outliving(closes, 0)
    }

    #[test]
    fn a_time_out_makes_all_idle_times_alike() {
        let idle = [(7_000, 2_010), (3_100, 2_000), (2_400, 2_004), (9_000, 1_990), (4_000, 2_100)];
        assert_eq!(of(&idle), Some(CloseTimes::Idle(2_004)));
        assert_eq!(of_outliving(&idle, 2_200), Some(CloseTimes::Idle(2_004)));
        assert_eq!(of(&idle[..4]), None, "too few");
        let aged = idle.map(|(open, idle)| (idle, open));
        assert_eq!(of(&aged), Some(CloseTimes::Age(2_004)));
        assert_eq!(of(&idle.map(|(open, _)| (open, open / 7))), None);
        assert_eq!(of(&[(3, 2); 9]), None, "it closes at once");
    }

    #[test]
    fn a_connection_that_was_idle_for_longer_before_reached_an_age() {
        // Users that send something each second, from the moment at which they connect.
        let closes = [(1_501, 501), (1_500, 498), (1_502, 500), (1_500, 500), (1_504, 503)];
        assert_eq!(of_outliving(&closes, 1_000), Some(CloseTimes::Age(1_501)));
        // Their only message was half a second before.
        assert_eq!(of_outliving(&closes, 0), Some(CloseTimes::Idle(500)));
        let silent = closes.map(|(open, _)| (open, open - 2));
        assert_eq!(of(&silent), Some(CloseTimes::IdleOrAge(1_501)));
        let any_age = [(2_500, 501), (1_500, 498), (3_502, 500), (7_500, 500), (1_504, 503)];
        assert_eq!(of_outliving(&any_age, 1_000), None);
    }
}
