//! The growth of the counters in all intervals, in bounded memory.

use std::ops::Deref;

use super::rates::IntervalGrowth;

/// The growth in each interval. Of a run of days, two intervals become one: sums stay exact, and
/// the best second becomes the best two.
#[derive(Debug, Default)]
pub(super) struct IntervalGrowths {
    all: Vec<IntervalGrowth>,
    /// How often two growths became one.
    halvings: u32,
    /// Intervals in the last one.
    in_last: u64,
}

impl IntervalGrowths {
    /// Adds the next interval.
    pub(super) fn add(&mut self, growth: IntervalGrowth) {
        let is_whole = self.in_last >= 1 << self.halvings;
        if is_whole && self.all.len() >= GROWTHS_MAX {
            self.halve();
        }
        match self.all.last_mut() {
            Some(last) if self.in_last < 1 << self.halvings => {
                last.merge(&growth);
                self.in_last += 1;
            }
            _ => {
                self.all.push(growth);
                self.in_last = 1;
            }
        }
    }

    fn halve(&mut self) {
        self.halvings += 1;
        let pairs = self.all.chunks(2).filter_map(|pair| {
            let mut sum = *pair.first()?;
            pair[1..].iter().for_each(|next| sum.merge(next));
            Some(sum)
        });
        self.all = pairs.collect();
        // The last pair is whole: the number of growths was even, and the last one was whole.
        self.in_last = 1 << self.halvings;
    }
}

impl Deref for IntervalGrowths {
    type Target = [IntervalGrowth];

    fn deref(&self) -> &[IntervalGrowth] {
        &self.all
    }
}

/// The most that are kept: a day and a half of seconds. An even number.
const GROWTHS_MAX: usize = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::Operation;

    #[test]
    fn a_run_of_days_keeps_its_sums_in_fewer_intervals() {
        let mut growths = IntervalGrowths::default();
        let seconds = 5 * GROWTHS_MAX as u64 / 2;
        for second in 1..=seconds {
            let mut growth = IntervalGrowth { span_ms: 1_000, ..IntervalGrowth::default() };
            growth.ok[Operation::Connect] = second;
            growths.add(growth);
        }
        assert!(growths.len() <= GROWTHS_MAX);
        let sum: u64 = growths.iter().map(|growth| growth.ok[Operation::Connect]).sum();
        assert_eq!(sum, seconds * (seconds + 1) / 2);
        assert_eq!(growths[0].ok[Operation::Connect], 1 + 2 + 3 + 4, "four seconds are one");
        assert!(growths.iter().all(|growth| growth.span_ms == 4_000));
    }
}
