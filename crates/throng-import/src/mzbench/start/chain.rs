//! Starts that no single phase describes: a chain of linear rates.

use throng_base::units::show_count;

use super::{Start, burst, even, round_up};
use crate::mzbench::value::seconds_text;
use crate::phase::hold_for;
use crate::yaml::Yaml;

/// The starts of one pool, or of several together.
pub(in super::super) struct StartCurve {
    /// Each pool's law, and its number of workers.
    pub(in super::super) pools: Vec<(Start, f64)>,
}

/// A part of the chain: users arrive at a rate that changes linearly.
struct Link {
    begin: f64,
    seconds: f64,
    from: f64,
    to: f64,
    users: u64,
}

impl StartCurve {
    fn started_by(&self, t: f64) -> f64 {
        self.pools.iter().map(|(start, size)| start.started_by(t, *size)).sum()
    }

    /// Returns the moments at which the last worker of each pool starts, in order.
    fn ends(&self) -> Vec<f64> {
        let mut ends: Vec<f64> =
            self.pools.iter().map(|(start, size)| end(*start, *size)).collect();
        ends.retain(|end| *end > 0.0);
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        ends
    }

    /// Returns the moments between two of which the rate is linear: `parts` between two ends.
    fn cuts(&self, parts: usize) -> Vec<f64> {
        // The parts are short where the rate is far from linear: at the beginning of a steep
        // start, and at the end of a late one.
        let power = |(start, _): &(Start, f64)| match start {
            Start::Power { exponent, .. } if *exponent < 1.0 => exponent.recip(),
            Start::Power { exponent, .. } if self.pools.len() == 1 => (2.0 / exponent).min(1.0),
            _ => 1.0,
        };
        let steepest = self.pools.iter().map(power).fold(0.0, f64::max);
        let (mut cuts, mut begin) = (vec![0.0], 0.0);
        for end in self.ends() {
            let share = |part: usize| (part as f64 / parts as f64).powf(steepest);
            cuts.extend(
                (1..parts).map(|part| round(begin + (end - begin) * share(part), f64::round)),
            );
            // At the end all must have started.
            cuts.push(round(end, f64::ceil));
            begin = end;
        }
        cuts.dedup();
        cuts
    }
}

/// Returns a moment that is shorter to read.
fn round(seconds: f64, to_whole: fn(f64) -> f64) -> f64 {
    let steps = if seconds >= 0.1 { 1e3 } else { 1e6 };
    to_whole(seconds * steps - 1e-6) / steps
}

/// Returns the moment at which all `size` workers have started.
fn end(start: Start, size: f64) -> f64 {
    match start {
        Start::Exponential { scale, span } => (span * ((size / scale).ln() + 1.0)).max(0.0),
        start => start.moment_of(size),
    }
}

/// Returns the phases, and how much they differ.
pub(in super::super) fn chain(curve: &StartCurve) -> (Vec<Yaml>, String) {
    let ends = curve.ends().len().max(1);
    let mut parts = 4;
    loop {
        let (first, links) = links(curve, &curve.cuts(parts));
        let (error, at) = greatest_error(curve, first, &links);
        let total = curve.pools.iter().map(|(_, size)| size).sum::<f64>();
        if error > (total / 1000.0).max(1.0) && parts * ends < LINKS_MAX {
            parts *= 2;
            continue;
        }
        let mut phases: Vec<Yaml> = (first > 0).then(|| burst(first)).into_iter().collect();
        phases.extend(links.iter().map(|link| match link.users {
            0 => hold_for(seconds_text(link.seconds)),
            users => even(link.seconds, link.from, link.to, users),
        }));
        let difference = format!(
            "{} linear rates stand for the curve; the number of users that have started differs \
             by {} of {}, after {}",
            links.len(),
            if error < 1.0 {
                "less than 1".to_owned()
            } else {
                format!("at most {}", show_count(error.ceil() as u64))
            },
            show_count(total as u64),
            seconds_text(round_up(at)),
        );
        return (phases, difference);
    }
}

/// Returns the users that start at once, and the links between the cuts.
fn links(curve: &StartCurve, cuts: &[f64]) -> (u64, Vec<Link>) {
    let first = curve.started_by(0.0).round();
    let mut before = first;
    let link = |pair: &[f64]| {
        let (begin, end) = (pair[0], pair[1]);
        let seconds = end - begin;
        // The first worker starts at once, by each law.
        let least = if before == 0.0 { 1.0 } else { before };
        let after = curve.started_by(end).round().max(least);
        let users = after - before;
        // The count at the middle decides the slope.
        let middle = curve.started_by(begin + seconds / 2.0) - before;
        let from = ((4.0 * middle - users) / seconds).clamp(0.0, 2.0 * users / seconds);
        before = after;
        let to = 2.0 * users / seconds - from;
        Link { begin, seconds, from, to, users: users as u64 }
    };
    (first as u64, cuts.windows(2).map(link).collect())
}

/// Returns the largest difference of the numbers of users that have started, and its moment.
fn greatest_error(curve: &StartCurve, first: u64, links: &[Link]) -> (f64, f64) {
    let (mut worst, mut before) = ((0.0, 0.0), first as f64);
    for link in links {
        for part in 1..=SAMPLES {
            let passed = link.seconds * f64::from(part) / f64::from(SAMPLES);
            let slope = (link.to - link.from) / link.seconds;
            let count = before + passed * (link.from + slope * passed / 2.0);
            let error = (count - curve.started_by(link.begin + passed)).abs();
            if error > worst.0 {
                worst = (error, link.begin + passed);
            }
        }
        before += link.users as f64;
    }
    worst
}

/// Links of a chain.
const LINKS_MAX: usize = 32;

/// Moments of a link at which the count is compared.
const SAMPLES: u32 = 16;
