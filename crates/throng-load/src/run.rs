//! A run of the generator: its plan, start, control and measurements.

mod client_keys;
mod collect;
mod driver;
mod first_errors;
mod plan;
mod probes;
mod running;
mod setup;
mod shortages;
mod solo;
mod tls;
mod trial;

pub use collect::Collector;
pub use driver::LoadDriver;
pub use plan::{CommonStart, LoadError, LoadOptions, LoadPlan};
pub use running::RunningLoad;
pub use setup::{LastLines, SetupError, SetupWatch, set_up, tear_down};
pub use solo::{SoloEnd, SoloOutcome, SoloRun};
pub use trial::Trial;
