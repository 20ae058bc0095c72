//! The engine on virtual time: what apps are told, and when, whatever the network does.

mod arrivals;
mod closing;
mod deliver;
mod echo;
mod fairness;
mod mail;
mod scripted;
mod sessions;
mod slots;
mod sources;
mod timers;
