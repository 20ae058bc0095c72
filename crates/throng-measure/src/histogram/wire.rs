//! Reads the encoded form of HdrHistogram: V2 with deflate.
//!
//! The form says how large its histogram is. Nothing is reserved by that: a count is given to the
//! caller as it is read, and a histogram beyond the limits is refused by its head.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// Calls `found` with the highest value of each cell that is not zero, and its count.
///
/// # Errors
/// It is no histogram of this form, or one beyond the limits; the text says why.
pub(super) fn read(packed: &[u8], found: impl FnMut(u64, u64)) -> Result<(), String> {
    let deflated = packed.get(8..).ok_or("it is too short")?;
    if packed[..4] != DEFLATED_COOKIE {
        return Err("it is not in the form V2 with deflate".to_owned());
    }
    let mut inflated = ZlibDecoder::new(deflated);
    let mut head = [0; HEAD_BYTES];
    inflated.read_exact(&mut head).map_err(|error| error.to_string())?;
    let cells = Cells::of_head(&head)?;
    let mut counts = Vec::new();
    let bytes_max = (cells.number * COUNT_BYTES_MAX) as u64;
    inflated.take(bytes_max + 1).read_to_end(&mut counts).map_err(|error| error.to_string())?;
    if counts.len() as u64 != u64::from(word(&head, 4)) {
        return Err("its length is not what it says".to_owned());
    }
    cells.read(&counts, found)
}

/// The cells of a histogram of this form.
struct Cells {
    /// The significant bits of the lowest value: a cell is at least two to this power wide.
    unit_bits: u32,
    /// Half of the cells in which the first powers of two are divided, as a power of two.
    half_bits: u32,
    /// The number of all cells.
    number: usize,
}

impl Cells {
    fn of_head(head: &[u8; HEAD_BYTES]) -> Result<Self, String> {
        let (digits, low, high) = (word(head, 12), long(head, 16), long(head, 24));
        if head[..4] != COOKIE || word(head, 8) != 0 || f64::from_bits(long(head, 32)) != 1.0 {
            return Err("it has a form that is not read".to_owned());
        }
        if digits > DIGITS_MAX {
            return Err(format!("it has {digits} significant digits, more than {DIGITS_MAX}"));
        }
        if high > HIGHEST_MAX_US {
            return Err(format!("its highest value is {high}, more than {HIGHEST_MAX_US}"));
        }
        if low == 0 || high < low.saturating_mul(2) {
            return Err(format!("its values are from {low} to {high}"));
        }
        let largest_single = 2 * 10_u64.pow(digits);
        let half_bits = largest_single.next_power_of_two().trailing_zeros() - 1;
        let unit_bits = low.ilog2();
        let (mut buckets, mut beyond) = (1, 1_u64 << (half_bits + 1 + unit_bits));
        while beyond <= high {
            (buckets, beyond) = (buckets + 1, beyond << 1);
        }
        Ok(Self { unit_bits, half_bits, number: (buckets + 1) << half_bits })
    }

    /// Calls `found` with each count: a number below zero is that many cells without one.
    fn read(&self, mut counts: &[u8], mut found: impl FnMut(u64, u64)) -> Result<(), String> {
        let mut index = 0_usize;
        while !counts.is_empty() {
            let number = take_number(&mut counts).ok_or("it ends within a count")?;
            let cells = match number {
                1.. if index < self.number => {
                    found(self.highest_of(index), number.unsigned_abs());
                    1
                }
                0.. => 1,
                _ => usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX),
            };
            index = index.saturating_add(cells);
            if index > self.number {
                return Err("it has more counts than cells".to_owned());
            }
        }
        Ok(())
    }

    /// Returns the highest value of a cell.
    fn highest_of(&self, index: usize) -> u64 {
        let bucket = (index >> self.half_bits).saturating_sub(1);
        let within = (index - (bucket << self.half_bits)) as u64;
        let shift = bucket as u32 + self.unit_bits;
        ((within + 1) << shift) - 1
    }
}

/// Takes a number: groups of seven bits, the least first, the ninth of eight; the lowest bit is the
/// sign.
fn take_number(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0;
    for group in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let is_last = group == 8;
        let bits = if is_last { *byte } else { *byte & 0x7f };
        number |= u64::from(bits) << (7 * group);
        if is_last || *byte < 0x80 {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

fn word(head: &[u8; HEAD_BYTES], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|byte| head[at + byte]))
}

fn long(head: &[u8; HEAD_BYTES], at: usize) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|byte| head[at + byte]))
}

/// The first bytes of the form with deflate, …
const DEFLATED_COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();
/// … and those of what is deflated.
const COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// Bytes before the counts: cookie, their length, the offset, digits, lowest and highest value, and
/// the ratio of values that are fractions.
const HEAD_BYTES: usize = 40;
/// The most bytes of a count.
const COUNT_BYTES_MAX: usize = 9;
/// The most significant digits: a [`super::Histogram`] has as many.
const DIGITS_MAX: u32 = 3;
/// The largest highest value, in microseconds: twelve days.
const HIGHEST_MAX_US: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
    use proptest::prelude::*;

    use super::*;

    /// Returns the form with this head and these counts, which has the length that `says`.
    fn packed(digits: u32, low: u64, high: u64, counts: &[u8], says: u32) -> Vec<u8> {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::best());
        for part in [
            &COOKIE[..],
            &says.to_be_bytes(),
            &[0; 4],
            &digits.to_be_bytes(),
            &low.to_be_bytes(),
            &high.to_be_bytes(),
            &1.0_f64.to_be_bytes(),
            counts,
        ] {
            deflated.write_all(part).unwrap();
        }
        let deflated = deflated.finish().unwrap();
        [&DEFLATED_COOKIE[..], &(deflated.len() as u32).to_be_bytes(), &deflated].concat()
    }

    fn values(packed: &[u8]) -> Result<Vec<(u64, u64)>, String> {
        let mut values = Vec::new();
        read(packed, |value, n| values.push((value, n))).map(|()| values)
    }

    #[track_caller]
    fn refuses(packed: &[u8], why: &str) {
        let error = values(packed).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_histogram_beyond_the_limits_is_refused_by_its_head() {
        let one = |digits, high| packed(digits, 1, high, &[2], 1);
        assert_eq!(values(&one(3, 1 << 40)), Ok(vec![(0, 1)]));
        refuses(&one(4, 1 << 20), "4 significant digits, more than 3");
        refuses(&one(u32::MAX, 1 << 20), "4294967295 significant digits");
        refuses(&one(3, (1 << 40) + 1), "its highest value is 1099511627777");
        refuses(&one(5, u64::MAX), "5 significant digits");
        refuses(&packed(3, 0, 9, &[], 0), "its values are from 0 to 9");
        refuses(&packed(3, 1 << 63, 1 << 40, &[], 0), "its values are from");
    }

    #[test]
    fn what_it_holds_is_no_more_than_its_cells() {
        let high = 3_000;
        // Two times 2048 cells have 10,000 counts.
        refuses(&packed(3, 1, high, &[2; 10_000], 10_000), "more counts than cells");
        refuses(&packed(3, 1, high, &vec![0; 1 << 24], 1 << 24), "length");
        // A run of zeros that is longer than any histogram.
        refuses(&packed(3, 1, high, &[0xff; 9], 9), "more counts than cells");
        refuses(&packed(3, 1, high, &[0x80], 1), "ends within a count");
        refuses(&packed(3, 1, high, &[2], 2), "length");
    }

    #[test]
    fn a_form_in_a_form_is_refused() {
        let inner = packed(3, 1, 3_000, &[2], 1);
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::best());
        deflated.write_all(&inner).unwrap();
        deflated.write_all(&[0; HEAD_BYTES]).unwrap();
        let outer = [&DEFLATED_COOKIE[..], &[0; 4], &deflated.finish().unwrap()].concat();
        refuses(&outer, "a form that is not read");
    }

    proptest! {
        #[test]
        fn what_the_crate_writes_is_read_as_the_crate_reads_it(
            digits in 0..=3_u8, low in 1..1_000_u64, high in 2_000..1_u64 << 40,
            recorded in prop::collection::vec((0..1_u64 << 40, 1..u64::MAX >> 8), 0..50),
        ) {
            let mut histogram =
                hdrhistogram::Histogram::<u64>::new_with_bounds(low, high, digits).unwrap();
            for (value, n) in recorded {
                histogram.saturating_record_n(value, n);
            }
            let mut bytes = Vec::new();
            V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
            let cells = histogram.iter_recorded();
            let cells = cells.map(|cell| (cell.value_iterated_to(), cell.count_at_value()));
            prop_assert_eq!(values(&bytes), Ok(cells.collect::<Vec<_>>()));
        }

        #[test]
        fn any_head_and_any_counts_are_a_histogram_or_an_error(
            digits in 0..=5_u32, low: u64, high: u64, counts: Vec<u8>,
        ) {
            let _ = values(&packed(digits, low, high, &counts, counts.len() as u32));
        }
    }
}
