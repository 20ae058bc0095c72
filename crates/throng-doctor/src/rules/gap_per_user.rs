//! Each user gets one answer in a fixed time, however many users ask.

use throng_measure::Finding;
use throng_report::render::micros;

use crate::history::{Quantiles, Sample};
use crate::median::median;
use crate::run_view::RunView;
use crate::steady_load::answers;

/// The time between two answers to one user.
struct GapPerUser {
    gap_us: u64,
    users: u64,
}

/// Returns the finding of a slow server with the limit that makes it slow, if there is one.
pub(super) fn explain(run: &RunView<'_>, finding: Finding) -> Finding {
    let Some(GapPerUser { gap_us, users }) = GapPerUser::of(run) else { return finding };
    let gap = micros(gap_us);
    let text = format!(
        "The server gives each user one answer in {gap}, however many ask: {users} users wait at \
         the same time, each for itself, and the first answer of a connection comes at once. It \
         is a limit for each connection or user, not the capacity of the server."
    );
    let remedy = format!(
        "raise or remove the limit for each user (a throttle, a token bucket, a delay between \
         messages), or let each user send at most once in {gap}"
    );
    Finding { text, remedy, ..finding }
}

impl GapPerUser {
    /// Looks for answers that all take the same time, in all intervals alike, though the first one
    /// of each connection is fast. A server that is slow for every question is slow for the first,
    /// and one that serves a few at a time is slower the more users there are. Each user has an
    /// answer in each gap: one that asks less often meets no such limit.
    fn of(run: &RunView<'_>) -> Option<Self> {
        let steps = || run.steps().filter(|(_, now)| times(now).count > 0);
        let connects = |sample: &Sample| sample.load().map_or(0, |load| load.counters.connects_ok);
        let held: Vec<&Sample> = steps()
            .filter(|(before, now)| connects(before) == connects(now))
            .map(|(_, now)| now)
            .skip(1)
            .collect();
        let gap_us = median(held.iter().map(|now| times(now).p50_us))?;
        let is_near = |us: u64| us.abs_diff(gap_us) <= gap_us / NEAR_ONE_IN;
        let is_fixed = |now: &&Sample| is_near(times(now).p50_us) && is_near(times(now).p99_us);
        let fixed = held.iter().filter(|now| is_fixed(now)).count();
        // The first interval with answers has the first answer of each connection.
        let (_, first) = steps().next()?;
        let first_us = times(first).min_us;
        // The second answers have come after a gap: a server that becomes slow later has no limit.
        let gap_end_ms = first.interval.at_ms + gap_us / 1000;
        let (_, second) = steps().find(|(_, now)| now.interval.at_ms >= gap_end_ms)?;
        let users = held.last()?.load()?.counters.connected;
        let answered: u64 = held.iter().map(|now| times(now).count).sum();
        let held_ms: u64 = held.iter().map(|now| now.interval.span_ms).sum();
        let due = (users * held_ms * 1000).checked_div(gap_us)?;
        // Intervals without an answer are left out: users that ask seldom have some between.
        let (from, to) = (&held.first()?.interval, &held.last()?.interval);
        let whole_ms = to.at_ms.saturating_sub(from.at_ms) + from.span_ms;
        let is_one_each = answered.abs_diff(due) <= due / NEAR_ONE_IN
            && whole_ms <= held_ms + held_ms / NEAR_ONE_IN;
        let is_gap = gap_us >= GAP_MIN_US
            && held.len() >= INTERVALS_MIN
            && fixed * 5 >= held.len() * 4
            && first_us.saturating_mul(FIRST_TIMES) <= gap_us
            && is_near(times(second).p99_us)
            && is_one_each
            && users >= USERS_MIN;
        is_gap.then_some(Self { gap_us, users })
    }
}

/// Returns how long answers took from when their question was sent.
fn times(sample: &Sample) -> Quantiles {
    match answers(sample) {
        ("message", _) if sample.from_send.count > 0 => sample.from_send,
        (_, quantiles) => quantiles,
    }
}

/// The shortest gap: people do not notice less.
const GAP_MIN_US: u64 = 50_000;

/// The part of the gap, one in so many, by which answers may differ from it.
const NEAR_ONE_IN: u64 = 10;

/// How many times as long as the first answer of a connection the gap is.
const FIRST_TIMES: u64 = 5;

/// The fewest intervals, and the fewest users, that show that they do not wait for each other.
const INTERVALS_MIN: usize = 3;
const USERS_MIN: u64 = 5;

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::super::server_slow;
    use throng_measure::Operation;

    /// Users whose first answer takes so long, and the others by second.
    fn throttled(first_us: u64, us: impl Fn(u64) -> u64) -> Run {
        Run::quiet().growing(throng_measure::ProcessMetric::CPU_US.server, 0, 20_000, 0).loaded(
            move |load, second| {
                load.counters.connects_ok = 1_000 * second.min(1);
                load.counters.connected = 1_000 * second.min(1);
                load.times[Operation::Message].clear();
                load.times.from_send.clear();
                if second == 1 {
                    load.times.from_send.record_n(first_us, 1_000);
                    load.times[Operation::Message].record_n(first_us, 1_000);
                } else if second > 1 {
                    load.times.from_send.record_n(us(second), 2_000);
                    load.times[Operation::Message].record_n(us(second), 2_000);
                }
            },
        )
    }

    #[test]
    fn a_limit_for_each_user_is_told_from_a_slow_server() {
        let found = throttled(2_000, |_| 500_000).speaks(&server_slow::RULE);
        assert!(
            found.text.starts_with("The server gives each user one answer in 500 ms, however many"),
            "{found}"
        );
        assert!(found.remedy.starts_with("raise or remove the limit for each user"), "{found}");
    }

    #[test]
    fn a_server_that_is_slow_for_the_first_too_or_more_and_more_has_no_such_limit() {
        let is_slow = |run: Run| {
            let found = run.speaks(&server_slow::RULE);
            assert!(found.text.starts_with("The server was slow"), "{found}");
        };
        is_slow(throttled(500_000, |_| 500_000));
        // These users ask twice in a second, and would find no limit of one answer in 200 ms.
        is_slow(throttled(2_000, |_| 200_000));
        is_slow(throttled(2_000, |second| if second > 3 { 500_000 } else { 2_000 }));
        is_slow(throttled(2_000, |second| if second % 2 == 0 { 500_000 } else { 150_000 }));
    }
}
