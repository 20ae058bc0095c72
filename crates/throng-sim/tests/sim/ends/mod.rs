//! Outcomes of everything that users begin when the server stalls and the run ends: the real
//! generator against servers that answer at once until they are frozen, on virtual time.

mod done;
mod programs;
mod server;
mod snapshot;
mod stalls;
mod tls;
mod world;
