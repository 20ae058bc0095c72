//! The course of one value over a run.

use crate::{Evidence, Interval, Metric, server_side};

/// A counter or a gauge at the ends of the intervals in which it is known.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    /// End and length of the interval in milliseconds, and the value.
    points: Vec<(u64, u64, i64)>,
}

/// A counter that grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Name in the run file.
    pub counter: String,
    /// Value at the beginning.
    pub from: i64,
    /// Value at the end. A counter that falls starts again at zero, and continues here.
    pub to: i64,
    /// End of the first interval in which it grew, in milliseconds.
    pub began_ms: u64,
    /// Largest growth in a second.
    pub per_second_most: u64,
}

/// A gauge at its peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Name in the run file.
    pub gauge: String,
    /// Value at the beginning.
    pub from: i64,
    /// Largest value.
    pub value: i64,
    /// End of the interval with that value, in milliseconds.
    pub at_ms: u64,
}

impl Series {
    /// Returns the course of a value; an interval without it is left out.
    pub fn new<'a>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = (&'a Interval, Option<i64>)>,
    ) -> Self {
        let point = |(interval, value): (&Interval, Option<i64>)| {
            Some((interval.at_ms, interval.span_ms, value?))
        };
        Self { name: name.into(), points: values.into_iter().filter_map(point).collect() }
    }

    /// Returns the course of a metric of the server's kernel.
    pub fn of_server(intervals: &[Interval], metric: Metric) -> Self {
        let kernel = server_side(intervals);
        let value = |interval| (interval, kernel(interval).get(metric));
        Self::new(metric.name(), intervals.iter().map(value))
    }

    /// Returns the growth over the whole course, which may be 0, or `None` if the value was never
    /// known. A value that falls starts again at zero, as that of a restarted server.
    pub fn growth(self) -> Option<Growth> {
        let (_, _, from) = *self.points.first()?;
        let (mut to, mut began_ms, mut per_second_most) = (from, 0, 0);
        for pair in self.points.windows(2) {
            let ((_, _, before), (at_ms, span_ms, now)) = (pair[0], pair[1]);
            let by = if now >= before { now.saturating_sub(before) } else { now };
            if by <= 0 {
                continue;
            }
            if to == from {
                began_ms = at_ms;
            }
            to = to.saturating_add(by);
            per_second_most =
                per_second_most.max((by as u64).saturating_mul(1000) / span_ms.max(1));
        }
        Some(Growth { counter: self.name, from, to, began_ms, per_second_most })
    }

    /// Returns the peak, the first of several equal ones.
    pub fn peak(self) -> Option<Peak> {
        let (_, _, from) = *self.points.first()?;
        let (at_ms, _, value) = *self.points.iter().rev().max_by_key(|(_, _, value)| *value)?;
        Some(Peak { gauge: self.name, from, value, at_ms })
    }
}

impl Growth {
    /// Returns the difference of the last and the first value.
    pub fn by(&self) -> u64 {
        u64::try_from(self.to.saturating_sub(self.from)).unwrap_or(0)
    }

    /// Returns by how much several counters grew together.
    pub fn total<'g>(growths: impl IntoIterator<Item = &'g Self>) -> u64 {
        growths.into_iter().map(Self::by).fold(0, u64::saturating_add)
    }

    /// Returns the growth as evidence of a finding.
    pub fn evidence(&self) -> Evidence {
        self.evidence_from(0)
    }

    /// Returns the growth as evidence of a finding that begins at `at_ms` or later, for a counter
    /// that always grows: CPU time, when the CPUs were full.
    pub fn evidence_from(&self, at_ms: u64) -> Evidence {
        Evidence {
            counter: self.counter.clone(),
            from: self.from as f64,
            to: self.to as f64,
            at_ms: self.began_ms.max(at_ms),
        }
    }
}

impl Peak {
    /// Returns the peak as evidence of a finding.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            counter: self.gauge.clone(),
            from: self.from as f64,
            to: self.value as f64,
            at_ms: self.at_ms,
        }
    }
}

impl From<Growth> for Evidence {
    fn from(growth: Growth) -> Self {
        growth.evidence()
    }
}

impl From<&Growth> for Evidence {
    fn from(growth: &Growth) -> Self {
        growth.evidence()
    }
}

impl From<Peak> for Evidence {
    fn from(peak: Peak) -> Self {
        peak.evidence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[Option<i64>]) -> Series {
        let interval = |at: usize| Interval {
            at_ms: 1_000 * at as u64,
            span_ms: if at == 0 { 0 } else { 500 },
            ..Interval::default()
        };
        let intervals: Vec<_> = (0..values.len()).map(interval).collect();
        Series::new("n", intervals.iter().zip(values.iter().copied()))
    }

    #[test]
    fn a_counter_that_falls_starts_again_at_zero() {
        let growth = series(&[Some(7), None, Some(7), Some(9), Some(4)]).growth().unwrap();
        assert_eq!((growth.from, growth.to, growth.by()), (7, 13, 6));
        assert_eq!((growth.began_ms, growth.per_second_most), (3_000, 8));
    }

    #[test]
    fn what_was_never_known_has_no_growth_and_what_stood_still_grew_by_nothing() {
        assert_eq!(series(&[None, None]).growth(), None);
        assert_eq!(series(&[None, Some(3), Some(3)]).growth().unwrap().by(), 0);
        assert_eq!(series(&[None]).peak(), None);
    }

    #[test]
    fn the_first_of_equal_peaks_counts() {
        let peak = series(&[Some(2), Some(5), None, Some(5)]).peak().unwrap();
        assert_eq!((peak.from, peak.value, peak.at_ms), (2, 5, 1_000));
    }
}
