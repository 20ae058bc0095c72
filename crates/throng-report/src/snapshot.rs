//! The numbers themselves: what a server, a generator and a machine count.
//!
//! Counters only grow, from the start of the process; gauges are as of the moment of the snapshot;
//! both add up over cores ([`Merge`]). Histograms are of one interval and are merged, never averaged.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Sums what several cores counted.
pub trait Merge {
    /// Adds what `other` counted to what this one did.
    fn merge(&mut self, other: &Self);
}

/// Occurrences by name: an errno's (`ECONNREFUSED`) or an error kind's (`expect_timeout`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally(pub BTreeMap<String, u64>);

impl Tally {
    /// Counts `n` more of `name`.
    pub fn add(&mut self, name: &str, n: u64) {
        if n > 0 {
            *self.0.entry(name.to_owned()).or_default() += n;
        }
    }

    /// How many of `name`.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// How many of everything.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl Merge for Tally {
    fn merge(&mut self, other: &Self) {
        for (name, n) in &other.0 {
            self.add(name, *n);
        }
    }
}

/// Whether a field tells how many there are now, rather than how many there were in all.
fn is_gauge(field: &str) -> bool {
    const GAUGES: [&str; 11] = [
        "open",
        "paused_cores",
        "slots",
        "pending_bytes",
        "users_active",
        "connected",
        "topics",
        "memberships",
        "channels",
        "poll_sessions",
        "poll_bytes",
    ];
    field.ends_with("_most") || GAUGES.contains(&field)
}

/// Declares a struct of `u64` counters and gauges that can be merged field by field. A gauge whose
/// name ends in `_most` is a maximum and merges as one.
macro_rules! counters {
    ($(#[$meta:meta])* $name:ident { $( $(#[$field_meta:meta])* $field:ident ),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name { $( $(#[$field_meta])* pub $field: u64, )* }

        impl $name {
            /// What was counted since `earlier`; gauges and maxima are as of now.
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $( $field: if is_gauge(stringify!($field)) {
                    self.$field
                } else {
                    self.$field.saturating_sub(earlier.$field)
                }, )* }
            }
        }

        impl Merge for $name {
            fn merge(&mut self, other: &Self) {
                $( if stringify!($field).ends_with("_most") {
                    self.$field = self.$field.max(other.$field);
                } else {
                    self.$field.add_assign(other.$field);
                } )*
            }
        }
    };
}

counters! {
    /// What every core counts, whichever app runs on it.
    CoreCounters {
        /// Turns of the event loop.
        turns,
        /// Events that the driver reported.
        events,
        /// Bytes that the kernel handed over.
        bytes_received,
        /// Bytes that the kernel took.
        bytes_sent,
        /// Sends that the kernel took only in part, or not at all.
        sends_blocked,
        /// Times that a connection had used its share of a turn and what it sent waited for the next.
        reads_deferred,
        /// Connections that were closed because what they had not taken outgrew `pending_bytes_max`.
        pending_overflows,
        /// Callbacks that panicked; only the connection concerned was closed.
        panics,
        /// Messages from other cores.
        mail_received,
        /// Messages that did not fit into another core's mailbox.
        mail_dropped,
        /// Gauge: connections and users in the table.
        slots,
        /// Gauge: bytes that wait for slow peers.
        pending_bytes,
        /// The longest turn of the interval, in microseconds.
        turn_us_most,
    }
}

counters! {
    /// What a server counts.
    ServerCounters {
        /// Connections accepted.
        accepted,
        /// Connections that ended, whoever ended them.
        closed,
        /// Gauge: connections open now.
        open,
        /// Messages (for raw TCP: reads that brought bytes) given to the handler.
        messages_received,
        /// Answers that the handler sent.
        messages_sent,
        /// Connections closed because nothing was heard for `idle_timeout`.
        idle_timeouts,
        /// Connections that ended with a reset or another socket error.
        resets,
        /// Connections moved to another core because this core's fd table was full, or by `dispatch`.
        handed_over,
        /// Connections that could not be moved and were closed.
        hand_over_failures,
        /// Times that a core stopped accepting because its fd table (EMFILE) or the system's (ENFILE) was full.
        pauses_fd,
        /// Times that a core stopped accepting because `connections_max` was reached.
        pauses_max,
        /// Gauge: cores that are not accepting now.
        paused_cores,
        /// `dispatch`: the longest queue of accepts that waited for the registry in the interval.
        registry_mailbox_most,
        /// Accepts that found nothing to accept.
        accepts_empty,
        /// Gauge: topics that have members, summed over the cores: one with members on two cores counts twice.
        topics,
        /// Gauge: memberships, each of one connection in one topic.
        memberships,
        /// Publications that connections, or other threads, have made.
        published,
        /// Publications that came from other cores, each once a core.
        publishes_received,
        /// Publications that a topic's policy dropped because a core's mailbox was full, or because too many waited for their
        /// turn; counted once a core that misses them.
        publishes_dropped,
        /// Frames of publications written to members, or queued for them.
        fanned_out,
        /// Writes that took those: one carries several frames when publications come faster than they are delivered.
        fanout_writes,
        /// Publications handed to handlers whose connections intercept them.
        intercepted,
        /// Frames that had to wait for a slow member.
        fanout_queued,
        /// Frames that a slow member does not get: `drop-newest`, or no room in any case.
        dropped_newest,
        /// Frames that had waited for a slow member and were dropped: `drop-oldest`.
        dropped_oldest,
        /// Frames that had waited for a slow member until newer ones took their place: `keep-latest`.
        replaced,
        /// Connections reset because their queue of frames was full: `close`.
        slow_closed,
        /// Gauge: channels that clients are joined to.
        channels,
        /// Joins of channels that were answered ok.
        joins,
        /// Joins of channels that were answered with an error, whatever the reason.
        joins_refused,
        /// Channels that panicked, in join too.
        channel_crashes,
        /// Clients that might not connect to channels or to the chat: their origin, their version,
        /// or the application's own reasons.
        connects_refused,
        /// Clients that were disconnected (1011) because what they sent is no message of their version.
        bad_messages,
        /// Gauge: long-poll sessions.
        poll_sessions,
        /// Gauge: bytes that long-poll sessions keep for their next polls, shared ones once a core.
        poll_bytes,
        /// Long-poll sessions that were refused because there were `poll_sessions_max`.
        poll_sessions_refused,
        /// Long-poll sessions that ended because more waited for them than may.
        poll_overflows,
        /// Members that were not tracked because their topic had `presence_members_max`.
        presence_refused,
        /// Connections that ended (1008) because a message that they had begun was not whole in
        /// time.
        message_timeouts,
        /// Connections that ended (1009) because a frame or a message was larger than may be.
        messages_too_large,
        /// Connections that ended (413, 414, 431) because a request was larger than may be.
        requests_too_large,
    }
}

/// A server at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSnapshot {
    /// Where it listens, `127.0.0.1:5555`.
    pub listen: String,
    /// `reuseport`, `shared` or `dispatch`.
    pub accept: String,
    /// Which handler: `ok`, `echo`, ….
    pub handler: String,
    /// Cores that run.
    pub cores: u64,
    /// Cores that did not answer in time, stalled in a handler say: what they counted is as of their last answer.
    pub cores_silent: u64,
    /// The limit over all cores.
    pub connections_max: u64,
    /// Connections that each listener was asked to let wait for accept, of which the kernel may allow fewer; 0 when unknown.
    pub backlog: u64,
    /// What the cores counted, summed.
    pub counters: ServerCounters,
    /// What the loops counted, summed.
    pub core: CoreCounters,
    /// `accept4` failures by errno.
    pub accept_errors: Tally,
    /// Open connections of each core.
    pub open_per_core: Vec<u64>,
    /// The process.
    pub process: ProcessUse,
}

counters! {
    /// What a generator counts.
    ///
    /// Everything that was begun comes to one end. When all users have left,
    ///
    /// - `iterations` = `users_finished` + `users_failed` + `users_cut`
    /// - `connects_started` = `connects_ok` + `connects_failed` + `connects_waiting`
    /// - `upgrades_started` = `connects_ok` + `upgrades_failed` + `upgrades_waiting` over
    ///   WebSockets
    /// - `messages_expected` = `messages_answered` + `messages_failed` + `messages_waiting`
    /// - `joins_started` = `joins_ok` + `joins_failed` + `joins_waiting`
    /// - `pushes_sent` = `pushes_ok` + `pushes_failed` + `pushes_waiting` + `pushes_without_reply`
    /// - `turns_intended` = `turns_started` + `turns_failed` + `turns_waiting`
    ///
    /// What a user still waits for counts as waiting at the moment at which everybody begins to
    /// leave, or at which the schedule or `throng ctl` stops this user. What becomes of it
    /// afterwards is not counted.
    LoadCounters {
        /// Users (closed model) or arrivals (open model) that should have started by now.
        users_intended,
        /// Of those, the ones that have started. What a user does again counts in `iterations`.
        users_started,
        /// Times that a user began its program, the first time included.
        iterations,
        /// Iterations that ended without an error.
        users_finished,
        /// Iterations that ended with an error.
        users_failed,
        /// Iterations without an error that were cut off before their last step: the run ended, or
        /// the schedule or `throng ctl` stopped the user.
        users_cut,
        /// Gauge: users in the midst of an iteration.
        users_active,
        /// Gauge: connections established.
        connected,
        /// Connects begun.
        connects_started,
        /// Connects that were established.
        connects_ok,
        /// Connects that failed, by any kind of failure.
        connects_failed,
        /// Connects that were under way when their user was stopped.
        connects_waiting,
        /// Connects of WebSockets whose TCP was established, and whose upgrade was asked for.
        upgrades_started,
        /// Those of the failed connects whose TCP was established.
        upgrades_failed,
        /// Those of the waiting connects whose TCP was established.
        upgrades_waiting,
        /// `send` steps done.
        messages_sent,
        /// `expect` steps begun.
        messages_expected,
        /// `expect` steps that got what they waited for.
        messages_answered,
        /// `expect` steps that got something else, or nothing in time, or lost their connection.
        messages_failed,
        /// `expect` steps that waited when their user was stopped.
        messages_waiting,
        /// Steps that were about to send when their connection ended, while the server did not take
        /// what had been sent before.
        sends_failed,
        /// Steps that were about to send when their user was stopped, while the server did not take
        /// what had been sent before.
        sends_waiting,
        /// Turns of `every` that came due: those that have begun, and those before the last one
        /// that began or was given up.
        turns_intended,
        /// Turns of `every` that have begun.
        turns_started,
        /// Turns of `every` that came due while their user waited, and never began: an error ended
        /// the loop.
        turns_failed,
        /// Turns of `every` that had come due and had not begun when their user was stopped.
        turns_waiting,
        /// Whole messages that WebSockets brought, whether or not anything had asked for them.
        messages_received,
        /// Messages (over TCP: receives) that came while no step waited for them, or that a step passed
        /// over: they answered nothing.
        messages_unasked,
        /// Answers that may have been another user's: messages that its `expect` would have taken had come
        /// unasked on the same connection.
        answers_doubtful,
        /// Answers that may have been late ones to the question before, which was given up. They are in no
        /// histogram.
        answers_out_of_step,
        /// Gauge: channels that users are joined to.
        joined,
        /// `join` steps begun.
        joins_started,
        /// `join` steps that were answered ok.
        joins_ok,
        /// `join` steps that were refused, not answered in time, or lost their connection.
        joins_failed,
        /// `join` steps that waited when their user was stopped.
        joins_waiting,
        /// `push` steps done.
        pushes_sent,
        /// Those of them that ask for no answer.
        pushes_without_reply,
        /// `push` steps that were answered ok.
        pushes_ok,
        /// `push` steps that were refused, not answered in time, or lost their connection or
        /// channel.
        pushes_failed,
        /// `push` steps that waited when their user was stopped.
        pushes_waiting,
        /// Heartbeats sent.
        heartbeats_sent,
        /// Heartbeats that were answered.
        heartbeats_answered,
        /// Heartbeats that were not answered until the next was due, which ends a connection.
        heartbeats_missed,
        /// Users who waited for an answer (`expect`, `join`, `push`, `leave`) when everybody began
        /// to leave.
        users_waiting,
        /// For how long the one of them had waited who had waited the longest, from the intended moment, in microseconds.
        users_waiting_us_most,
    }
}

counters! {
    /// What a generator counts of its probes. Of every probe, `expected` is in the end the sum of
    /// `delivered`, `left` and `missing`.
    ProbeCounters {
        /// Probes that were due.
        intended,
        /// Those of them that nobody could hear: no user was connected or joined.
        skipped,
        /// Probes sent.
        sent,
        /// Deliveries that must come: one for every user that was there when a probe was about to be sent.
        expected,
        /// Those of them that came in time.
        delivered,
        /// Those of them that need not come any more: the user left the channel or lost its connection before.
        left,
        /// Those of them that did not come in time.
        missing,
        /// Those of the missing ones that came later.
        late,
        /// Deliveries to users who had got this probe before.
        duplicates,
        /// Deliveries to users who had got a later probe before.
        out_of_order,
        /// Deliveries to users that nobody counted on: they had joined after that moment, or were leaving.
        unexpected,
    }
}

impl ProbeCounters {
    /// Deliveries that may still come.
    pub fn outstanding(&self) -> u64 {
        self.expected.saturating_sub(self.delivered + self.left + self.missing)
    }
}

counters! {
    /// What a generator counts for one class of users; the whole is in [`LoadCounters`].
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
        /// `expect` steps that got what they waited for.
        messages_answered,
    }
}

/// Microseconds of CPU and bytes of memory of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessUse {
    /// Process id; 0 when unknown.
    pub pid: u32,
    /// CPU time in user mode since the process began, in microseconds.
    pub cpu_user_us: u64,
    /// CPU time in the kernel since the process began, in microseconds.
    pub cpu_system_us: u64,
    /// Resident memory now, in bytes.
    pub rss_bytes: u64,
    /// Resident memory before the first connection, in bytes; growth per connection counts from here.
    pub rss_bytes_at_start: u64,
}

/// The CPU that one program took, and who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramUse {
    /// Process id.
    pub pid: u32,
    /// Its name, at most 15 bytes of it.
    pub program: String,
    /// CPU time in thousandths of one CPU, on average since it was last looked at; 1,500 is one and
    /// a half CPUs.
    pub millicpus: u64,
}

/// CPU time of the whole machine since it was started, in microseconds, from the first line of `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineUse {
    /// CPUs on line.
    pub cpus: u64,
    /// Time that was not idle and not stolen, over all CPUs.
    pub cpu_busy_us: u64,
    /// Time that was idle or waited for a disk.
    pub cpu_idle_us: u64,
    /// Time that the hypervisor gave to others.
    pub cpu_stolen_us: u64,
}

impl ProcessUse {
    /// CPU time in user mode and in the kernel, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        self.cpu_user_us + self.cpu_system_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn a_tally_is_a_plain_object() {
        let mut tally = Tally::default();
        tally.add("ECONNREFUSED", 2);
        tally.add("timeout", 0);
        assert_eq!(serde_json::to_string(&tally).unwrap(), r#"{"ECONNREFUSED":2}"#);
    }
}
