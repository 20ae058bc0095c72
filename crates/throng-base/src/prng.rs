//! A small seeded random number generator: eight bytes of state, so that every user can own one.
//!
//! SplitMix64 (Steele, Lea, Flood 2014). Not for secrets.

/// SplitMix64 generator: every seed gives its own sequence of period 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prng(u64);

impl Prng {
    /// Creates the generator of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the generator of member `index` of the family `seed`. The sequences of neighbours
    /// are independent.
    pub const fn derive(seed: u64, index: u64) -> Self {
        Self(mix(seed ^ mix(index.wrapping_add(GOLDEN))))
    }

    /// Returns 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Returns a number in `0..bound`, or 0 if `bound` is 0. It is the high half of a product; the
    /// bias is below 2^-32 for every bound under 2^32.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns a number in `low..=high`.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low).checked_add(1) {
            Some(span) => low + self.below(span),
            None => self.bits(),
        }
    }

    /// Returns a fraction in `[0, 1)` with 53 random bits.
    pub const fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns an exponentially distributed number with mean 1: the gap between Poisson arrivals of
    /// rate 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Returns a normally distributed number with mean 0 and variance 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bits = self.bits().to_le_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
        }
    }
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let (mut a, mut b) = (Prng::new(7), Prng::new(7));
        assert!((0..100).all(|_| a.bits() == b.bits()));
    }

    #[test]
    fn between_reaches_both_bounds_and_nothing_else() {
        let mut prng = Prng::new(1);
        let mut seen = [0u32; 5];
        for _ in 0..10_000 {
            seen[(prng.between(3, 7) - 3) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (1_700..2_300).contains(&n)), "{seen:?}");
    }

    #[test]
    fn exponential_has_mean_one() {
        let mut prng = Prng::new(2);
        // Miri is slow, so it gets fewer draws, whose mean varies more.
        let (count, tolerance) = if cfg!(miri) { (2_500, 0.1) } else { (100_000, 0.02) };
        let mean = (0..count).map(|_| prng.exponential()).sum::<f64>() / f64::from(count);
        assert!((mean - 1.0).abs() < tolerance, "{mean}");
    }

    #[test]
    fn normal_has_mean_zero_variance_one_and_both_tails() {
        let mut prng = Prng::new(3);
        let (count, tolerance) = if cfg!(miri) { (2_500, 0.1) } else { (100_000, 0.02) };
        let draws: Vec<_> = (0..count).map(|_| prng.normal()).collect();
        let of_all = |value: fn(&f64) -> f64| draws.iter().map(value).sum::<f64>() / count as f64;
        assert!(of_all(|x| *x).abs() < tolerance, "{}", of_all(|x| *x));
        assert!((of_all(|x| x * x) - 1.0).abs() < tolerance, "{}", of_all(|x| x * x));
        let tails = [of_all(|x| f64::from(*x > 1.0)), of_all(|x| f64::from(*x < -1.0))];
        assert!(tails.iter().all(|share| (share - 0.1587).abs() < tolerance), "{tails:?}");
    }
}
