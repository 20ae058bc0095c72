//! A test of the doctor: real walls, and the diagnosis of each.
//!
//! A *wall* is one thing that stops a run, provoked for real: a small queue, a low limit, a faulty
//! program. A run meets it, and the first finding of its diagnosis must be the wall. All walls in
//! one table are the confusion matrix of the doctor, which is printed, and kept in
//! `docs/confusion-matrix.md`.
//!
//! To add a wall:
//!
//! 1. Write a function `fn name(stage: &mut Stage) -> Provoked` in the file of its group
//!    ([`queues`], [`limits`], [`machine_wide`], [`cpus`], [`programs`], [`network`], [`packets`]).
//!    [`Stage::here`] has server and generator in one new network namespace, on loopback;
//!    [`Stage::linked`] has a namespace for each, with a link between them. The function sets the
//!    limit (`stage.at_server("echo 8 > /proc/sys/...")`, or a prefix such as `taskset`), starts
//!    the server (`stage.serve`, or one of [`foreign`]), and returns `stage.run(scenario)`. A wall
//!    takes 4 to 8 seconds. If this machine cannot have the wall, it returns `Err(reason)`, and the
//!    wall is skipped.
//! 2. Add a [`Wall`] to `WALLS` of its group: its name, its description, and the id of the finding
//!    that must come first.
//! 3. Run it alone: `THRONG_WALLS=name cargo test -p throng-cli --test walls -- --nocapture`.
//!    Separate several names by commas; a part of a name is enough. The run files stay in
//!    `target/tmp/walls/`, for `throng report`.
//! 4. Write the new matrix: `THRONG_WRITE_MATRIX=1 cargo test -p throng-cli --test walls`.
//!
//! The settings disappear with the namespace. The machine's own sysctls are set by
//! [`Machinewide`](stage::Machinewide), one wall at a time under a lock. A separate process
//! restores them, and it outlives the test however that ends.

mod cgroup;
mod cpus;
mod flood;
mod foreign;
mod limits;
mod machine;
mod machine_wide;
mod matrix;
mod memory;
mod network;
mod packets;
mod programs;
mod queues;
mod stage;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use matrix::{Matrix, Row};
use stage::Stage;

/// A cause that stops a run.
struct Wall {
    /// The name, for the matrix and for `THRONG_WALLS`.
    name: &'static str,
    /// The description of the way to provoke it.
    what: &'static str,
    /// The id of the first finding; `None` for a run that nothing stops.
    expected: Option<&'static str>,
    /// Marks a wall of the CPUs. It runs alone, and its result is void if other programs use the
    /// CPUs.
    is_of_cpus: bool,
    /// The constructor of its stage.
    stage: fn() -> Result<Stage, String>,
    provoke: fn(&mut Stage) -> Provoked,
}

/// The summary of the run from `throng run --json`, or the reason why this machine cannot have the
/// wall.
type Provoked = Result<Value, String>;

fn walls() -> impl Iterator<Item = &'static Wall> {
    [
        queues::WALLS,
        limits::WALLS,
        machine_wide::WALLS,
        network::WALLS,
        packets::WALLS,
        cpus::WALLS,
        memory::WALLS,
        programs::WALLS,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn each_wall_is_named_first_and_a_clean_run_names_none() {
    let wanted = std::env::var("THRONG_WALLS").unwrap_or_default();
    let is_wanted = |wall: &&Wall| {
        wanted.is_empty() || wanted.split(',').any(|part| wall.name.contains(part.trim()))
    };
    let (of_cpus, others): (Vec<_>, Vec<_>) =
        walls().filter(is_wanted).partition(|wall| wall.is_of_cpus);
    let matrix = Mutex::new(Matrix::default());
    // Most walls wait for most of their time, so two run at the same time.
    for (walls, at_a_time) in [(others, 2), (of_cpus, 1)] {
        let queue = Mutex::new(VecDeque::from(walls));
        let next = || queue.lock().unwrap().pop_front();
        let provoke_all = || {
            while let Some(wall) = next() {
                let row = Row::of(wall);
                println!("{row}");
                matrix.lock().unwrap().add(row);
            }
        };
        thread::scope(|scope| (0..at_a_time).for_each(|_| _ = scope.spawn(provoke_all)));
    }
    let matrix = matrix.into_inner().unwrap().in_order_of(walls());
    println!("\n{matrix}");
    if wanted.is_empty() && std::env::var_os("THRONG_WRITE_MATRIX").is_some() {
        matrix.write();
    }
    matrix.check();
}

#[test]
fn the_document_lists_the_walls_that_there_are() {
    matrix::check_document(walls());
}
