//! Latencies in microseconds, as an HDR histogram of three significant digits that uses memory only
//! for recorded values.
//!
//! The cells are our own and the encoded form is the `hdrhistogram` crate's. That crate stores its
//! cells in one array, written when a histogram is made, which would make 74 KB resident for each
//! of the many histograms that a generator with many cores keeps.

mod wire;

use std::cell::Cell;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// The largest value, in microseconds: two minutes. Larger ones are recorded as this one.
pub const HIGHEST_US: u64 = 120_000_000;

/// The number of occurrences of each latency, from 1 µs to two minutes, to three significant
/// digits.
///
/// An empty histogram is 152 bytes. Each power of two that occurs takes 4 KB (and the first two
/// milliseconds 8 KB together), up to 74 KB.
#[derive(Clone, Default)]
pub struct Histogram {
    blocks: [Option<Box<Block>>; BLOCKS],
    /// The sum of all cells.
    count: u64,
}

/// The counters of one power of two.
type Block = [u32; BLOCK];

impl Histogram {
    /// Returns an empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one latency of `us` microseconds.
    #[inline]
    pub fn record_us(&mut self, us: u64) {
        self.record_n(us, 1);
    }

    /// Records `n` latencies of `us` microseconds each. A full cell (2^32 − 1) takes no more, and
    /// the rest is not counted either.
    #[inline]
    pub fn record_n(&mut self, us: u64, n: u32) {
        let index = index_of(us.min(HIGHEST_US));
        if let Some(block) = self.blocks.get_mut(index / BLOCK) {
            let cell = &mut block.get_or_insert_with(empty_block)[index % BLOCK];
            self.count += add(cell, n);
        }
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        for (block, added) in self.blocks.iter_mut().zip(&other.blocks) {
            let Some(added) = added else { continue };
            for (cell, n) in block.get_or_insert_with(empty_block).iter_mut().zip(added.iter()) {
                self.count += add(cell, *n);
            }
        }
    }

    /// Removes all values; the memory stays allocated. Costs nothing if the histogram is empty, and
    /// otherwise 4 KB of zeros for each power of two that occurred.
    pub fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        self.blocks.iter_mut().flatten().for_each(|block| block.fill(0));
        self.count = 0;
    }

    /// Returns the number of recorded values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Reports whether no value was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of values of two minutes or more (to the precision of that cell). Their
    /// true values may be larger.
    pub fn saturated(&self) -> u64 {
        let index = index_of(HIGHEST_US);
        self.blocks[index / BLOCK].as_ref().map_or(0, |block| block[index % BLOCK].into())
    }

    /// Returns the value, in microseconds, that `percent` per cent (0 to 100) of the values do not
    /// exceed; 0 if there are none. It is the upper bound of its cell, so at most 0.1 % too large.
    pub fn percentile(&self, percent: f64) -> u64 {
        let share = (percent / 100.0).clamp(0.0, 1.0);
        // The tolerance keeps 99.9 % of 1000 at the 999th value although 0.999 has no exact form.
        let rank = ((self.count as f64 * share - 1e-6).ceil() as u64).max(1);
        let mut seen = 0;
        for (value, n) in self.iter() {
            seen += u64::from(n);
            if seen >= rank {
                return value;
            }
        }
        self.max()
    }

    /// Reports whether both have equally many values, and no percentile of this histogram is larger
    /// than that of `other`.
    pub fn is_at_most(&self, other: &Self) -> bool {
        let mut others = other.cells().peekable();
        let (mut below, mut others_below) = (0_u64, 0_u64);
        self.count == other.count
            && self.cells().all(|(index, n)| {
                while let Some((_, n)) = others.next_if(|(other, _)| *other < index) {
                    others_below += u64::from(n);
                }
                // Below this cell: at least as many values as in `other`.
                let holds = below >= others_below;
                below += u64::from(n);
                holds
            })
    }

    /// Returns the largest value in microseconds, to the precision of its cell; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.iter().next_back().map_or(0, |(value, _)| value)
    }

    /// Returns the mean in microseconds, from the middles of the cells; 0 if there are no values.
    pub fn mean(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let sum: f64 = self.cells().map(|(index, n)| middle_of(index) * f64::from(n)).sum();
        sum / self.count as f64
    }

    /// Iterates over the cells that are not zero, in order: the highest value of each, in
    /// microseconds, and its count.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u32)> + '_ {
        self.cells().map(|(index, n)| (highest_of(index), n))
    }

    /// Encodes the histogram in the form that HdrHistogram libraries of every language read: V2
    /// with deflate, in standard base64. Starts with `HISTFAAA`.
    pub fn encode(&self) -> String {
        let mut wire = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST_US, DIGITS)
            .expect("the bounds are constants that the crate accepts");
        for (value, n) in self.iter() {
            wire.saturating_record_n(value, n.into());
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&wire, &mut bytes)
            .expect("writing to memory does not fail");
        BASE64.encode(bytes)
    }

    /// Reads the output of [`encode`](Self::encode), or of another HdrHistogram library with at
    /// most three significant digits and a highest value of at most twelve days. Values are capped
    /// at two minutes.
    ///
    /// # Errors
    /// The text is no such histogram, or histograms that are read within
    /// `bounded_histograms` take too much.
    pub fn decode(text: &str) -> Result<Self, HistogramDecodeError> {
        let packed = BASE64.decode(text.trim()).map_err(HistogramDecodeError::new)?;
        let mut histogram = Self::new();
        wire::read(&packed, |value, n| {
            histogram.record_n(value, u32::try_from(n).unwrap_or(u32::MAX));
        })
        .map_err(HistogramDecodeError::new)?;
        let blocks = histogram.blocks.iter().flatten().count();
        let left = BLOCKS_LEFT.get().checked_sub(1 + blocks).ok_or_else(|| {
            HistogramDecodeError::new(format!(
                "with the histograms before it, it takes more than {BLOCKS_MAX} blocks"
            ))
        })?;
        BLOCKS_LEFT.set(left);
        Ok(histogram)
    }

    /// Iterates over the cells that are not zero, in order: the index of each, and its count.
    fn cells(&self) -> impl DoubleEndedIterator<Item = (usize, u32)> + '_ {
        let blocks = self.blocks.iter().enumerate();
        let present = blocks.filter_map(|(i, block)| Some((i * BLOCK, block.as_ref()?)));
        let cells = present
            .flat_map(|(from, block)| block.iter().enumerate().map(move |(i, n)| (from + i, *n)));
        cells.filter(|(_, n)| *n > 0)
    }
}

impl crate::counters::Merge for Histogram {
    fn merge(&mut self, other: &Self) {
        Histogram::merge(self, other);
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({:?})", LatencySummary::from(self))
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encode())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::decode(&text).map_err(serde::de::Error::custom)
    }
}

/// The usual statistics of a histogram, in microseconds. All zero if `count` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencySummary {
    /// Median: half of the values are at most this.
    pub p50: u64,
    /// 90 % of the values are at most this.
    pub p90: u64,
    /// 95 % of the values are at most this.
    pub p95: u64,
    /// 99 % of the values are at most this.
    pub p99: u64,
    /// 99.9 % of the values are at most this.
    pub p999: u64,
    /// The largest value.
    pub max: u64,
    /// The mean of the values.
    pub mean: u64,
    /// The number of values.
    pub count: u64,
}

impl From<&Histogram> for LatencySummary {
    fn from(histogram: &Histogram) -> Self {
        Self {
            p50: histogram.percentile(50.0),
            p90: histogram.percentile(90.0),
            p95: histogram.percentile(95.0),
            p99: histogram.percentile(99.0),
            p999: histogram.percentile(99.9),
            max: histogram.max(),
            mean: histogram.mean().round() as u64,
            count: histogram.count(),
        }
    }
}

/// The error for a text that is not an encoded histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an HdrHistogram in base64: {0}")]
pub struct HistogramDecodeError(String);

impl HistogramDecodeError {
    fn new(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Calls `read`. All histograms that it decodes on this thread may take 256 MiB together: a line
/// of a file has many, and a few bytes of it may be a full histogram.
pub(crate) fn bounded_histograms<R>(read: impl FnOnce() -> R) -> R {
    let before = BLOCKS_LEFT.replace(BLOCKS_MAX);
    let result = read();
    BLOCKS_LEFT.set(before);
    result
}

thread_local! {
    /// The blocks that histograms may still take which are decoded on this thread.
    static BLOCKS_LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The most blocks of 4 KB within [`bounded_histograms`], where each histogram counts as one more.
const BLOCKS_MAX: usize = 1 << 16;

/// Adds `n` to a cell, up to its maximum, and returns the number added.
#[inline]
fn add(cell: &mut u32, n: u32) -> u64 {
    let before = *cell;
    *cell = before.saturating_add(n);
    u64::from(*cell - before)
}

/// Returns the index of a value's cell. The first 2048 values have a cell each. From there every
/// power of two is divided into 1024 cells, so a cell is never wider than a thousandth of its
/// value.
#[inline]
const fn index_of(us: u64) -> usize {
    let shift = shift_of(us);
    ((shift as usize) * BLOCK) + (us >> shift) as usize
}

#[inline]
const fn shift_of(us: u64) -> u32 {
    // 2047 has 53 leading zeros: values below 2048 are not shifted.
    53 - (us | 2047).leading_zeros()
}

/// Returns the lowest value of a cell, and the number of values that share it.
const fn span_of(index: usize) -> (u64, u64) {
    let shift = (index / BLOCK).saturating_sub(1);
    (((index - shift * BLOCK) as u64) << shift, 1 << shift)
}

fn highest_of(index: usize) -> u64 {
    let (low, width) = span_of(index);
    (low + width - 1).min(HIGHEST_US)
}

fn middle_of(index: usize) -> f64 {
    let (low, _) = span_of(index);
    (low as f64 + highest_of(index) as f64) / 2.0
}

/// Significant decimal digits of a value.
const DIGITS: u8 = 3;
#[cold]
fn empty_block() -> Box<Block> {
    Box::new([0; BLOCK])
}

/// Cells of one power of two.
const BLOCK: usize = 1024;
/// Powers of two up to [`HIGHEST_US`], where 0 to 1023 count as one.
const BLOCKS: usize = index_of(HIGHEST_US) / BLOCK + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record_us(*value);
        }
        histogram
    }

    #[test]
    fn a_histogram_that_was_never_used_owns_nothing() {
        assert_eq!(Histogram::new().blocks.iter().flatten().count(), 0);
        assert_eq!(Histogram::new().percentile(99.0), 0);
        assert_eq!(LatencySummary::from(&Histogram::new()), LatencySummary::default());
    }

    #[test]
    fn memory_is_taken_only_for_the_powers_of_two_that_occur() {
        let h = of(&[5_000_000, 200, 210, 5_000_001]);
        assert_eq!(h.blocks.iter().flatten().count(), 2);
        assert_eq!(std::mem::size_of::<Histogram>(), 152);
    }

    #[test]
    fn percentiles_of_a_thousand_values_are_the_values_at_those_ranks() {
        let h = of(&(1..=1000).collect::<Vec<_>>());
        let summary = LatencySummary::from(&h);
        assert_eq!((summary.p50, summary.p90, summary.p99, summary.p999), (500, 900, 990, 999));
        assert_eq!((summary.max, summary.mean, summary.count), (1000, 501, 1000));
        assert_eq!((h.percentile(0.0), h.percentile(100.0), h.mean()), (1, 1000, 500.5));
    }

    #[test]
    fn values_above_two_minutes_saturate_and_are_counted() {
        let h = of(&[5, HIGHEST_US - 200_000, HIGHEST_US + 1, u64::MAX]);
        assert_eq!((h.saturated(), h.count(), h.max()), (2, 4, HIGHEST_US));
    }

    #[test]
    fn a_full_cell_stays_full() {
        let mut h = Histogram::new();
        h.record_n(7, u32::MAX);
        h.record_us(7);
        assert_eq!(h.iter().collect::<Vec<_>>(), [(7, u32::MAX)]);
    }

    #[test]
    fn percentiles_do_not_shift_when_a_cell_is_full() {
        let mut h = Histogram::new();
        h.record_n(7, u32::MAX);
        h.record_n(9_000, 1_000);
        let before = LatencySummary::from(&h);
        let full = h.clone();
        h.record_n(7, u32::MAX);
        h.merge(&full);
        h.merge(&full);
        assert_eq!(h.count(), u64::from(u32::MAX) + 3_000);
        let after = LatencySummary::from(&h);
        assert_eq!((after.p50, after.p999, after.max), (before.p50, before.p999, before.max));
        assert_eq!((after.p999, after.mean), (7, before.mean));
    }

    #[test]
    fn clear_forgets_every_block() {
        let mut h = of(&[0, 3_000, 9_000_000, u64::MAX]);
        h.clear();
        assert!(h.is_empty() && h.cells().next().is_none());
        h.record_us(4);
        assert_eq!((h.count(), h.max()), (1, 4));
    }

    #[test]
    fn garbage_is_refused_with_a_reason() {
        for text in ["", "?", "HISTFAAA", "AAAAAAAAAAAA"] {
            assert!(Histogram::decode(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn many_histograms_take_no_more_than_their_bound() {
        let full = of(&(0..17).map(|bit| 1_u64 << (bit + 10)).collect::<Vec<_>>());
        let blocks = 1 + full.blocks.iter().flatten().count();
        let text = full.encode();
        let count = |max: usize| (0..max).take_while(|_| Histogram::decode(&text).is_ok()).count();
        let bound = BLOCKS_MAX / blocks;
        assert_eq!(bounded_histograms(|| count(bound + 10)), bound);
        assert_eq!(count(bound + 10), bound + 10, "others are not bounded");
    }

    #[test]
    fn the_encoded_form_begins_as_other_libraries_expect() {
        assert!(of(&[1]).encode().starts_with("HISTFAAA"));
    }

    proptest! {
        #[test]
        fn merge_of_the_parts_is_the_whole(
            left in prop::collection::vec(0..HIGHEST_US * 2, 0..200),
            right in prop::collection::vec(0..50_000u64, 0..200),
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let whole = of(&[left, right].concat());
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(LatencySummary::from(&merged), LatencySummary::from(&whole));
        }

        #[test]
        fn decode_gives_back_what_was_encoded(
            values in prop::collection::vec(0..HIGHEST_US * 2, 0..200),
        ) {
            let h = of(&values);
            let back = Histogram::decode(&h.encode()).unwrap();
            prop_assert_eq!(&back, &h);
            prop_assert_eq!(back.saturated(), h.saturated());
        }

        #[test]
        fn a_damaged_histogram_is_an_error_or_another_histogram_but_no_panic(
            values in prop::collection::vec(0..HIGHEST_US, 1..50), at in 0..4096usize, byte: u8,
        ) {
            let mut bytes = BASE64.decode(of(&values).encode()).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Histogram::decode(&BASE64.encode(bytes));
        }

        #[test]
        fn percentiles_agree_with_the_sorted_values(
            mut values in prop::collection::vec(1..HIGHEST_US, 1..300), percent in 0.0..=100.0f64,
        ) {
            let h = of(&values);
            values.sort_unstable();
            let rank = ((values.len() as f64 * percent / 100.0 - 1e-6).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let got = h.percentile(percent);
            prop_assert!(got >= exact && got - exact <= exact / 1000, "{got} for {exact}");
        }

        #[test]
        fn one_is_at_most_another_where_each_of_its_sorted_values_is(
            mut pairs in prop::collection::vec((0..300u64, 0..300u64), 0..20), is_ordered: bool,
        ) {
            if is_ordered {
                pairs.iter_mut().for_each(|(one, other)| *other += *one);
            }
            let (mut ones, mut others): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            let (one, other) = (of(&ones), of(&others));
            ones.sort_unstable();
            others.sort_unstable();
            let expected = ones.iter().zip(&others).all(|(one, other)| one <= other);
            prop_assert_eq!(one.is_at_most(&other), expected);
            prop_assert!(!is_ordered || expected);
            others.push(1_000);
            prop_assert!(!one.is_at_most(&of(&others)), "the counts differ");
        }

        #[test]
        fn cells_are_those_of_the_hdrhistogram_crate(value in 0..=HIGHEST_US) {
            let crates =
                hdrhistogram::Histogram::<u32>::new_with_bounds(1, HIGHEST_US, DIGITS).unwrap();
            prop_assert_eq!(crates.distinct_values(), BLOCKS * BLOCK);
            let highest = crates.highest_equivalent(value).min(HIGHEST_US);
            prop_assert_eq!(highest_of(index_of(value)), highest);
            let (low, width) = span_of(index_of(value));
            prop_assert!(low <= value && value < low + width);
        }
    }
}
