//! The block bootstrap: how much a value of a run would differ if its intervals had come by chance
//! as others like them.

use throng_base::Prng;
use throng_measure::Histogram;

use super::sample::LatencyCells;
use crate::threshold::Statistic;

/// The times that the intervals are drawn anew.
pub(super) const DRAWS: usize = 1_000;
/// The seed of the draws: a comparison of the same files has the same result.
pub(super) const SEED: u64 = 1;
/// The fewest groups of intervals from which anything can be concluded.
pub(super) const GROUPS_LEAST: usize = 10;

/// The uncertainty of a value: standard errors of the value and of its logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Uncertainty {
    pub(super) error: f64,
    /// `None` if a value is not above zero.
    pub(super) log_error: Option<f64>,
    /// Degrees of freedom.
    pub(super) freedom: f64,
    /// The number of groups, or of runs, behind it.
    pub(super) samples: usize,
}

/// Returns the spread of each statistic over `n` groups in their order. `statistics` receives how
/// often each group was drawn. `None` if there are too few groups, or if a draw has no value.
pub(super) fn spreads<const S: usize>(
    n: usize,
    mut statistics: impl FnMut(&[u32]) -> [Option<f64>; S],
) -> [Option<Uncertainty>; S] {
    if n < GROUPS_LEAST {
        return [None; S];
    }
    let mut random = Prng::new(SEED);
    let mut times = vec![0; n];
    let mut moments = [const { Moments::new() }; S];
    for _ in 0..DRAWS {
        draw(&mut random, &mut times);
        for (moments, value) in moments.iter_mut().zip(statistics(&times)) {
            moments.add(value);
        }
    }
    let block = block_length(n) as f64;
    // A draw of blocks varies less than intervals do, by this factor: a block's own mean is known.
    let factor = (n as f64 / (n as f64 - block)).sqrt();
    let freedom = (n as f64 / block - 1.0).max(1.0);
    moments.map(|moments| moments.spread(factor, freedom, n))
}

/// Draws blocks of neighbours with replacement, around the end, until there are as many groups as
/// before.
fn draw(random: &mut Prng, times: &mut [u32]) {
    times.fill(0);
    let (n, block) = (times.len(), block_length(times.len()));
    let mut left = n;
    while left > 0 {
        let from = random.below(n as u64) as usize;
        for step in 0..block.min(left) {
            times[(from + step) % n] += 1;
        }
        left -= block.min(left);
    }
}

/// Returns the length of a block: it grows with the cube root, as is best for means of neighbours
/// that are alike.
fn block_length(n: usize) -> usize {
    ((1.5 * (n as f64).cbrt()).round() as usize).max(1)
}

/// Sums of a value over all draws.
#[derive(Clone, Copy, Debug)]
struct Moments {
    count: usize,
    sum: f64,
    squares: f64,
    log_count: usize,
    log_sum: f64,
    log_squares: f64,
    /// The first value, which is subtracted from all: else large values would hide small spreads.
    first: Option<f64>,
}

impl Moments {
    const fn new() -> Self {
        let (sum, squares, log_sum, log_squares) = (0.0, 0.0, 0.0, 0.0);
        Self { count: 0, sum, squares, log_count: 0, log_sum, log_squares, first: None }
    }

    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value else { return };
        let first = *self.first.get_or_insert(value);
        self.count += 1;
        self.sum += value - first;
        self.squares += (value - first).powi(2);
        if value > 0.0 && first > 0.0 {
            let log = (value / first).ln();
            self.log_count += 1;
            self.log_sum += log;
            self.log_squares += log * log;
        }
    }

    fn spread(&self, factor: f64, freedom: f64, samples: usize) -> Option<Uncertainty> {
        let deviation = |count: usize, sum: f64, squares: f64| {
            let n = count as f64;
            factor * ((squares - sum * sum / n).max(0.0) / (n - 1.0)).sqrt()
        };
        (self.count == DRAWS).then(|| Uncertainty {
            error: deviation(self.count, self.sum, self.squares),
            log_error: (self.log_count == DRAWS)
                .then(|| deviation(self.log_count, self.log_sum, self.log_squares)),
            freedom,
            samples,
        })
    }
}

/// Returns the spreads of statistics of a latency, over groups in which it was measured. Histograms
/// of the drawn groups are merged; percentiles are never averaged.
pub(super) fn latency_spreads<const S: usize>(
    groups: &[&LatencyCells],
    statistics: [Statistic; S],
) -> [Option<Uncertainty>; S] {
    let mut values: Vec<u32> = Vec::new();
    for cells in groups {
        values.extend(cells.answered.iter().chain(&cells.unanswered).map(|cell| cell.0));
    }
    values.sort_unstable();
    values.dedup();
    let index = |cells: &[(u32, u32)]| -> Vec<(usize, u64)> {
        let place = |us: &u32| values.binary_search(us).unwrap_or_default();
        cells.iter().map(|(us, n)| (place(us), u64::from(*n))).collect()
    };
    let groups: Vec<_> =
        groups.iter().map(|cells| (index(&cells.answered), index(&cells.unanswered))).collect();
    let mut counts = vec![0_u64; values.len()];
    spreads(groups.len(), |times| {
        counts.fill(0);
        add(&mut counts, groups.iter().map(|group| &group.0), times);
        let answered = statistics_of(statistics, &values, &counts);
        if groups.iter().all(|group| group.1.is_empty()) {
            return answered;
        }
        add(&mut counts, groups.iter().map(|group| &group.1), times);
        let all = statistics_of(statistics, &values, &counts);
        // Waits that the end cut short make no number smaller.
        std::array::from_fn(|at| answered[at].zip(all[at]).map(|(one, other)| one.max(other)))
    })
}

fn add<'a>(counts: &mut [u64], groups: impl Iterator<Item = &'a Vec<(usize, u64)>>, times: &[u32]) {
    for (cells, times) in groups.zip(times).filter(|(_, times)| **times > 0) {
        for (at, n) in cells {
            counts[*at] = counts[*at].saturating_add(n * u64::from(*times));
        }
    }
}

/// Returns statistics of values with their counts, as [`Histogram`] has them.
fn statistics_of<const S: usize>(
    statistics: [Statistic; S],
    values: &[u32],
    counts: &[u64],
) -> [Option<f64>; S] {
    let total = counts.iter().copied().fold(0, u64::saturating_add);
    if total == 0 {
        return [None; S];
    }
    // The counts up to and including each value.
    let mut seen = 0_u64;
    let ends: Vec<u64> = counts
        .iter()
        .map(|n| {
            seen = seen.saturating_add(*n);
            seen
        })
        .collect();
    let of_percent = |percent: f64| {
        let rank = ((total as f64 * percent / 100.0 - 1e-6).ceil() as u64).clamp(1, total);
        let at = ends.partition_point(|end| *end < rank);
        values.get(at).map(|value| f64::from(*value))
    };
    statistics.map(|statistic| match statistic {
        Statistic::Percentile(percentile) => of_percent(percentile.percent()),
        Statistic::Max => of_percent(100.0),
        Statistic::Mean => {
            let products = values.iter().zip(counts).map(|(us, n)| f64::from(*us) * *n as f64);
            Some(products.sum::<f64>() / total as f64)
        }
    })
}

/// Returns the spread of a statistic over `runs`, from leaving out one of them at a time. Their
/// histograms are merged.
pub(super) fn jackknife(
    runs: usize,
    without: impl Fn(Option<usize>) -> f64,
) -> Option<Uncertainty> {
    if runs < 2 {
        return None;
    }
    let n = runs as f64;
    let error = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        ((n - 1.0) / n * squares).sqrt()
    };
    let values: Vec<f64> = (0..runs).map(|run| without(Some(run))).collect();
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    Some(Uncertainty {
        error: error(&values),
        log_error: values.iter().all(|value| *value > 0.0).then(|| error(&logs)),
        freedom: n - 1.0,
        samples: runs,
    })
}

/// Merges histograms.
pub(super) fn union<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut union = Histogram::new();
    histograms.for_each(|histogram| union.merge(histogram));
    union
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_measure::Percentile;

    #[test]
    fn a_draw_has_as_many_groups_as_the_run() {
        let mut random = Prng::new(7);
        for n in [10, 11, 60, 512] {
            let mut times = vec![0; n];
            draw(&mut random, &mut times);
            assert_eq!(times.iter().sum::<u32>() as usize, n);
        }
    }

    #[test]
    fn statistics_are_those_of_the_histogram() {
        let mut random = Prng::new(3);
        let mut histogram = Histogram::new();
        (0..5_000).for_each(|_| histogram.record_us((random.exponential() * 900.0) as u64 + 1));
        let (values, counts): (Vec<_>, Vec<_>) =
            histogram.iter().map(|(us, n)| (us as u32, u64::from(n))).unzip();
        let percentiles = ["p0.1", "p50", "p90", "p95", "p99", "p99.9", "p99.99"];
        let percentiles = percentiles.map(|name| Percentile::named(name).unwrap());
        let found = statistics_of(percentiles.map(Statistic::Percentile), &values, &counts);
        for (percentile, found) in percentiles.iter().zip(found) {
            assert_eq!(found, Some(percentile.of(&histogram) as f64), "{percentile}");
        }
        let [mean, max] = statistics_of([Statistic::Mean, Statistic::Max], &values, &counts);
        assert!((mean.unwrap() / histogram.mean() - 1.0).abs() < 0.002);
        assert_eq!(max, Some(histogram.max() as f64));
        assert_eq!(statistics_of([Statistic::Mean], &[], &[]), [None]);
    }

    #[test]
    fn leaving_out_one_run_gives_the_usual_error_of_a_mean() {
        let runs = [3.0, 5.0, 10.0];
        let mean = |without: Option<usize>| {
            let kept = runs.iter().enumerate().filter(|(at, _)| Some(*at) != without);
            let kept: Vec<f64> = kept.map(|(_, value)| *value).collect();
            kept.iter().sum::<f64>() / kept.len() as f64
        };
        let spread = jackknife(3, mean).unwrap();
        let variance = runs.iter().map(|value: &f64| (value - 6.0).powi(2)).sum::<f64>() / 2.0;
        assert!((spread.error - (variance / 3.0).sqrt()).abs() < 1e-9, "{spread:?}");
        assert_eq!((spread.freedom, jackknife(1, mean)), (2.0, None));
    }
}
