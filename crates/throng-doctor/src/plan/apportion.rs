//! Division of the CPU time of intervals among several kinds of work.

/// The work in an interval: how often each kind was done, and the CPU time of all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work<const KINDS: usize> {
    pub(super) done: [u64; KINDS],
    pub(super) cpu_us: u64,
}

/// Returns the CPU time of one unit of each kind of work, or `None` for a kind that was never done.
///
/// The first round divides each interval by the costs in `prior`. The shares of a kind in all
/// intervals then give its new cost, and so on: each round fits the intervals better. An interval
/// with a single kind is exact from the first round on. Kinds that always occur in the same
/// proportion cannot be distinguished, and keep the proportion of `prior`.
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

/// The number of rounds: more change nothing that a plan shows.
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
    fn a_kind_that_was_done_alone_is_exact() {
        check(&[work(100, 0, 2_000)], [Some(20.0), None]);
        check(&[work(100, 0, 2_000), work(0, 1_000, 5_000)], [Some(20.0), Some(5.0)]);
        check(&[], [None, None]);
        check(&[work(0, 0, 9_000)], [None, None]);
    }

    #[test]
    fn kinds_are_distinguished_by_their_varying_proportions() {
        // 20 µs a connect and 5 µs a message.
        let ramp = [work(100, 100, 2_500), work(100, 900, 6_500), work(10, 2_000, 10_200)];
        check(&ramp, [Some(20.0), Some(5.0)]);
    }

    #[test]
    fn kinds_in_a_fixed_proportion_are_divided_as_by_the_prior() {
        // A pair takes 140 µs, which is divided 60 : 10.
        check(&[work(100, 100, 14_000), work(50, 50, 7_000)], [Some(120.0), Some(20.0)]);
    }
}
