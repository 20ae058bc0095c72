//! Many runs of one test, each with a seed of its own, and the seed of the one that fails.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::Sim;

/// Runs `test` in `runs` worlds, of the seeds 0, 1, 2, ….
///
/// `THRONG_SIM_RUNS=5000` in the environment runs so many instead; `THRONG_SIM_SEED=17` runs that one alone.
///
/// # Panics
/// As the first run did that failed, after its seed and the last things that happened in its world were printed.
pub fn check(runs: u64, test: impl Fn(&mut Sim)) {
    match number("THRONG_SIM_SEED") {
        Some(seed) => run(seed, &test),
        None => (0..number("THRONG_SIM_RUNS").unwrap_or(runs)).for_each(|seed| run(seed, &test)),
    }
}

fn run(seed: u64, test: &impl Fn(&mut Sim)) {
    let mut sim = Sim::new(seed);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(&mut sim))) {
        eprintln!("{}", sim.trace());
        eprintln!("at {:?}: failed with THRONG_SIM_SEED={seed}", sim.now());
        resume_unwind(panic);
    }
}

/// A number from the environment; what is no number is the same as nothing.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
