//! The doctor put to the test: walls that are really there, and what it says of each.
//!
//! A *wall* is one thing that stops a run, provoked for real: a queue made small, a limit made low, a program that misbehaves. A run goes
//! against it, and the finding that comes first in its diagnosis must be the wall. All of them in one table are the confusion matrix
//! of the doctor, which is printed, and kept in `docs/confusion-matrix.md`.
//!
//! To add a wall:
//!
//! 1. Write a function `fn name(stage: &mut Stage) -> Provoked` in the file of its group ([`queues`], [`limits`], [`machine_wide`],
//!    [`cpus`], [`programs`], [`network`], [`packets`]). [`Stage::here`] has both ends in one new network namespace, on loopback; [`Stage::linked`] has
//!    one for each end with a link between them. The function sets what makes the wall (`stage.at_server("echo 8 > /proc/sys/...")`,
//!    a prefix such as `taskset`), starts the server (`stage.serve`, or a foreign one of [`foreign`]), and gives back
//!    `stage.run(scenario)`. It takes 4 to 8 seconds. What the machine lacks for it, it says with `Err(reason)`: the wall is skipped.
//! 2. Add a [`Wall`] to `WALLS` of its group: its name, what is done, the id of the finding that must come first.
//! 3. Try it alone: `THRONG_WALLS=name cargo test -p throng-cli --test walls -- --nocapture`. Several names are separated by commas,
//!    and a part of a name is enough. The run files stay in `target/tmp/walls/`, to be looked at with `throng report`.
//! 4. Write the matrix anew: `THRONG_WRITE_MATRIX=1 cargo test -p throng-cli --test walls`.
//!
//! What is set is gone with the namespace. Sysctls that are the machine's own are set by [`Machinewide`](stage::Machinewide), one wall at a time
//! under a lock, and put back by a process of its own that outlives the test however that ends.

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

/// A thing that stops a run.
struct Wall {
    /// Its name, for the matrix and for `THRONG_WALLS`.
    name: &'static str,
    /// What is done to provoke it.
    what: &'static str,
    /// The id of the finding that must come first; none for a run that nothing stops.
    expected: Option<&'static str>,
    /// Whether it is about the CPUs: it is then provoked by itself, and means nothing where other programs have them.
    is_of_cpus: bool,
    /// Where it is provoked.
    stage: fn() -> Result<Stage, String>,
    provoke: fn(&mut Stage) -> Provoked,
}

/// The summary of the run as `throng run --json` writes it, or why this machine cannot have the wall.
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
    // Most of them wait for most of their time.
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
