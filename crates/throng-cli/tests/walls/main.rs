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
//! 2. Add a [`Cause`] to `WALLS` of its group: its name, its description, and the id of the finding
//!    that must come first.
//! 3. Run it alone: `make test ONLY=name_of_it`; a part of the name is enough. The run files stay
//!    in `target/tmp/walls/`, for `throng report`.
//! 4. Write the new matrix: `THRONG_WRITE_MATRIX=1 make test ONLY=walls`.
//!
//! The settings disappear with the namespace. The machine's own sysctls are set by
//! [`Machinewide`](causes::stage::Machinewide), one wall at a time under a lock. A separate process
//! restores them, and it outlives the test however that ends.

#[path = "../causes/mod.rs"]
#[allow(dead_code, reason = "diseases use the rest of it")]
mod causes;
mod cgroup;
mod cpus;
mod flood;
mod foreign;
mod limits;
mod machine_wide;
mod memory;
mod network;
mod packets;
mod programs;
mod queues;

use causes::{Cause, Kind, Provoked, machine, stage};

/// The walls: what stops a run in the kernel, on the machine, or in a program.
static WALLS: Kind = Kind {
    singular: "wall",
    plural: "walls",
    mark: "the matrix",
    // Most walls wait for most of their time.
    at_a_time: 2,
    groups: &[
        queues::WALLS,
        limits::WALLS,
        machine_wide::WALLS,
        network::WALLS,
        packets::WALLS,
        cpus::WALLS,
        memory::WALLS,
        programs::WALLS,
    ],
};

fn main() -> std::process::ExitCode {
    WALLS.main()
}
