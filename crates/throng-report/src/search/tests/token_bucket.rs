//! Searches for the rate of a token bucket, with the noise that a measurement has: requests arrive
//! at random, the server is a little faster in one run than in the next, and it saves up tokens
//! while it rests.
//!
//! The buckets hold more than a hundred tokens. One that holds a few refuses requests far below its
//! rate, as they arrive at random.

use super::*;

/// A server that answers a request for which it has a token, and refuses the others.
struct TokenBucket {
    random: Prng,
    /// Tokens a second.
    rate: f64,
    /// The most tokens that it keeps.
    burst: f64,
    tokens: f64,
}

/// The condition: at most one request in a hundred is refused.
const REFUSED_MOST: f64 = 0.01;
/// Seconds that a run takes, and that the server rests after it.
const RUN_S: f64 = 30.0;
const REST_S: f64 = 3.0;
/// Seconds in which an empty bucket is full again.
const BURST_S: f64 = 0.25;
/// How much faster or slower the server can be in a run, as a share.
const NOISE: f64 = 0.01;

impl TokenBucket {
    /// Returns a server with a full bucket.
    fn new(seed: u64, rate: f64) -> Self {
        let burst = rate * BURST_S;
        Self { random: Prng::new(seed), rate, burst, tokens: burst }
    }

    /// Returns the share of the requests that it refuses in some seconds of `per_s`.
    fn refused(&mut self, per_s: f64, seconds: f64) -> f64 {
        let speed = 1.0 + NOISE * (2.0 * self.random.unit() - 1.0);
        let (mut now, mut asked, mut refused) = (0.0, 0.0, 0.0);
        while now < seconds {
            // The time between two arrivals of a Poisson process.
            let gap = -(1.0 - self.random.unit()).ln() / per_s;
            now += gap;
            self.tokens = (self.tokens + self.rate * speed * gap).min(self.burst);
            asked += 1.0;
            if self.tokens >= 1.0 {
                self.tokens -= 1.0;
            } else {
                refused += 1.0;
            }
        }
        refused / asked
    }

    fn run(&mut self, per_s: f64) -> SearchRun {
        let refused = self.refused(per_s, RUN_S);
        self.tokens = (self.tokens + self.rate * REST_S).min(self.burst);
        outcome(per_s, refused / REFUSED_MOST)
    }
}

#[test]
fn the_rate_of_a_token_bucket_is_found_in_spite_of_noise() {
    let rules = SearchRules { first: 1000.0, ..RULES };
    for seed in 0..60 {
        // Between half and four times the first value.
        let rate = 500.0 * 8f64.powf(Prng::new(1_000 + seed).unit());
        let mut server = TokenBucket::new(seed, rate);
        let mut runs = 0;
        let (result, values) = run(rules, |per_s| {
            runs += 1;
            server.run(per_s)
        });
        let error = result.found.unwrap() / rate - 1.0;
        assert!(error.abs() <= 0.03, "seed {seed}: {error:.3} from {rate}, {result:?}");
        assert!(values <= 12, "seed {seed}: {values} values");
        assert!(runs <= 20, "seed {seed}: {runs} runs");
    }
}
