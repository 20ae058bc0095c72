//! Waits of users that no answer ended.

use crate::{Histogram, LatencySummary};

/// Returns the latency that thresholds judge: that of the `answered` requests and of the
/// `unanswered` waits together.
///
/// The two are merged: a wait counts with its duration so far, which is the least that its answer
/// would have taken. Many waits are short only because the run ended, so they never make a number
/// smaller than it is for the answered requests alone.
pub fn judged(answered: &Histogram, unanswered: &Histogram) -> LatencySummary {
    let alone = LatencySummary::from(answered);
    if unanswered.is_empty() {
        return alone;
    }
    let mut all = answered.clone();
    all.merge(unanswered);
    let all = LatencySummary::from(&all);
    LatencySummary {
        p50: all.p50.max(alone.p50),
        p90: all.p90.max(alone.p90),
        p95: all.p95.max(alone.p95),
        p99: all.p99.max(alone.p99),
        p999: all.p999.max(alone.p999),
        max: all.max.max(alone.max),
        mean: all.mean.max(alone.mean),
        count: all.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = (u64, u32)>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|(us, n)| histogram.record_n(us, n));
        histogram
    }

    #[test]
    fn a_stall_at_the_end_of_an_hour_owns_the_percentiles_that_it_would_have_owned() {
        // A thousand users send one message a second each for an hour; none is answered in the last
        // 30 s.
        let answered = of([(1_000, 3_570_000)]);
        let unanswered = of((0..30).map(|second| (second * 1_000_000 + 1, 1_000)));
        let judged = judged(&answered, &unanswered);
        assert_eq!((judged.p50, judged.p99, judged.count), (1_000, 1_000, 3_600_000));
        assert!((26_000_000..26_100_000).contains(&judged.p999), "{judged:?}");
        assert_eq!(LatencySummary::from(&answered).p999, 1_000);
    }

    #[test]
    fn waits_that_the_end_cut_short_make_no_number_smaller() {
        let answered = of([(5_000_000, 100)]);
        let judged = judged(&answered, &of([(2_000_000, 100)]));
        assert!(judged.p50 >= 5_000_000 && judged.mean >= 4_995_000, "{judged:?}");
        assert_eq!(judged.count, 200);
    }

    #[test]
    fn what_was_never_answered_is_known_by_its_waits() {
        let judged = judged(&Histogram::new(), &of([(4_000, 10)]));
        assert_eq!((judged.p50 / 10, judged.count), (400, 10));
    }
}
