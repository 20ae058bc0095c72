//! A choice between parts of a program.

use throng_base::Prng;

/// Beginnings of the parts, each with its weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Sum of the weights up to and including the part, and the index of its first op.
    parts: Vec<(u64, u32)>,
}

impl Choice {
    /// Adds a part.
    pub(super) fn push(&mut self, weight: u32, begin: u32) {
        self.parts.push((self.total() + u64::from(weight), begin));
    }

    /// Returns the index of the first op of a part, at random by the weights.
    pub(crate) fn choose(&self, prng: &mut Prng) -> u32 {
        let drawn = prng.below(self.total());
        let part = self.parts.partition_point(|(end, _)| *end <= drawn);
        self.parts[part].1
    }

    /// Returns the indexes of the first ops.
    pub(super) fn begins(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().map(|(_, begin)| *begin)
    }

    fn total(&self) -> u64 {
        self.parts.last().map_or(0, |(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_share() {
        let mut choice = Choice::default();
        for (weight, begin) in [(1, 10), (3, 20), (6, 30)] {
            choice.push(weight, begin);
        }
        let mut prng = Prng::new(1);
        let mut counts = [0_i32; 3];
        for _ in 0..100_000 {
            counts[choice.choose(&mut prng) as usize / 10 - 1] += 1;
        }
        for (count, expected) in counts.into_iter().zip([10_000, 30_000, 60_000]) {
            assert!((count - expected).abs() < 1_000, "{counts:?}");
        }
    }
}
