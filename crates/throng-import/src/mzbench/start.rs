//! `worker_start`: when the workers of a pool start, and the phases that start users so.
//!
//! Worker `i` starts at [`Start::moment_of`]. Phases of arrivals start user `k` where the integral
//! of their rate is `k`. A linear rate is exact for a constant rate and for `pow` with an exponent
//! of 2, and an exponential one for `exp`. All else is a chain of linear rates, each through the
//! true count at its beginning, middle and end.

mod chain;

use throng_base::units::show_count;

use super::value::{RATE_MAX, TIME_MAX_S, rate_text, seconds_text};
use crate::phase::{Arrivals, hold_for};
use crate::yaml::Yaml;
pub(super) use chain::{StartCurve, chain};

/// The law by which workers start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Start {
    AtOnce,
    /// Worker `i` after `i / rate`.
    Linear {
        rate: f64,
    },
    /// The same at random.
    Poisson {
        rate: f64,
    },
    /// `scale * (t / span)^exponent` workers by `t`.
    Power {
        exponent: f64,
        scale: f64,
        span: f64,
    },
    /// `scale * e^(t / span - 1)` workers by `t`.
    Exponential {
        scale: f64,
        span: f64,
    },
}

impl Start {
    /// Returns the second at which worker `i` starts, as MZBench computes it.
    pub(super) fn moment_of(self, i: f64) -> f64 {
        match self {
            Self::AtOnce => 0.0,
            Self::Linear { rate } | Self::Poisson { rate } => i / rate,
            Self::Power { exponent, scale, span } => span * (i / scale).powf(exponent.recip()),
            Self::Exponential { scale, span } if i > 0.0 => {
                (span * (((i + 1.0) / scale).ln() + 1.0)).max(0.0)
            }
            Self::Exponential { .. } => 0.0,
        }
    }

    /// Returns how many of `size` workers have started by `t`; between two starts, a fraction.
    pub(super) fn started_by(self, t: f64, size: f64) -> f64 {
        let started = match self {
            Self::AtOnce => size,
            Self::Linear { rate } | Self::Poisson { rate } => t * rate,
            Self::Power { exponent, scale, span } => scale * (t / span).powf(exponent),
            Self::Exponential { scale, span } => (scale * (t / span - 1.0).exp()).max(1.0),
        };
        started.min(size)
    }

    /// Returns the same law for `factor` times as many workers in the same time.
    pub(super) fn times(self, factor: f64) -> Self {
        match self {
            Self::AtOnce => self,
            Self::Linear { rate } => Self::Linear { rate: rate * factor },
            Self::Poisson { rate } => Self::Poisson { rate: rate * factor },
            Self::Power { exponent, scale, span } => {
                Self::Power { exponent, scale: scale * factor, span }
            }
            Self::Exponential { scale, span } => Self::Exponential { scale: scale * factor, span },
        }
    }

    /// Reports whether `size` workers by this law and `others` by another one start in the same
    /// proportion at each moment.
    pub(super) fn is_like(self, size: f64, other: Self, others: f64) -> bool {
        let scaled = self.times(others / size);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
        match (scaled, other) {
            (Self::AtOnce, Self::AtOnce) => true,
            (Self::Linear { rate: a }, Self::Linear { rate: b })
            | (Self::Poisson { rate: a }, Self::Poisson { rate: b }) => near(a, b),
            (Self::Power { exponent, .. }, Self::Power { exponent: same, .. })
                if exponent == same =>
            {
                near(scaled.moment_of(others), other.moment_of(others))
            }
            (Self::Exponential { scale: a, span }, Self::Exponential { scale: b, span: same }) => {
                near(a, b) && near(span, same)
            }
            _ => false,
        }
    }

    /// Returns the phases that start `size` users so, and how they differ from MZBench, if they do.
    pub(super) fn phases(self, size: u64) -> (Vec<Yaml>, Option<String>) {
        let users = size as f64;
        match self {
            Self::AtOnce => (vec![burst(size)], (size > 1).then(|| AT_ONCE.to_owned())),
            Self::Linear { rate } => (vec![even(users / rate, rate, rate, size)], None),
            Self::Poisson { rate } => {
                // So long that all users arrive, but for a chance of one in three million.
                let seconds = (users + 5.0 * users.sqrt()) / rate;
                let constant = Yaml::plain(rate_text(rate));
                let phase = arrivals(constant, round_up(seconds), size, false);
                (vec![phase], Some(POISSON.to_owned()))
            }
            Self::Power { exponent: 2.0, scale, span } => {
                let seconds = round_up(self.moment_of(users));
                let to = 2.0 * scale * seconds / (span * span);
                (vec![even(seconds, 0.0, to, size)], None)
            }
            Self::Power { exponent: 1.0, scale, span } => {
                let rate = scale / span;
                (vec![even(users / rate, rate, rate, size)], None)
            }
            Self::Exponential { span, .. } => (self.exponential(size, span), None),
            Self::Power { .. } => {
                let curve = StartCurve { pools: vec![(self, users)] };
                let (phases, difference) = chain(&curve);
                (phases, Some(difference))
            }
        }
    }

    /// Returns the phases of `exp`: the workers that start at once, and an exponential rate.
    fn exponential(self, size: u64, span: f64) -> Vec<Yaml> {
        let first = (self.started_by(0.0, size as f64) as u64).max(1);
        let mut phases = vec![burst(first)];
        if first == size {
            return phases;
        }
        let begin = self.moment_of(first as f64) - BURST_S;
        if begin >= 1e-6 {
            phases.push(hold_for(seconds_text(begin)));
        }
        // After t seconds, (first + 1) e^(t / span) - 1 workers have started.
        let (from, last) = ((first + 1) as f64, (size + 1) as f64);
        let seconds = (span * (last / from).ln() * 1e6).ceil() / 1e6;
        let rate = Yaml::map([
            ("from", Yaml::plain(rate_up(from / span))),
            ("to", Yaml::plain(rate_up(last / span))),
            ("curve", Yaml::plain("exponential")),
        ]);
        phases.push(arrivals(rate, seconds, size - first, true));
        phases
    }
}

/// Returns a phase that starts users at once: within a millisecond.
pub(super) fn burst(users: u64) -> Yaml {
    let rate = (users as f64 / BURST_S).min(RATE_MAX);
    arrivals(Yaml::plain(rate_text(rate)), users as f64 / rate, users, true)
}

/// Returns a phase of `users` at equal distances, at a rate that is constant or grows linearly.
pub(super) fn even(seconds: f64, from: f64, to: f64, users: u64) -> Yaml {
    let rate = if from == to {
        let exact = rate_text(from);
        Yaml::plain(if exact.len() <= RATE_CHARS_MAX { exact } else { rate_up(from) })
    } else {
        let ends = [("from", from), ("to", to)];
        Yaml::map(ends.map(|(key, rate)| (key, Yaml::plain(rate_up(rate)))))
    };
    arrivals(rate, seconds, users, true)
}

/// Returns a phase of arrivals.
fn arrivals(rate: Yaml, seconds: f64, users: u64, is_even: bool) -> Yaml {
    let length = seconds_text(seconds.clamp(1e-9, TIME_MAX_S));
    Arrivals { rate, length, most: Some(show_count(users.max(1))), is_even }.write()
}

/// Returns a time that is not shorter, and shorter to read.
fn round_up(seconds: f64) -> f64 {
    let step = match seconds {
        100.0.. => 1.0,
        1.0.. => 0.01,
        _ => 1e-6,
    };
    // A hair more is none.
    let rounded = (seconds / step - 1e-9).ceil() * step;
    (rounded * 1e9).round() / 1e9
}

/// Returns a rate in six digits, not less than it is: `most` limits the number of users.
fn rate_up(rate: f64) -> String {
    if rate <= 0.0 {
        return "0/s".to_owned();
    }
    let digits = (5 - rate.log10().floor() as i32).clamp(0, 9);
    let step = 10f64.powi(digits);
    let rounded = (rate * step - 1e-9).ceil() / step;
    format!("{}/s", rounded.min(RATE_MAX))
}

/// Longest rate that is written exactly.
const RATE_CHARS_MAX: usize = 10;

/// Time in which the users of a burst start.
const BURST_S: f64 = 0.001;

const AT_ONCE: &str =
    "MZBench starts all workers as fast as it can; the scenario starts them within 1ms";

const POISSON: &str = "MZBench sleeps at random between two starts, and its own delays add to \
    that; the scenario keeps the rate, and its last user may arrive a little later";
