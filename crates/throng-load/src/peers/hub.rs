//! The place where cores of several machines meet: the coordinator's.

use std::ops::Range;
use std::time::Duration;

use throng_measure::CueWaits;

use super::{ALL_USERS, CORE_USERS_MAX, CueCount, OPENED_AHEAD, PeerMessage, PeerOrder};

use crate::generator::ProbeMessage;
use crate::program::{Cue, CueKind};

/// Passes messages about probes between cores, and decides when users that wait for one another go
/// on.
#[derive(Debug)]
pub struct PeerHub {
    slots: Vec<Slot>,
    cues: Vec<HubCue>,
    /// True if another hub has let users go before this one.
    has_taken_over: bool,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    is_lost: bool,
    /// The last probe that the core was asked to open, while it has not answered.
    opening: Option<u32>,
}

/// A barrier or signal over all machines.
#[derive(Debug)]
struct HubCue {
    kind: CueKind,
    /// Users of each slot.
    slots: Vec<SlotUsers>,
    opened: u64,
    waiting_most: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct SlotUsers {
    count: CueCount,
    /// Users that were told to go on.
    let_go: u64,
    is_lost: bool,
}

impl SlotUsers {
    fn waiting(&self) -> u64 {
        if self.is_lost {
            return 0;
        }
        self.waiting_with(self.count)
    }

    /// Returns the users that wait if this is their count.
    fn waiting_with(&self, count: CueCount) -> u64 {
        let CueCount { come, left, absent, .. } = count;
        come.saturating_add(absent).saturating_sub(left.saturating_add(self.let_go))
    }

    /// Checks a count that its core says next.
    fn check(&self, count: CueCount, let_go_is_known: bool) -> Result<(), String> {
        let CueCount { come, left, absent, gone_on } = count;
        let before = self.count;
        for (name, now, before) in [
            ("come", come, before.come),
            ("left", left, before.left),
            ("absent", absent, before.absent),
            ("gone on", gone_on, before.gone_on),
        ] {
            if now < before {
                return Err(format!("{before} users have {name}, and then only {now}"));
            }
        }
        let gone = gone_on.saturating_add(absent);
        if let_go_is_known && gone > self.let_go {
            return Err(format!("{gone} users go on, and {} were told to", self.let_go));
        }
        let waiting = self.waiting_with(count);
        if waiting > CORE_USERS_MAX {
            return Err(format!("{waiting} users of one core wait, at most {CORE_USERS_MAX} can"));
        }
        Ok(())
    }
}

impl PeerHub {
    /// Creates the hub of a run with these barriers and signals on so many cores.
    pub fn new(cues: &[Cue], slots: usize) -> Self {
        let cue = |cue: &Cue| HubCue {
            kind: cue.kind,
            slots: vec![SlotUsers::default(); slots],
            opened: 0,
            waiting_most: 0,
        };
        Self {
            slots: vec![Slot::default(); slots],
            cues: cues.iter().map(cue).collect(),
            has_taken_over: false,
        }
    }

    /// Takes what a core of the machine with these slots says, `now` after the run began. Returns
    /// what other cores hear of it.
    ///
    /// # Errors
    /// No core of that machine can say this: nothing has changed.
    pub fn take(
        &mut self,
        message: PeerMessage,
        machine: &Range<usize>,
        now: Duration,
    ) -> Result<Vec<PeerOrder>, String> {
        match message {
            PeerMessage::Probe { to, message } => {
                self.check_slot(to)?;
                self.check_probe(message, machine)?;
                Ok(self.pass(to, message))
            }
            PeerMessage::CueCount { from, cue, count } => {
                self.check_slot(from)?;
                check_own(from, machine)?;
                let let_go_is_known = !self.has_taken_over;
                let known = self.cue(cue)?;
                let is_barrier = matches!(known.kind, CueKind::Barrier { .. });
                let users = &mut known.slots[from];
                users.check(count, is_barrier && let_go_is_known)?;
                users.count = count;
                // A hub that has taken the run over learns here what the one before has decided.
                users.let_go = users.let_go.max(count.gone_on.saturating_add(count.absent));
                Ok(known.open_groups(cue, now))
            }
            PeerMessage::Raise { cue } => {
                if self.cue(cue)?.kind != CueKind::Signal {
                    return Err(format!("it raises number {cue}, which is a barrier"));
                }
                Ok(self.raise(cue, now))
            }
        }
    }

    fn cue(&mut self, cue: u16) -> Result<&mut HubCue, String> {
        let all = self.cues.len();
        let known = self.cues.get_mut(usize::from(cue));
        known.ok_or_else(|| format!("number {cue} of {all} barriers and signals"))
    }

    fn check_slot(&self, slot: usize) -> Result<(), String> {
        let all = self.slots.len();
        if slot < all { Ok(()) } else { Err(format!("core {slot} of {all}")) }
    }

    fn check_probe(&self, message: ProbeMessage, machine: &Range<usize>) -> Result<(), String> {
        match message {
            ProbeMessage::Open(_) => check_own(PROBE_COORDINATOR, machine),
            ProbeMessage::Opened { core, subscribers, .. } => {
                check_own(core, machine)?;
                if subscribers > CORE_USERS_MAX {
                    return Err(format!(
                        "{subscribers} users of one core get a probe, at most {CORE_USERS_MAX} can"
                    ));
                }
                Ok(())
            }
            ProbeMessage::Send { tried, .. } => self.check_slot(tried),
            ProbeMessage::Done(_) | ProbeMessage::Drop(_) => Ok(()),
        }
    }

    /// Forgets the cores of a machine that is lost: its users are waited for no longer, and it
    /// opens no probes. Returns what other cores hear of it.
    pub fn lose(&mut self, slots: Range<usize>) -> Vec<PeerOrder> {
        let mut orders = Vec::new();
        for slot in slots {
            let lost = &mut self.slots[slot];
            lost.is_lost = true;
            if let Some(number) = lost.opening.take() {
                orders.extend(self.pass(PROBE_COORDINATOR, opened_by_no_core(number, slot)));
            }
            self.cues.iter_mut().for_each(|cue| cue.slots[slot].is_lost = true);
        }
        orders
    }

    /// Goes on with a run of which another hub has decided this.
    pub fn go_on_from(&mut self, cues: &[CueWaits]) {
        self.has_taken_over = true;
        for (cue, before) in self.cues.iter_mut().zip(cues) {
            (cue.opened, cue.waiting_most) = (before.opened, before.waiting_most);
        }
    }

    /// Counts on the cores of a machine again that was lost.
    pub fn find(&mut self, slots: Range<usize>) {
        for slot in slots {
            self.slots[slot].is_lost = false;
            self.cues.iter_mut().for_each(|cue| cue.slots[slot].is_lost = false);
        }
    }

    /// Returns how often each barrier or signal was opened, and how many users waited for it at
    /// most.
    pub fn cues(&self) -> impl Iterator<Item = (u64, u64)> {
        self.cues.iter().map(|cue| (cue.opened, cue.waiting_most))
    }

    fn pass(&mut self, mut to: usize, mut message: ProbeMessage) -> Vec<PeerOrder> {
        if let ProbeMessage::Opened { number, core, .. } = message
            && let Some(slot) = self.slots.get_mut(core)
        {
            slot.opening.take_if(|opening| *opening == number);
        }
        // Each turn answers for a core that cannot, or asks the next one.
        for _ in 0..=self.slots.len() {
            let Some(slot) = self.slots.get_mut(to) else { break };
            if !slot.is_lost {
                if let ProbeMessage::Open(number) = message {
                    slot.opening = Some(number);
                }
                return vec![PeerOrder::Probe { to, message }];
            }
            (to, message) = match message {
                ProbeMessage::Open(number) => (PROBE_COORDINATOR, opened_by_no_core(number, to)),
                ProbeMessage::Send { number, tried } if tried + 1 < self.slots.len() => {
                    let next = (to + 1) % self.slots.len();
                    (next, ProbeMessage::Send { number, tried: tried + 1 })
                }
                _ => break,
            };
        }
        Vec::new()
    }

    fn raise(&mut self, cue: u16, now: Duration) -> Vec<PeerOrder> {
        let Some(known) = self.cues.get_mut(usize::from(cue)) else { return Vec::new() };
        if known.opened > 0 {
            return Vec::new();
        }
        known.opened = 1;
        let at_us = (now + OPENED_AHEAD).as_micros() as u64;
        let order = |to| PeerOrder::OpenCue { to, cue, users: ALL_USERS, at_us };
        (0..self.slots.len()).map(order).collect()
    }
}

impl HubCue {
    /// Lets all whole groups of a barrier go.
    fn open_groups(&mut self, cue: u16, now: Duration) -> Vec<PeerOrder> {
        let waiting: u64 = self.slots.iter().map(SlotUsers::waiting).sum();
        self.waiting_most = self.waiting_most.max(waiting);
        let CueKind::Barrier { users } = self.kind else { return Vec::new() };
        let size = u64::from(users).max(1);
        let at_us = (now + OPENED_AHEAD).as_micros() as u64;
        let groups = waiting / size;
        self.opened = self.opened.saturating_add(groups);
        // All whole groups go on at one moment, so each core hears how many users it lets go.
        let mut going = groups * size;
        let mut orders = Vec::new();
        for (to, slot) in self.slots.iter_mut().enumerate() {
            let users = slot.waiting().min(going);
            if users > 0 {
                slot.let_go += users;
                going -= users;
                orders.push(PeerOrder::OpenCue { to, cue, users, at_us });
            }
        }
        orders
    }
}

/// Checks that a machine speaks for a core of its own.
fn check_own(core: usize, machine: &Range<usize>) -> Result<(), String> {
    if machine.contains(&core) {
        return Ok(());
    }
    let Range { start, end } = machine;
    Err(format!("it speaks for core {core}, and has the cores from {start} to before {end}"))
}

fn opened_by_no_core(number: u32, core: usize) -> ProbeMessage {
    ProbeMessage::Opened { number, core, subscribers: 0 }
}

/// The slot that coordinates probes.
const PROBE_COORDINATOR: usize = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(kind: CueKind, slots: usize) -> PeerHub {
        PeerHub::new(&[Cue { name: "start".into(), line: 1, kind }], slots)
    }

    /// All cores of a run of up to so many.
    const ALL: Range<usize> = 0..99;

    fn come(
        hub: &mut PeerHub,
        from: usize,
        come: u64,
        left: u64,
        absent: u64,
    ) -> Vec<(usize, u64)> {
        let count = CueCount { come, left, absent, gone_on: 0 };
        let message = PeerMessage::CueCount { from, cue: 0, count };
        let orders = hub.take(message, &ALL, Duration::ZERO).unwrap();
        let users = |order| match order {
            PeerOrder::OpenCue { to, users, .. } => (to, users),
            PeerOrder::Probe { .. } => panic!("{order:?}"),
        };
        orders.into_iter().map(users).collect()
    }

    #[test]
    fn a_group_goes_on_when_enough_users_of_all_machines_have_come() {
        let mut hub = hub(CueKind::Barrier { users: 5 }, 3);
        assert_eq!(come(&mut hub, 0, 2, 0, 0), []);
        assert_eq!(come(&mut hub, 1, 2, 0, 0), []);
        assert_eq!(come(&mut hub, 2, 7, 0, 0), [(0, 2), (1, 2), (2, 6)]);
        // One of the last six had left: it is not counted twice.
        assert_eq!(come(&mut hub, 2, 8, 1, 1), []);
        assert_eq!(come(&mut hub, 0, 4, 0, 0), []);
        assert_eq!(come(&mut hub, 1, 3, 0, 0), [(0, 2), (1, 1), (2, 2)]);
        assert_eq!(hub.cues().collect::<Vec<_>>(), [(3, 11)]);
    }

    #[test]
    fn users_of_a_lost_machine_are_not_waited_with() {
        let mut hub = hub(CueKind::Barrier { users: 3 }, 2);
        assert_eq!(come(&mut hub, 0, 2, 0, 0), []);
        assert_eq!(hub.lose(0..1), []);
        assert_eq!(come(&mut hub, 1, 2, 0, 0), []);
        assert_eq!(come(&mut hub, 1, 3, 0, 0), [(1, 3)]);
        hub.find(0..1);
        assert_eq!(come(&mut hub, 1, 4, 0, 0), [(0, 2), (1, 1)]);
    }

    #[test]
    fn the_first_signal_is_heard_by_all_at_one_moment() {
        let mut hub = hub(CueKind::Signal, 2);
        let at_us = (Duration::from_secs(7) + OPENED_AHEAD).as_micros() as u64;
        let order = |to| PeerOrder::OpenCue { to, cue: 0, users: ALL_USERS, at_us };
        let raise = PeerMessage::Raise { cue: 0 };
        assert_eq!(
            hub.take(raise.clone(), &ALL, Duration::from_secs(7)).unwrap(),
            [order(0), order(1)]
        );
        assert_eq!(hub.take(raise, &ALL, Duration::from_secs(8)).unwrap(), []);
    }

    #[test]
    fn a_lost_machine_opens_no_probe_and_sends_none() {
        let mut hub = hub(CueKind::Signal, 4);
        let to = |to, message| PeerMessage::Probe { to, message };
        let passed = |to, message| PeerOrder::Probe { to, message };
        let open = ProbeMessage::Open(1);
        assert_eq!(hub.take(to(1, open), &ALL, Duration::ZERO).unwrap(), [passed(1, open)]);
        assert_eq!(hub.take(to(2, open), &ALL, Duration::ZERO).unwrap(), [passed(2, open)]);
        let opened = ProbeMessage::Opened { number: 1, core: 2, subscribers: 5 };
        assert_eq!(hub.take(to(0, opened), &ALL, Duration::ZERO).unwrap(), [passed(0, opened)]);
        // One of its cores has answered, the other has not.
        let unopened = |number, core| passed(0, opened_by_no_core(number, core));
        assert_eq!(hub.lose(1..3), [unopened(1, 1)]);
        assert_eq!(
            hub.take(to(2, ProbeMessage::Open(2)), &ALL, Duration::ZERO).unwrap(),
            [unopened(2, 2)]
        );
        let send = |tried| ProbeMessage::Send { number: 2, tried };
        assert_eq!(hub.take(to(1, send(0)), &ALL, Duration::ZERO).unwrap(), [passed(3, send(2))]);
    }

    /// Checks that the machine with the first two of four cores cannot say this, and why.
    #[track_caller]
    fn check_refused(hub: &mut PeerHub, message: PeerMessage, why: &str) {
        let before = format!("{hub:?}");
        let error = hub.take(message, &(0..2), Duration::ZERO).unwrap_err();
        assert!(error.contains(why), "{error}");
        assert_eq!(format!("{hub:?}"), before, "it has changed nothing");
    }

    #[test]
    fn a_count_that_no_share_can_have_is_refused_and_opens_nothing() {
        let mut hub = hub(CueKind::Barrier { users: 10 }, 4);
        assert_eq!(come(&mut hub, 1, 7, 1, 0), []);
        let say = |from, [come, left, absent, gone_on]: [u64; 4]| {
            let count = CueCount { come, left, absent, gone_on };
            PeerMessage::CueCount { from, cue: 0, count }
        };
        for (message, why) in [
            (say(0, [100_000_000_000_000_000, 0, 0, 0]), "wait, at most 16777216 can"),
            (say(0, [CORE_USERS_MAX + 1, 0, 0, 0]), "16777217 users of one core"),
            (say(0, [u64::MAX, 0, 0, 0]), "at most"),
            (say(0, [u64::MAX; 4]), "were told to"),
            (say(0, [0, 0, 1, 0]), "1 users go on, and 0 were told to"),
            (say(0, [0, 0, 0, 5]), "5 users go on"),
            (say(1, [6, 1, 0, 0]), "7 users have come, and then only 6"),
            (say(1, [7, 0, 0, 0]), "1 users have left, and then only 0"),
            (say(2, [1, 0, 0, 0]), "speaks for core 2"),
            (say(4, [1, 0, 0, 0]), "core 4 of 4"),
            (PeerMessage::CueCount { from: 0, cue: 1, count: CueCount::default() }, "number 1 of"),
            (PeerMessage::Raise { cue: 0 }, "which is a barrier"),
            (PeerMessage::Raise { cue: 9 }, "number 9 of 1"),
        ] {
            check_refused(&mut hub, message, why);
        }
        // The most that is allowed takes one order a core, however many groups that are.
        assert_eq!(come(&mut hub, 0, CORE_USERS_MAX, 0, 0), [(0, CORE_USERS_MAX), (1, 4)]);
        assert_eq!(hub.cues().next().unwrap().0, (CORE_USERS_MAX + 6) / 10);
    }

    #[test]
    fn a_hub_that_has_taken_a_run_over_learns_who_was_let_go() {
        let mut hub = hub(CueKind::Barrier { users: 2 }, 2);
        hub.go_on_from(&[CueWaits { opened: 3, ..CueWaits::default() }]);
        let count = CueCount { come: 7, left: 0, absent: 1, gone_on: 5 };
        let message = PeerMessage::CueCount { from: 0, cue: 0, count };
        let orders = hub.take(message, &ALL, Duration::ZERO).unwrap();
        assert!(matches!(orders[..], [PeerOrder::OpenCue { users: 2, .. }]), "{orders:?}");
    }

    #[test]
    fn what_no_machine_can_say_of_probes_is_refused() {
        let mut hub = hub(CueKind::Signal, 4);
        let opened = |core, subscribers| ProbeMessage::Opened { number: 1, core, subscribers };
        let send = |tried| ProbeMessage::Send { number: 1, tried };
        for (to, message, why) in [
            (4, ProbeMessage::Done(1), "core 4 of 4"),
            (0, opened(2, 1), "speaks for core 2"),
            (0, opened(usize::MAX, 1), "speaks for core"),
            (0, opened(1, CORE_USERS_MAX + 1), "get a probe"),
            (1, send(4), "core 4 of 4"),
            (1, send(usize::MAX), "of 4"),
        ] {
            check_refused(&mut hub, PeerMessage::Probe { to, message }, why);
        }
        let open = PeerMessage::Probe { to: 0, message: ProbeMessage::Open(1) };
        assert!(hub.take(open, &(2..4), Duration::ZERO).unwrap_err().contains("core 0"));
        // With all cores lost, no message goes round in circles.
        hub.lose(0..4);
        let message = PeerMessage::Probe { to: 1, message: send(0) };
        assert_eq!(hub.take(message, &ALL, Duration::ZERO).unwrap(), []);
    }
}
