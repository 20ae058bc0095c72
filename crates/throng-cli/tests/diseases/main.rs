//! A test of the doctor: real diseases of applications, and the diagnosis of each.
//!
//! A *disease* is a fault of an application, provoked with a foreign server: Python, or Node with
//! `ws`. A run of the real binary meets it, and the first finding of its diagnosis must be the
//! disease. All diseases in one table are the second confusion matrix of the doctor, which is
//! printed, and kept in `docs/confusion-matrix.md`.
//!
//! They are a target of their own beside `walls`, because a wall may take the whole machine (its
//! sysctls, its CPUs), and most diseases need hardly any of it: many run at once. What both share
//! is in [`causes`].
//!
//! To add a disease:
//!
//! 1. Give a server of `servers/` the fault, or add a server. It writes its port as the first line
//!    of its output, and ends with its standard input.
//! 2. Add a [`Cause`] to `DISEASES` of its group ([`series`], [`refusals`], [`requests`],
//!    [`places`], [`processes`], [`users`], [`tls`]): its name, its description, the id of the
//!    finding that must come first, and words that it must say. A run takes 6 to 8 seconds.
//! 3. Run it alone: `make test ONLY=name_of_it`; a part of the name is enough. The run files stay
//!    in `target/tmp/diseases/`, for `throng report`.
//! 4. Write the new matrix: `THRONG_WRITE_MATRIX=1 make test ONLY=diseases`.

#[path = "../causes/mod.rs"]
#[allow(dead_code, reason = "walls use the rest of it")]
mod causes;
mod certificates;
mod places;
mod processes;
mod refusals;
mod requests;
mod series;
mod servers;
mod tls;
mod users;

use causes::{Cause, Kind, Provoked, machine, stage};

/// The diseases: faults of applications.
static DISEASES: Kind = Kind {
    singular: "disease",
    plural: "diseases",
    mark: "the diseases",
    // They wait for nearly all of their time.
    at_a_time: 5,
    groups: &[
        series::DISEASES,
        refusals::DISEASES,
        requests::DISEASES,
        places::DISEASES,
        processes::DISEASES,
        users::DISEASES,
        tls::DISEASES,
    ],
};

fn main() -> std::process::ExitCode {
    DISEASES.main()
}
