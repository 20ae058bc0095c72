//! The counts in a log, which are written as any number.

/// Returns a number as a count; `None` if it is none, or so large that it is not exact.
pub(crate) fn count_of(number: f64) -> Option<u64> {
    let is_count = (0.0..COUNT_END).contains(&number) && number.fract() == 0.0;
    is_count.then_some(number as u64)
}

/// From here on a number stands for several counts: 2^53 is also what 2^53 + 1 is read as.
const COUNT_END: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_whole_numbers_are_counts() {
        for (number, count) in [
            (0.0, Some(0)),
            (7.0, Some(7)),
            (COUNT_END - 1.0, Some(9_007_199_254_740_991)),
            (COUNT_END, None),
            (-1.0, None),
            (0.5, None),
            (f64::NAN, None),
        ] {
            assert_eq!(count_of(number), count, "{number}");
        }
    }
}
