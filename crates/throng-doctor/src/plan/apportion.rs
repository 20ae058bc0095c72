//! CPU time of intervals in which several kinds of work were done, divided among the kinds.

/// What was done in an interval, how often each kind of it, and the CPU time that all of it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work<const KINDS: usize> {
    pub(super) done: [u64; KINDS],
    pub(super) cpu_us: u64,
}

/// CPU time of one of each kind; none for a kind that was never done.
///
/// Each interval is first divided as the costs in `prior` would have it, the shares of a kind from all intervals give its cost anew, and so on:
/// each round fits the intervals better than the one before. An interval with one kind alone is exact from the first round on. Kinds that always came
/// together in the same proportion cannot be told apart, and keep the proportion of `prior`.
pub(super) fn apportion<const KINDS: usize>(
    intervals: &[Work<KINDS>],
    prior: [f64; KINDS],
) -> [Option<f64>; KINDS] {
    let mut costs = prior;
    for _ in 0..ROUNDS {
        let (mut shares, mut done) = ([0.0; KINDS], [0; KINDS]);
        for interval in intervals {
            let expected = |kind: usize| interval.done[kind] as f64 * costs[kind];
            let all: f64 = (0..KINDS).map(expected).sum();
            for kind in (0..KINDS).filter(|_| all > 0.0) {
                shares[kind] += interval.cpu_us as f64 * expected(kind) / all;
                done[kind] += interval.done[kind];
            }
        }
        for kind in (0..KINDS).filter(|kind| done[*kind] > 0) {
            costs[kind] = shares[kind] / done[kind] as f64;
        }
    }
    std::array::from_fn(|kind| {
        intervals.iter().any(|interval| interval.done[kind] > 0).then_some(costs[kind])
    })
}

/// More change nothing that a plan shows.
const ROUNDS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn work(connects: u64, messages: u64, cpu_us: u64) -> Work<2> {
        Work { done: [connects, messages], cpu_us }
    }

    #[track_caller]
    fn check(intervals: &[Work<2>], expected: [Option<f64>; 2]) {
        let found = apportion(intervals, [60.0, 10.0]);
        for (found, expected) in found.into_iter().zip(expected) {
            let is_near = |(a, b): (f64, f64)| (a - b).abs() < 0.01 * b;
            assert!(
                found.zip(expected).map_or(found == expected, is_near),
                "{found:?}, not {expected:?}"
            );
        }
    }

    #[test]
    fn what_was_done_alone_is_exact() {
        check(&[work(100, 0, 2_000)], [Some(20.0), None]);
        check(&[work(100, 0, 2_000), work(0, 1_000, 5_000)], [Some(20.0), Some(5.0)]);
        check(&[], [None, None]);
        check(&[work(0, 0, 9_000)], [None, None]);
    }

    #[test]
    fn seconds_with_both_are_told_apart_by_how_much_of_each_they_had() {
        // 20 µs a connect and 5 µs a message.
        let ramp = [work(100, 100, 2_500), work(100, 900, 6_500), work(10, 2_000, 10_200)];
        check(&ramp, [Some(20.0), Some(5.0)]);
    }

    #[test]
    fn what_always_came_together_is_divided_as_it_was_known_before() {
        // 60 : 10, of what a pair took.
        check(&[work(100, 100, 14_000), work(50, 50, 7_000)], [Some(120.0), Some(20.0)]);
    }
}
