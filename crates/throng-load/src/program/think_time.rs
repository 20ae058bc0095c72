//! Think times that are drawn from a law with a long tail.

use std::time::Duration;

use throng_base::Prng;

/// Law of a think time, and its cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThinkTime {
    /// The law that each think time is drawn from.
    pub law: ThinkLaw,
    /// Longest think time: a longer one that is drawn becomes this one.
    pub most: Option<Duration>,
}

/// Law of a think time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThinkLaw {
    /// Exponential, as the gaps between independent events.
    Exponential {
        /// Mean of the think times.
        mean: Duration,
    },
    /// Log-normal: most people are quick, and some take long.
    LogNormal {
        /// Think time that half of the draws do not exceed.
        median: Duration,
        /// Think time that 95 % of the draws do not exceed; more than the median.
        p95: Duration,
    },
}

impl ThinkTime {
    /// Draws a think time.
    pub fn draw(&self, prng: &mut Prng) -> Duration {
        let drawn = match self.law {
            ThinkLaw::Exponential { mean } => mean.as_secs_f64() * prng.exponential(),
            ThinkLaw::LogNormal { median, p95 } => {
                median.as_secs_f64() * (sigma(median, p95) * prng.normal()).exp()
            }
        };
        // The cast saturates.
        let drawn = Duration::from_nanos((drawn * 1e9) as u64);
        self.most.map_or(drawn, |most| drawn.min(most))
    }

    /// Returns the mean of the law, at most the cap.
    pub fn mean(&self) -> Duration {
        let mean = match self.law {
            ThinkLaw::Exponential { mean } => mean,
            ThinkLaw::LogNormal { median, p95 } => {
                let factor = (sigma(median, p95).powi(2) / 2.0).exp();
                Duration::from_nanos((median.as_secs_f64() * factor * 1e9) as u64)
            }
        };
        self.most.map_or(mean, |most| mean.min(most))
    }
}

/// Returns the standard deviation of the logarithm.
fn sigma(median: Duration, p95: Duration) -> f64 {
    (p95.as_secs_f64() / median.as_secs_f64()).ln() / NORMAL_P95
}

/// The value that 95 % of normally distributed numbers with mean 0 and variance 1 do not exceed.
const NORMAL_P95: f64 = 1.644_853_626_951_472;

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(law: ThinkLaw, most: Option<Duration>) -> Vec<f64> {
        let mut prng = Prng::new(7);
        let think = ThinkTime { law, most };
        let mut draws: Vec<_> = (0..200_000).map(|_| think.draw(&mut prng).as_secs_f64()).collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    fn mean(draws: &[f64]) -> f64 {
        draws.iter().sum::<f64>() / draws.len() as f64
    }

    #[test]
    fn exponential_think_times_have_their_mean_and_their_tail() {
        let law = ThinkLaw::Exponential { mean: Duration::from_secs(2) };
        let draws = draws(law, None);
        assert!((mean(&draws) - 2.0).abs() < 0.02, "{}", mean(&draws));
        let p99 = draws[198_000];
        assert!((p99 / (2.0 * 100f64.ln()) - 1.0).abs() < 0.02, "{p99}");
        assert_eq!(ThinkTime { law, most: None }.mean(), Duration::from_secs(2));
    }

    #[test]
    fn log_normal_think_times_have_their_median_their_p95_and_their_mean() {
        let (median, p95) = (Duration::from_secs(2), Duration::from_secs(10));
        let law = ThinkLaw::LogNormal { median, p95 };
        let draws = draws(law, None);
        assert!((draws[100_000] - 2.0).abs() < 0.03, "{}", draws[100_000]);
        assert!((draws[190_000] - 10.0).abs() < 0.2, "{}", draws[190_000]);
        let expected = ThinkTime { law, most: None }.mean().as_secs_f64();
        assert!((mean(&draws) / expected - 1.0).abs() < 0.02, "{} {expected}", mean(&draws));
    }

    #[test]
    fn a_cap_shortens_the_tail_and_nothing_else() {
        let law = ThinkLaw::Exponential { mean: Duration::from_secs(2) };
        let (free, capped) = (draws(law, None), draws(law, Some(Duration::from_secs(3))));
        let shortened: Vec<_> = free.iter().map(|draw| draw.min(3.0)).collect();
        assert_eq!(shortened, capped);
        assert!(*free.last().unwrap() > 20.0, "the tail is long without a cap");
    }
}
