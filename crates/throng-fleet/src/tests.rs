//! The protocol on virtual time: agents with clocks of their own and a coordinator that records,
//! over a bus that delays, loses, repeats and reorders.
//!
//! Whatever happens, the run file must add up: [`World::check_sums`].

mod faults;
mod hostile;
mod names;
mod random;
mod recorder;
mod shelf;
mod site;
mod world;

use recorder::Recorder;
use site::Site;
use world::World;

fn name(text: &str) -> throng_bus::Name {
    throng_bus::Name::new(text).expect("a name")
}
