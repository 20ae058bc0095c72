//! Searches for the rate of a token bucket, with the noise that a measurement has: requests arrive at
//! random, the server is a little faster in one run than in the next, and it saves up tokens while
//! it rests.

use throng_base::Prng;

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

/// Runs of a search: their length, and the rest after each, in seconds.
#[derive(Clone, Copy)]
struct RunTimes {
    run_s: f64,
    rest_s: f64,
}

/// The condition: at most one request in a hundred is refused.
const REFUSED_MOST: f64 = 0.01;

impl TokenBucket {
    /// Returns a server with a full bucket that keeps the tokens of `burst_s` seconds.
    fn new(seed: u64, rate: f64, burst_s: f64) -> Self {
        let burst = (rate * burst_s).max(1.0);
        Self { random: Prng::new(seed), rate, burst, tokens: burst }
    }

    /// Runs for some seconds at `per_s` requests a second, step by step, and rests.
    fn run(&mut self, per_s: f64, times: RunTimes) -> SearchRun {
        // Other work of the machine.
        let speed = 1.0 + 0.01 * (2.0 * self.random.unit() - 1.0);
        let steps = (times.run_s / STEP_S) as u64;
        let (mut asked, mut refused) = (0.0, 0.0);
        for _ in 0..steps {
            self.tokens = (self.tokens + self.rate * speed * STEP_S).min(self.burst);
            let arrived = self.arrivals(per_s * STEP_S);
            let answered = arrived.min(self.tokens.floor());
            self.tokens -= answered;
            asked += arrived;
            refused += arrived - answered;
        }
        self.tokens = (self.tokens + self.rate * times.rest_s).min(self.burst);
        outcome(per_s, refused / f64::max(asked, 1.0) / REFUSED_MOST)
    }

    /// Returns a number of arrivals at random with this mean, as those of a Poisson process.
    fn arrivals(&mut self, mean: f64) -> f64 {
        let (mut left, mut arrived) = (mean, 0.0);
        loop {
            left += (1.0 - self.random.unit()).ln();
            if left < 0.0 {
                return arrived;
            }
            arrived += 1.0;
        }
    }
}

/// The length of a step: the bucket is filled after each.
const STEP_S: f64 = 0.05;

/// Searches for the rates of many buckets. Returns how far each result is from the rate, sorted.
fn errors(burst_s: f64, times: RunTimes) -> Vec<f64> {
    let rules = SearchRules { is_whole: false, ..RULES };
    let mut errors: Vec<f64> = (0..SEARCHES)
        .map(|seed| {
            // Between a quarter and ten times the first value.
            let rate = 25.0 * 40f64.powf(Prng::new(1_000 + seed).unit());
            let mut server = TokenBucket::new(seed, rate, burst_s);
            let (result, search) = search(rules, |per_s| server.run(per_s, times));
            assert!(search.values().len() <= 12, "seed {seed}: {search:?}");
            result.found.unwrap() / rate - 1.0
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// The searches of a test.
const SEARCHES: u64 = 100;

#[test]
fn the_rate_of_a_token_bucket_is_found_within_three_per_cent_in_spite_of_noise() {
    let errors = errors(0.25, RunTimes { run_s: 30.0, rest_s: 3.0 });
    let near = errors.iter().filter(|error| error.abs() <= 0.031).count();
    eprintln!("{near} {errors:?}");
    assert!(near as u64 * 100 >= 95 * SEARCHES, "{near} of {SEARCHES}: {errors:?}");
}

#[test]
fn a_run_that_is_short_beside_the_burst_measures_the_saved_tokens_too() {
    for (burst_s, run_s) in [(1.0, 5.0), (1.0, 10.0)] {
        // The rest fills the bucket: what it holds is spread over the run.
        let errors = errors(burst_s, RunTimes { run_s, rest_s: 3.0 });
        let (median, expected) = (errors[errors.len() / 2], burst_s / run_s);
        let is_near = (median - expected).abs() <= 0.03;
        assert!(is_near, "{burst_s} s of burst, {run_s} s: {median}, not {expected}");
    }
}
