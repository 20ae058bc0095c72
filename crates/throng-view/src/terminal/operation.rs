//! The operations of users, as a view shows them.

use throng_report::{Histogram, IntervalWork, LoadInterval};

/// An operation of users whose rate and latency a view draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Message,
    Push,
    Http,
    Broadcast,
    Join,
    Connect,
}

impl Operation {
    /// All operations. The first one that a load has is what the load is about.
    pub(crate) const ALL: [Self; 6] =
        [Self::Message, Self::Push, Self::Http, Self::Broadcast, Self::Join, Self::Connect];

    /// Returns the name of one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Push => "push",
            Self::Http => "request",
            Self::Broadcast => "broadcast",
            Self::Join => "join",
            Self::Connect => "connect",
        }
    }

    /// Returns the name of many.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Message => "messages",
            Self::Push => "pushes",
            Self::Http => "requests",
            Self::Broadcast => "deliveries",
            Self::Join => "joins",
            Self::Connect => "connects",
        }
    }

    /// Returns its latencies in an interval.
    pub(crate) fn latencies(self, load: &LoadInterval) -> &Histogram {
        let latencies = load.latencies();
        match self {
            Self::Message => latencies.message,
            Self::Push => latencies.push,
            Self::Http => latencies.http,
            Self::Broadcast => latencies.broadcast,
            Self::Join => latencies.join,
            Self::Connect => latencies.connect,
        }
    }

    /// Returns how often it was done.
    pub(crate) fn done(self, work: &IntervalWork) -> u64 {
        match self {
            Self::Message => work.messages,
            Self::Push => work.pushes,
            Self::Http => work.http,
            Self::Broadcast => work.deliveries,
            Self::Join => work.joins,
            Self::Connect => work.connects,
        }
    }

    /// Returns how often it should have been done, where the scenario says so.
    pub(crate) fn due(self, work: &IntervalWork) -> Option<u64> {
        match self {
            Self::Message => Some(work.turns_due).filter(|due| *due > 0),
            Self::Connect => Some(work.connects_due),
            Self::Push | Self::Http | Self::Broadcast | Self::Join => None,
        }
    }

    /// Reports whether the load has done it by now.
    pub(crate) fn is_part_of(self, load: &LoadInterval) -> bool {
        let counters = &load.counters;
        match self {
            Self::Message => counters.messages_sent + counters.messages_expected > 0,
            Self::Push => counters.pushes_sent > 0,
            Self::Http => counters.http_started > 0,
            Self::Broadcast => load.probe.intended > 0,
            Self::Join => counters.joins_started > 0,
            Self::Connect => true,
        }
    }
}
