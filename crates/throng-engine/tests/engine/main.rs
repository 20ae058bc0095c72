//! The engine on virtual time: the callbacks of apps, their order and times, under all network
//! faults.

mod arrivals;
mod closing;
mod deliver;
mod echo;
mod fairness;
mod messages;
mod scripted;
mod sessions;
mod slots;
mod sources;
mod timers;
mod transports;
