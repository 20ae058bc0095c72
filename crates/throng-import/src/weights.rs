//! Weights of classes: small whole numbers in the proportion of their users.

/// The weights of classes with these numbers of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weights {
    /// One for each class, at least 1.
    pub(crate) each: Vec<u32>,
    /// Whether the proportion is nearly that of the users, and not exactly.
    pub(crate) are_rounded: bool,
}

impl Weights {
    /// Returns the weights of classes with these numbers of users.
    pub(crate) fn of_sizes(sizes: &[u64]) -> Self {
        let divisor = sizes.iter().copied().fold(0, greatest_divisor).max(1);
        let most = sizes.iter().max().copied().unwrap_or(1) / divisor;
        let scale = most.div_ceil(WEIGHT_MAX).max(1);
        let weight = |size: &u64| (size / divisor / scale).max(1) as u32;
        Self { each: sizes.iter().map(weight).collect(), are_rounded: scale > 1 }
    }

    /// Returns the weights of classes with these shares of the users.
    pub(crate) fn of_shares(shares: &[f64]) -> Self {
        let is_whole = |value: f64| (value - value.round()).abs() < 1e-6;
        let fits = |scale: &f64| {
            let all_whole = shares.iter().all(|share| is_whole(share * scale));
            all_whole && shares.iter().all(|share| share * scale <= WEIGHT_MAX as f64)
        };
        let largest = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let scale = (0..6).map(|digits| 10f64.powi(digits)).find(fits);
        let exact = scale.unwrap_or(ROUNDED_PARTS / largest);
        let sizes: Vec<_> =
            shares.iter().map(|share| ((share * exact).round() as u64).max(1)).collect();
        Self { are_rounded: scale.is_none(), ..Self::of_sizes(&sizes) }
    }
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// The largest weight of a class.
pub(crate) const WEIGHT_MAX: u64 = 1_000_000;

/// The largest weight where shares have no whole numbers in their proportion.
const ROUNDED_PARTS: f64 = 10_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_small_whole_numbers() {
        let weights = |shares: &[f64]| Weights::of_shares(shares).each;
        assert_eq!(weights(&[100.0]), [1]);
        assert_eq!(weights(&[70.0, 30.0]), [7, 3]);
        assert_eq!(weights(&[99.95, 0.05]), [1999, 1]);
        assert_eq!(weights(&[1.0, 2.0, 1.0]), [1, 2, 1]);
        assert_eq!(weights(&[66.666_666_7, 33.333_333_3]), [2, 1]);
        assert_eq!(weights(&[1e9, 1.0]), [10_000, 1]);
        assert_eq!(Weights::of_sizes(&[25_000, 5_000]).each, [5, 1]);
        assert!(Weights::of_sizes(&[3_000_001, 1]).are_rounded);
    }
}
