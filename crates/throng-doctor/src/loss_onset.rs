//! The moment from which a share of what was asked is lost.

/// What users asked for in an interval, and how much of it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedInInterval {
    /// End of the interval, in milliseconds since the run began.
    pub(crate) at_ms: u64,
    pub(crate) span_ms: u64,
    pub(crate) asked: u64,
    pub(crate) arrived: u64,
}

/// The moment from which losses are steady, where there were hardly any before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossOnset {
    at_ms: u64,
}

impl LossOnset {
    /// Returns the moment, if so much was asked before it that chance alone does not explain the
    /// missing losses, and both halves of the rest lost about the same share.
    pub(crate) fn of(intervals: &[AskedInInterval]) -> Option<Self> {
        let asked: Vec<_> = intervals.iter().copied().filter(|each| each.asked > 0).collect();
        let end_share = share(&asked[asked.len() / 2..]);
        let begins = |each: &AskedInInterval| share(&[*each]) >= end_share * BEGIN_SHARE;
        let first = asked.iter().position(|each| each.arrived < each.asked && begins(each))?;
        let (before, rest) = asked.split_at(first);
        let (begin, after) = rest.split_first()?;
        let (early, late) = after.split_at(after.len() / 2);
        let after_share = share(after);
        let expected = total(before, |each| each.asked) as f64 * after_share;
        let is_near_zero = lost(before) as f64 <= expected * NEAR_ZERO;
        let is_steady = [early, late].iter().all(|half| {
            let share = share(half);
            share * STEADY_TIMES >= after_share && share <= after_share * STEADY_TIMES
        });
        let is_long = before.len() >= INTERVALS_MIN && after.len() >= INTERVALS_MIN;
        let is_sure = expected >= LOST_MIN && lost(after) as f64 >= LOST_MIN;
        if !(is_long && is_sure && is_near_zero && is_steady) {
            return None;
        }
        // The part of the first interval with losses in which they had begun.
        let part = (share(&[*begin]) / after_share).min(1.0);
        let at_ms = begin.at_ms.saturating_sub((begin.span_ms as f64 * part) as u64);
        Some(Self { at_ms })
    }

    /// Formats the moment, as a part of a sentence.
    pub(crate) fn words(self) -> String {
        format!("from {} on and hardly any before", self.seconds())
    }

    /// Formats what to look for at that moment: the begin of a remedy.
    pub(crate) fn look(self) -> String {
        format!(
            "look for what began at {} (a log, a deploy, a queue that filled); ",
            self.seconds()
        )
    }

    fn seconds(self) -> String {
        format!("{:.1} s", self.at_ms as f64 / 1000.0)
    }
}

fn total(intervals: &[AskedInInterval], of: impl Fn(&AskedInInterval) -> u64) -> u64 {
    intervals.iter().map(of).sum()
}

/// Returns the losses of some intervals together. What is on its way when one ends arrives in the
/// next.
fn lost(intervals: &[AskedInInterval]) -> u64 {
    total(intervals, |each| each.asked).saturating_sub(total(intervals, |each| each.arrived))
}

fn share(intervals: &[AskedInInterval]) -> f64 {
    let asked = total(intervals, |each| each.asked).max(1);
    lost(intervals) as f64 / asked as f64
}

/// The fewest intervals before the moment, and after it.
const INTERVALS_MIN: usize = 2;

/// The fewest losses after the moment, and the fewest that the time before it would have had at
/// the same share: fewer may be absent by chance.
const LOST_MIN: f64 = 8.0;

/// The largest part of these losses that hardly any are.
const NEAR_ZERO: f64 = 0.1;

/// The part of the share at the end with which losses begin: what is on its way when an interval
/// ends is no loss.
const BEGIN_SHARE: f64 = 0.3;

/// How many times as large as the share of the whole rest that of each half is at most.
const STEADY_TIMES: f64 = 2.2;

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred questions a second, so many of which are lost.
    fn of(lost: &[u64]) -> Option<LossOnset> {
        let interval = |(second, lost): (usize, &u64)| AskedInInterval {
            at_ms: 1_000 * (second as u64 + 1),
            span_ms: 1_000,
            asked: 100,
            arrived: 100 - lost,
        };
        LossOnset::of(&lost.iter().enumerate().map(interval).collect::<Vec<_>>())
    }

    #[test]
    fn the_moment_is_found_within_its_interval() {
        let at = |lost: &[u64]| of(lost).map(|onset| onset.at_ms);
        assert_eq!(at(&[0, 0, 0, 0, 20, 20, 20, 20]), Some(4_000));
        assert_eq!(at(&[0, 0, 0, 0, 10, 20, 20, 20, 20]), Some(4_500));
        assert_eq!(at(&[0, 4, 0, 0, 20, 22, 18, 20]), Some(4_000));
        let words = of(&[0, 0, 0, 0, 10, 20, 20, 20, 20]).unwrap().words();
        assert_eq!(words, "from 4.5 s on and hardly any before");
    }

    #[test]
    fn losses_from_the_beginning_few_that_end_and_that_grow_have_no_moment() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[20, 20, 20, 20, 20, 20, 20]), None);
        assert_eq!(of(&[0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(of(&[0, 0, 0, 1, 0, 1, 1, 1]), None);
        assert_eq!(of(&[0, 0, 0, 20, 20, 20, 0, 0, 0, 0]), None);
        assert_eq!(of(&[0, 0, 0, 0, 2, 5, 10, 20, 40, 80]), None);
    }
}
