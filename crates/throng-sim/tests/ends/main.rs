//! What becomes of everything that users begin when the server stands still and the run ends: the
//! real generator against servers that answer at once until they are frozen, on virtual time.

mod programs;
mod server;
mod snapshot;
mod stalls;
mod world;
