//! The activity of a core and its connections while they are observed.

use std::collections::HashMap;

use throng_base::Key;

use crate::budget::EVENT_WORK_BYTES;

/// Activity of a core since [`CoreContext::observe`](crate::CoreContext::observe) was called. A
/// core that is not observed keeps none, and counts nothing.
///
/// The counts of the core are exact. The table of its connections is bounded: when too many
/// connections are active, it forgets those with the least work, and says how much work a
/// connection may have had beside what it counts.
#[derive(Debug)]
pub struct Activity {
    /// Turns that have ended since.
    pub turns: u64,
    /// Time inside these turns, in microseconds. The rest the core has waited.
    pub busy_us: u64,
    /// The longest of these turns, in microseconds.
    pub turn_us_most: u64,
    /// The most messages that were in the mailbox at once, as each turn found it.
    pub mailbox_most: usize,
    /// The most work that the counts of a connection lack; 0 if they are exact. See
    /// [`ConnectionActivity::work`].
    pub work_missed_max: u64,
    connections: HashMap<Key, ConnectionActivity>,
}

/// Activity of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionActivity {
    /// Bytes received from the kernel.
    pub bytes_received: u64,
    /// Events of the protocol: messages.
    pub events: u64,
    /// Bytes that the kernel has taken.
    pub bytes_sent: u64,
    /// Calls of send: one may carry several messages, and a large message may need several.
    pub sends: u64,
}

impl ConnectionActivity {
    /// Returns the work that the connection made: its bytes, and a kilobyte for each event and each
    /// send. This is the order of [`Activity::busiest`].
    pub fn work(&self) -> u64 {
        let calls = (self.events + self.sends) * EVENT_WORK_BYTES as u64;
        self.bytes_received + self.bytes_sent + calls
    }
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            turns: 0,
            busy_us: 0,
            turn_us_most: 0,
            mailbox_most: 0,
            work_missed_max: 0,
            connections: HashMap::new(),
        }
    }

    /// Returns the connections, those with the most work first. Some may have ended.
    pub fn busiest(&self) -> Vec<(Key, ConnectionActivity)> {
        let mut all: Vec<_> = self.connections.iter().map(|(key, it)| (*key, *it)).collect();
        all.sort_unstable_by_key(|(key, it)| (std::cmp::Reverse(it.work()), *key));
        all
    }

    pub(crate) fn turn_ended(&mut self, took_us: u64) {
        self.turns += 1;
        self.busy_us += took_us;
        self.turn_us_most = self.turn_us_most.max(took_us);
    }

    pub(crate) fn received(&mut self, key: Key, bytes: usize) {
        self.of(key).bytes_received += bytes as u64;
    }

    pub(crate) fn decoded(&mut self, key: Key, events: usize) {
        self.of(key).events += events as u64;
    }

    pub(crate) fn sent(&mut self, key: Key, bytes: usize) {
        let connection = self.of(key);
        connection.bytes_sent += bytes as u64;
        connection.sends += 1;
    }

    fn of(&mut self, key: Key) -> &mut ConnectionActivity {
        if self.connections.len() >= CONNECTIONS_MAX && !self.connections.contains_key(&key) {
            self.forget_least();
        }
        self.connections.entry(key).or_default()
    }

    /// Makes room: keeps a quarter of the connections at most, those with the most work. What a
    /// connection loses in all such steps is at most the sum of their thresholds.
    fn forget_least(&mut self) {
        let mut works: Vec<u64> = self.connections.values().map(ConnectionActivity::work).collect();
        let at = works.len() - CONNECTIONS_MAX / 4;
        let (_, threshold, _) = works.select_nth_unstable(at);
        self.work_missed_max += *threshold;
        self.connections.retain(|_, connection| connection.work() > *threshold);
    }
}

/// Most connections in the table: 700 KB, while a core is observed.
const CONNECTIONS_MAX: usize = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_connections_come_first_with_exact_counts_while_few_are_active() {
        let mut activity = Activity::new();
        for index in 0..100 {
            activity.received(Key::new(index, 0), 10 * index as usize);
            activity.decoded(Key::new(index, 0), 1);
        }
        activity.sent(Key::new(3, 0), 50_000);
        let busiest = activity.busiest();
        let first =
            ConnectionActivity { bytes_received: 30, events: 1, bytes_sent: 50_000, sends: 1 };
        assert_eq!(busiest[0], (Key::new(3, 0), first));
        assert_eq!((busiest.len(), busiest[1].0), (100, Key::new(99, 0)));
        assert_eq!(activity.work_missed_max, 0);
    }

    #[test]
    fn a_connection_in_a_full_table_needs_no_room() {
        let mut activity = Activity::new();
        for index in 0..CONNECTIONS_MAX as u32 {
            activity.received(Key::new(index, 0), 100);
        }
        activity.received(Key::new(0, 0), 100);
        assert_eq!((activity.busiest().len(), activity.work_missed_max), (CONNECTIONS_MAX, 0));
    }

    #[test]
    fn the_busiest_of_a_crowd_is_found_and_what_is_missed_is_bounded() {
        let mut activity = Activity::new();
        let busy = Key::new(u32::MAX - 1, 7);
        for round in 0..4 {
            for index in 0..50_000 {
                activity.received(Key::new(index, 0), 100);
                if index % 100 == round {
                    activity.received(busy, 5_000);
                }
            }
        }
        let (first, counted) = activity.busiest()[0];
        assert_eq!(first, busy);
        assert!(activity.connections.len() <= CONNECTIONS_MAX);
        let truth = 4 * 500 * 5_000;
        assert!(counted.work() <= truth);
        assert!(counted.work() + activity.work_missed_max >= truth);
        assert!(activity.work_missed_max > 0);
    }
}
