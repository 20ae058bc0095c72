//! Runs of one test with many seeds, and the report of the seed that fails.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::{Sim, ToyTransport};

/// Runs `test` in `runs` worlds, with the seeds 0, 1, 2, ….
///
/// `THRONG_SIM_RUNS=5000` in the environment sets the number of runs; `THRONG_SIM_SEED=17` runs
/// that seed alone.
///
/// # Panics
/// With the panic of the first run that fails. Before, it prints the run's seed and its last notes.
pub fn check(runs: u64, test: impl Fn(&mut Sim)) {
    match number("THRONG_SIM_SEED") {
        Some(seed) => run(seed, &test),
        None => (0..number("THRONG_SIM_RUNS").unwrap_or(runs)).for_each(|seed| run(seed, &test)),
    }
}

/// Runs `test` as [`check`] does, over plain connections and then, with half of the seeds, over a
/// [`ToyTransport`].
pub fn check_over_all(runs: u64, test: impl Fn(&mut Sim)) {
    check(runs, &test);
    check(runs.div_ceil(2), |sim| {
        sim.set_transport(ToyTransport::factory());
        test(sim);
    });
}

fn run(seed: u64, test: &impl Fn(&mut Sim)) {
    let mut sim = Sim::new(seed);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(&mut sim))) {
        eprintln!("{}", sim.trace());
        let over = if sim.has_transport() { " over a transport" } else { "" };
        eprintln!("at {:?}: failed{over} with THRONG_SIM_SEED={seed}", sim.now());
        resume_unwind(panic);
    }
}

/// Returns a number from the environment; `None` if the variable is not set, or not a number.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
