//! One core's record of the probes: their subscribers, the expected deliveries, and the actual
//! ones.
//!
//! A probe is *opened* on every core shortly before it is sent: a delivery to each present
//! subscriber is expected. Each of them then receives it, or leaves before that, or has not
//! received it at the time-out, so the counters of every probe add up. The probe is sent when all
//! cores have opened it: no delivery is expected to a user that subscribes after that.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{Instant, Prng};

use super::config::GeneratorConfig;
use super::core_stats::CoreStats;
use super::marker::ProbeMarker;
use crate::user::{AnswerTiming, Receipt, Receipts};

/// One core's record of the probes.
#[derive(Debug)]
pub(super) struct ProbeLedger {
    pub(super) marker: ProbeMarker,
    start_at: Instant,
    every: Duration,
    timeout: Duration,
    /// Gauge: users that receive probes.
    subscribers: u64,
    /// The latest probe that was opened.
    opened: u32,
    /// Probes with outstanding deliveries, oldest first.
    open: VecDeque<OpenProbe>,
    /// Table index of a user that received probes when it was noted: it sends the next one.
    pub(super) sender: Option<u32>,
    /// True once all users leave.
    closed: bool,
    /// Probes that this core must send when they are due, earliest first.
    pub(super) to_send: VecDeque<ProbeOrder>,
}

/// An order to send a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeOrder {
    pub(super) number: u32,
    /// Cores that had no user to send it.
    pub(super) tried: usize,
}

/// A probe with outstanding deliveries.
#[derive(Debug)]
struct OpenProbe {
    number: u32,
    outstanding: u64,
}

impl ProbeLedger {
    /// Creates the ledger, if the scenario has a probe.
    pub(super) fn new(config: &GeneratorConfig) -> Option<Self> {
        let probe = config.program.probe()?;
        let run = Prng::derive(config.seed, config.run).bits();
        Some(Self {
            marker: ProbeMarker::new(run as u32),
            start_at: config.start_at,
            every: probe.every,
            timeout: probe.timeout,
            subscribers: 0,
            opened: 0,
            open: VecDeque::new(),
            sender: None,
            closed: false,
            to_send: VecDeque::new(),
        })
    }

    /// Returns the due moment of probe `number`, from which its deliveries count.
    pub(super) fn due_at(&self, number: u32) -> Instant {
        self.start_at + self.every.saturating_mul(number)
    }

    /// Returns the moment at which [`Self::expire`] has work to do.
    pub(super) fn expires(&self) -> Instant {
        self.open.front().map_or(Instant::FAR, |open| self.due_at(open.number) + self.timeout)
    }

    /// Takes the order that is due now.
    pub(super) fn next_to_send(&mut self, now: Instant) -> Option<ProbeOrder> {
        let due_at = self.due_at(self.to_send.front()?.number);
        if due_at <= now { self.to_send.pop_front() } else { None }
    }

    /// Reports whether no delivery is outstanding and no order waits.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.to_send.is_empty()
    }

    /// Reports whether a delivery is outstanding.
    pub(super) fn awaits_deliveries(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens a probe: expects a delivery to each present subscriber. Returns their number.
    pub(super) fn open(&mut self, number: u32, stats: &mut CoreStats) -> u64 {
        // A late order does not open a probe twice.
        if number <= self.opened {
            return 0;
        }
        self.opened = number;
        // Receipts do not reach further back: such a delivery is missing now, if not before.
        let too_old = number.saturating_sub(Receipts::REACH);
        while let Some(open) = self.open.front().filter(|open| open.number <= too_old) {
            stats.probe(open.number).counters.missing += open.outstanding;
            self.open.pop_front();
        }
        if self.subscribers > 0 {
            stats.probe(number).counters.expected += self.subscribers;
            self.open.push_back(OpenProbe { number, outstanding: self.subscribers });
        }
        self.subscribers
    }

    /// Subscribes a user at `user_index` of the core's table to probes.
    pub(super) fn join(&mut self, receipts: &mut Receipts, user_index: u32) {
        if !receipts.are_expected() {
            *receipts = Receipts::after(self.opened);
            self.subscribers += 1;
            self.sender.get_or_insert(user_index);
        }
    }

    /// Unsubscribes a user. Deliveries that it has not received are no longer expected.
    pub(super) fn leave(&mut self, receipts: &mut Receipts, stats: &mut CoreStats) {
        let receipts = std::mem::take(receipts);
        if !receipts.are_expected() {
            return;
        }
        self.subscribers -= 1;
        for open in &mut self.open {
            if receipts.lacks(open.number) {
                open.outstanding -= 1;
                stats.probe(open.number).counters.left += 1;
            }
        }
        self.remove_settled();
    }

    /// Records the delivery of probe `number` to a user.
    pub(super) fn receive(
        &mut self,
        receipts: &mut Receipts,
        number: u32,
        timing: AnswerTiming,
        stats: &mut CoreStats,
    ) {
        if number > self.opened || number == 0 {
            // The server invented the number. All invented numbers share one tally.
            stats.probe(NO_PROBE).counters.unexpected += 1;
            return;
        }
        let due_at = self.due_at(number);
        let by_own_clock = timing.by_own_clock();
        // Probes that lie so far back that they have no report of their own share it, too.
        let is_recent = number > self.opened.saturating_sub(TALLIED_MAX);
        let tally = stats.probe(if is_recent { number } else { NO_PROBE });
        if !receipts.are_expected() {
            tally.counters.unexpected += 1;
            return;
        }
        let Receipt::First { expected, out_of_order } = receipts.take(number) else {
            tally.counters.duplicates += 1;
            return;
        };
        tally.counters.out_of_order += u64::from(out_of_order);
        if !expected {
            tally.counters.unexpected += 1;
            return;
        }
        let Some(open) = self.open.iter_mut().find(|open| open.number == number) else {
            // A delivery that was in flight when all users began to leave is not late.
            tally.counters.late += u64::from(!self.closed);
            return;
        };
        open.outstanding -= 1;
        let settled = open.outstanding == 0;
        tally.counters.delivered += 1;
        tally.record(due_at, timing);
        stats.arrival.by_own_clock += by_own_clock;
        if settled {
            self.remove_settled();
        }
    }

    /// Excludes the sender from the expected deliveries, if the server does not echo to the sender.
    pub(super) fn exclude_sender(
        &mut self,
        receipts: &mut Receipts,
        number: u32,
        stats: &mut CoreStats,
    ) {
        if receipts.lacks(number)
            && let Some(open) = self.open.iter_mut().find(|open| open.number == number)
        {
            receipts.take(number);
            open.outstanding -= 1;
            stats.probe(number).counters.left += 1;
            self.remove_settled();
        }
    }

    /// Counts outstanding deliveries of expired probes as missing.
    pub(super) fn expire(&mut self, now: Instant, stats: &mut CoreStats) {
        while self.expires() <= now
            && let Some(open) = self.open.pop_front()
        {
            stats.probe(open.number).counters.missing += open.outstanding;
        }
    }

    /// Drops probe `number`: it is not sent.
    pub(super) fn drop_probe(&mut self, number: u32, stats: &mut CoreStats) {
        for open in &mut self.open {
            if open.number == number {
                stats.probe(number).counters.left += std::mem::take(&mut open.outstanding);
            }
        }
        self.remove_settled();
    }

    /// Closes all probes when all users leave.
    pub(super) fn close(&mut self, stats: &mut CoreStats) {
        self.closed = true;
        for order in self.to_send.drain(..) {
            stats.probe(order.number).counters.skipped += 1;
        }
        for open in self.open.drain(..) {
            stats.probe(open.number).counters.left += open.outstanding;
        }
    }

    fn remove_settled(&mut self) {
        self.open.retain(|open| open.outstanding > 0);
    }
}

/// Tally number of deliveries that belong to no probe; the first probe is 1.
const NO_PROBE: u32 = 0;
/// Probes that have a tally of their own.
const TALLIED_MAX: u32 = 1_000;

#[cfg(test)]
pub(super) mod tests {
    use throng_measure::ProbeCounters;

    use super::*;
    use crate::cues::Cues;
    use crate::program::Program;
    use crate::scenario::Scenario;
    use crate::source::SourcePlan;

    /// A run whose probe is due every 10 s and missing 5 s later.
    pub(in crate::generator) fn config() -> GeneratorConfig {
        let source = "target: ws://127.0.0.1:1\nload: [{ramp: {to: 1, over: 1s}}]\n\
            user: [connect, stay]\nprobe: [{every: 10s, timeout: 5s, broadcast: {text: hi}}]\n";
        let scenario = Scenario::parse(source, "test").unwrap();
        GeneratorConfig {
            program: Program::compile(&scenario),
            cues: Cues::new(&[]).into(),
            load: scenario.load,
            targets: Vec::new(),
            sources: SourcePlan::Any,
            self_connect_possible: false,
            options: Default::default(),
            seed: 1,
            start_at: at(1_000),
            run: at(1_000).as_nanos(),
            first_user: 0,
            share: None,
            peers: None,
            trace: None,
        }
    }

    /// A ledger of that run, with `users` subscribers.
    fn with_users(users: usize) -> (ProbeLedger, CoreStats, Vec<Receipts>) {
        let mut probes = ProbeLedger::new(&config()).unwrap();
        let mut users = vec![Receipts::default(); users];
        (0..).zip(&mut users).for_each(|(index, user)| probes.join(user, index));
        (probes, CoreStats::new(0, 1), users)
    }

    fn seen(seen_at: Instant) -> AnswerTiming {
        AnswerTiming::own(seen_at)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// The counters of probe `number`, which must add up.
    fn closed(probes: &ProbeLedger, stats: &mut CoreStats, number: u32) -> ProbeCounters {
        assert!(probes.is_idle());
        let counters = stats.probe(number).counters.clone();
        assert_eq!(counters.outstanding(), 0, "{counters:?}");
        counters
    }

    #[test]
    fn deliveries_count_from_the_moment_at_which_the_probe_was_due() {
        let (mut probes, mut stats, mut users) = with_users(2);
        assert_eq!(probes.open(1, &mut stats), 2);
        probes.receive(&mut users[0], 1, seen(at(11_002)), &mut stats);
        probes.receive(&mut users[1], 1, seen(at(11_300)), &mut stats);
        let counters = closed(&probes, &mut stats, 1);
        assert_eq!((counters.expected, counters.delivered), (2, 2));
        let tally = stats.probe(1);
        assert_eq!(tally.first_and_last_us, Some((2_000, 300_000)));
        assert_eq!(tally.latency.count(), 2);
    }

    #[test]
    fn what_does_not_come_in_time_is_missing_and_may_come_late() {
        let (mut probes, mut stats, mut users) = with_users(3);
        probes.open(1, &mut stats);
        probes.receive(&mut users[0], 1, seen(at(11_000)), &mut stats);
        assert_eq!(probes.expires(), at(16_000));
        probes.expire(at(15_999), &mut stats);
        assert!(!probes.is_idle());
        probes.expire(at(16_000), &mut stats);
        probes.receive(&mut users[1], 1, seen(at(16_001)), &mut stats);
        let counters = closed(&probes, &mut stats, 1);
        assert_eq!((counters.delivered, counters.missing, counters.late), (1, 2, 1));
    }

    #[test]
    fn a_user_that_leaves_is_not_missing_and_one_that_joins_is_not_expected() {
        let (mut probes, mut stats, mut users) = with_users(2);
        probes.open(1, &mut stats);
        probes.leave(&mut users[0], &mut stats);
        // It is delivered all the same while the user leaves.
        probes.receive(&mut users[0], 1, seen(at(11_001)), &mut stats);
        let mut newcomer = Receipts::default();
        probes.join(&mut newcomer, 7);
        probes.receive(&mut newcomer, 1, seen(at(11_001)), &mut stats);
        probes.receive(&mut users[1], 1, seen(at(11_001)), &mut stats);
        let counters = closed(&probes, &mut stats, 1);
        assert_eq!((counters.expected, counters.delivered, counters.left), (2, 1, 1));
        assert_eq!((counters.unexpected, counters.duplicates, counters.out_of_order), (2, 0, 0));
        assert_eq!(probes.open(2, &mut stats), 2, "the one who stayed and the newcomer");
    }

    #[test]
    fn duplicates_and_deliveries_out_of_order_are_told_apart_while_probes_overlap() {
        let (mut probes, mut stats, mut users) = with_users(1);
        (1..=3).for_each(|number| _ = probes.open(number, &mut stats));
        for number in [2, 1, 1, 3, 2] {
            probes.receive(&mut users[0], number, seen(at(12_000)), &mut stats);
        }
        let counters: Vec<_> = (1..=3).map(|number| closed(&probes, &mut stats, number)).collect();
        let of = |get: fn(&ProbeCounters) -> u64| counters.iter().map(get).collect::<Vec<_>>();
        assert_eq!(of(|counters| counters.delivered), [1, 1, 1]);
        assert_eq!(of(|counters| counters.out_of_order), [1, 0, 0]);
        assert_eq!(of(|counters| counters.duplicates), [1, 1, 0]);
    }

    #[test]
    fn counters_add_up_however_many_probes_one_user_does_not_get() {
        let (mut probes, mut stats, mut users) = with_users(3);
        for number in 1..=100 {
            probes.open(number, &mut stats);
            for user in &mut users[..2] {
                probes.receive(user, number, seen(at(10_000)), &mut stats);
            }
        }
        users.iter_mut().for_each(|user| probes.leave(user, &mut stats));
        let sum = |get: fn(&ProbeCounters) -> u64, stats: &mut CoreStats| {
            (1..=100).map(|number| get(&stats.probe(number).counters)).sum::<u64>()
        };
        assert!(probes.is_idle());
        assert_eq!(sum(|counters| counters.expected, &mut stats), 300);
        assert_eq!(sum(|counters| counters.delivered, &mut stats), 200);
        assert_eq!(sum(|counters| counters.missing, &mut stats), 68);
        assert_eq!(sum(|counters| counters.left, &mut stats), 32);
    }

    #[test]
    fn a_probe_that_was_never_opened_is_unexpected() {
        let (mut probes, mut stats, mut users) = with_users(1);
        let invented = (0..100_000).map(|n| 4_000_000_000 + n).chain([0]);
        invented.for_each(|number| {
            probes.receive(&mut users[0], number, seen(at(12_000)), &mut stats);
        });
        probes.open(1, &mut stats);
        probes.receive(&mut users[0], 1, seen(at(12_000)), &mut stats);
        assert_eq!(closed(&probes, &mut stats, 1).delivered, 1);
        assert_eq!(stats.probe(NO_PROBE).counters.unexpected, 100_001);
        assert_eq!(stats.probes.len(), 2, "what a server invents takes no memory");
    }

    #[test]
    fn deliveries_of_long_ago_take_no_memory() {
        let (mut probes, _, mut users) = with_users(1);
        let mut ignored = CoreStats::new(0, 1);
        (1..=5_000).for_each(|number| _ = probes.open(number, &mut ignored));
        let mut stats = CoreStats::new(0, 1);
        (1..=5_000)
            .for_each(|number| probes.receive(&mut users[0], number, seen(at(12_000)), &mut stats));
        assert_eq!(stats.probes.len() as u32, TALLIED_MAX + 1);
    }

    #[test]
    fn a_dropped_probe_and_one_at_the_end_are_not_missing() {
        let (mut probes, mut stats, mut users) = with_users(2);
        probes.open(1, &mut stats);
        probes.drop_probe(1, &mut stats);
        assert_eq!(closed(&probes, &mut stats, 1).left, 2);
        probes.open(2, &mut stats);
        probes.exclude_sender(&mut users[0], 2, &mut stats);
        probes.close(&mut stats);
        probes.leave(&mut users[0], &mut stats);
        probes.receive(&mut users[1], 2, seen(at(21_000)), &mut stats);
        probes.leave(&mut users[1], &mut stats);
        let counters = closed(&probes, &mut stats, 2);
        assert_eq!((counters.left, counters.late), (2, 0), "it was under way when all left");
    }
}
