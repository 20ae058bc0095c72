//! The middle of some values.

/// Returns the median, of an even number of values the larger one of the two in the middle.
pub(crate) fn median<T: PartialOrd>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut all: Vec<T> = values.into_iter().collect();
    all.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    let middle = all.len() / 2;
    all.into_iter().nth(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_the_middle_is_the_median() {
        assert_eq!(median([7, 1, 5]), Some(5));
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), Some(3.0));
        assert_eq!(median::<u64>([]), None);
    }
}
