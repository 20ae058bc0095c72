//! Counters and gauges of a server, a generator and its probes: one table for each.
//!
//! Counters only grow, from the start of the process. Gauges are as of the moment of the snapshot.
//! Both add up over cores ([`Merge`]).

use serde::{Deserialize, Serialize};

use crate::metric::MetricKind;

/// A value that can be summed over cores.
pub trait Merge {
    /// Adds the counts of `other`.
    fn merge(&mut self, other: &Self);
}

/// One field of a table of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterField {
    /// The name in the run file.
    pub name: &'static str,
    /// The way in which it changes.
    pub kind: MetricKind,
    /// The meaning, as in the documentation of the field.
    pub doc: &'static str,
    /// The value.
    pub value: u64,
}

/// Declares a struct of `u64` fields that can be merged. A field is a counter, which only grows,
/// unless it says otherwise: a `gauge` is as of one moment and adds up over cores; a `max` is the
/// largest of the interval and merges as that.
macro_rules! counters {
    ($(#[$meta:meta])* $name:ident {
        $( $(#[doc = $doc:literal])+ $field:ident $(: $kind:ident)? ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name { $( $(#[doc = $doc])+ pub $field: u64, )* }

        impl $name {
            /// Returns the growth since `earlier`; gauges and maxima are as of now.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $( $field: counters!(@since self.$field, earlier.$field $(, $kind)?), )* }
            }

            /// Returns the counters alone; gauges and maxima are zero.
            #[must_use]
            pub fn without_gauges(&self) -> Self {
                Self { $( $field: counters!(@counter self.$field $(, $kind)?), )* }
            }

            /// Returns all fields, in their order.
            pub fn fields(&self) -> impl Iterator<Item = CounterField> + use<> {
                [$(CounterField {
                    name: stringify!($field),
                    kind: counters!(@kind $($kind)?),
                    doc: concat!($($doc),+),
                    value: self.$field,
                }),*]
                .into_iter()
            }
        }

        impl Merge for $name {
            fn merge(&mut self, other: &Self) {
                $( counters!(@merge self.$field, other.$field $(, $kind)?); )*
            }
        }
    };
    (@kind) => { MetricKind::Counter };
    (@kind gauge) => { MetricKind::Gauge };
    (@kind max) => { MetricKind::Maximum };
    (@since $now:expr, $earlier:expr) => { $now.saturating_sub($earlier) };
    (@since $now:expr, $earlier:expr, gauge) => { $now };
    (@since $now:expr, $earlier:expr, max) => { $now };
    (@counter $now:expr) => { $now };
    (@counter $now:expr, $kind:ident) => { 0 };
    (@merge $one:expr, $other:expr) => { $one = $one.saturating_add($other) };
    (@merge $one:expr, $other:expr, gauge) => { $one = $one.saturating_add($other) };
    (@merge $one:expr, $other:expr, max) => { $one = $one.max($other) };
}

// They use the macro, so they stand after it.
mod load;
mod server;

pub use load::LoadCounters;
pub use server::ServerCounters;

counters! {
    /// Counters of every core, whichever app runs on it.
    CoreCounters {
        /// Turns of the event loop.
        turns,
        /// Events that the driver reported.
        events,
        /// Bytes received from the kernel.
        bytes_received,
        /// Bytes that the kernel accepted for sending.
        bytes_sent,
        /// Sends that the kernel accepted only in part, or not at all.
        sends_blocked,
        /// Times that a connection used up its share of a turn, so that the rest of its input
        /// waited for the next.
        reads_deferred,
        /// Connections closed because their unsent bytes exceeded `pending_bytes_max`.
        pending_overflows,
        /// Callbacks that panicked; each closed only its own connection.
        panics,
        /// Messages from other cores.
        mail_received,
        /// Messages that did not fit into another core's mailbox.
        mail_dropped,
        /// Gauge: connections and users in the table.
        slots: gauge,
        /// Gauge: bytes that wait for slow peers.
        pending_bytes: gauge,
        /// The longest turn of the interval, in microseconds.
        turn_us_most: max,
    }
}

counters! {
    /// Counters of a generator's probes. At the end, the `expected` deliveries of every probe are
    /// the sum of `delivered`, `left` and `missing`.
    ProbeCounters {
        /// Probes that were due.
        intended,
        /// Probes without a subscriber: no user was connected or joined.
        skipped,
        /// Probes sent.
        sent,
        /// Deliveries that must arrive: one for every user that was subscribed when a probe was
        /// about to be sent.
        expected,
        /// Expected deliveries that arrived in time.
        delivered,
        /// Expected deliveries that became void: the user left the channel or lost its connection
        /// first.
        left,
        /// Expected deliveries that did not arrive in time.
        missing,
        /// Missing deliveries that arrived later.
        late,
        /// Deliveries to users that had already received this probe.
        duplicates,
        /// Deliveries to users that had already received a later probe.
        out_of_order,
        /// Deliveries to users that were not expected to receive the probe: they joined after that
        /// moment, or were leaving.
        unexpected,
    }
}

impl ProbeCounters {
    /// Returns the number of deliveries that may still arrive.
    pub fn outstanding(&self) -> u64 {
        self.expected.saturating_sub(self.delivered + self.left + self.missing)
    }
}

counters! {
    /// Counters of a generator for one class of users; the totals are in [`LoadCounters`].
    ClassCounters {
        /// Iterations that were started.
        users_started,
        /// Iterations that ended without an error.
        users_finished,
        /// Iterations that ended with an error.
        users_failed,
        /// Iterations that were cut off, as in [`LoadCounters`].
        users_cut,
        /// Connects that were established.
        connects_ok,
        /// `expect` steps that received what they expected.
        messages_answered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_name_kind_meaning_and_value() {
        let counters = ServerCounters { open: 7, ..Default::default() };
        let open = counters.fields().find(|field| field.name == "open").unwrap();
        assert_eq!((open.kind, open.value), (MetricKind::Gauge, 7));
        assert_eq!(open.doc.trim(), "Gauge: connections open now.");
        let kind = |name| counters.fields().find(|field| field.name == name).unwrap().kind;
        assert_eq!(kind("registry_mailbox_most"), MetricKind::Maximum);
        assert_eq!(kind("accepted"), MetricKind::Counter);
    }

    #[test]
    fn merging_cores_adds_counters_and_keeps_the_largest_maximum() {
        let mut one = CoreCounters { turns: 3, slots: 5, turn_us_most: 80, ..Default::default() };
        one.merge(&CoreCounters { turns: 4, slots: 6, turn_us_most: 70, ..Default::default() });
        assert_eq!((one.turns, one.slots, one.turn_us_most), (7, 11, 80));
    }

    #[test]
    fn since_subtracts_counters_and_leaves_gauges() {
        let earlier = ServerCounters { accepted: 10, open: 9, ..Default::default() };
        let now = ServerCounters { accepted: 25, open: 4, ..Default::default() };
        let since = now.since(&earlier);
        assert_eq!((since.accepted, since.open), (15, 4));
        let earlier = LoadCounters { joined: 9, joins_ok: 9, ..Default::default() };
        let now = LoadCounters { joined: 4, joins_ok: 12, ..Default::default() };
        assert_eq!((now.since(&earlier).joined, now.since(&earlier).joins_ok), (4, 3));
    }
}
