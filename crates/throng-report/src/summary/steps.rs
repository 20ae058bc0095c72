//! The work of all intervals, in bounded memory.

use std::ops::Deref;

use super::rates::Step;

/// The work of each interval. Of a run of days, two intervals become one: sums stay exact, and the
/// best second becomes the best two.
#[derive(Debug, Default)]
pub(super) struct Steps {
    all: Vec<Step>,
    /// How often two steps became one.
    halvings: u32,
    /// Intervals in the last step.
    in_last: u64,
}

impl Steps {
    /// Adds the next interval.
    pub(super) fn add(&mut self, step: Step) {
        let is_whole = self.in_last >= 1 << self.halvings;
        if is_whole && self.all.len() >= STEPS_MAX {
            self.halve();
        }
        match self.all.last_mut() {
            Some(last) if self.in_last < 1 << self.halvings => {
                last.merge(&step);
                self.in_last += 1;
            }
            _ => {
                self.all.push(step);
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
        // The last pair is whole: the number of steps was even, and the last one was whole.
        self.in_last = 1 << self.halvings;
    }
}

impl Deref for Steps {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.all
    }
}

/// The most steps that are kept: a day and a half of seconds. An even number.
const STEPS_MAX: usize = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_days_keeps_its_sums_in_fewer_steps() {
        let mut steps = Steps::default();
        let seconds = 5 * STEPS_MAX as u64 / 2;
        for second in 1..=seconds {
            steps.add(Step { span_ms: 1_000, connects: second, ..Step::default() });
        }
        assert!(steps.len() <= STEPS_MAX);
        let sum: u64 = steps.iter().map(|step| step.connects).sum();
        assert_eq!(sum, seconds * (seconds + 1) / 2);
        assert_eq!(steps[0].connects, 1 + 2 + 3 + 4, "four seconds are one step");
        assert!(steps.iter().all(|step| step.span_ms == 4_000));
    }
}
