//! The place where cores of several machines meet: the coordinator's.

use std::ops::Range;
use std::time::Duration;

use super::{ALL_USERS, CueCount, OPENED_AHEAD, PeerMessage, PeerOrder};
use throng_report::CueWaits;

use crate::generator::ProbeMessage;
use crate::program::{Cue, CueKind};

/// Passes messages about probes between cores, and decides when users that wait for one another go
/// on.
#[derive(Debug)]
pub struct PeerHub {
    slots: Vec<Slot>,
    cues: Vec<HubCue>,
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
        let CueCount { come, left, absent, .. } = self.count;
        (come + absent).saturating_sub(left + self.let_go)
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
        Self { slots: vec![Slot::default(); slots], cues: cues.iter().map(cue).collect() }
    }

    /// Takes what a core says, `now` after the run began. Returns what other cores hear of it.
    pub fn take(&mut self, message: PeerMessage, now: Duration) -> Vec<PeerOrder> {
        match message {
            PeerMessage::Probe { to, message } => self.pass(to, message),
            PeerMessage::CueCount { from, cue, count } => {
                let Some(known) = self.cues.get_mut(usize::from(cue)) else { return Vec::new() };
                let Some(users) = known.slots.get_mut(from) else { return Vec::new() };
                users.count = count;
                // A hub that has taken the run over learns here what the one before has decided.
                users.let_go = users.let_go.max(count.gone_on + count.absent);
                known.open_groups(cue, now)
            }
            PeerMessage::Raise { cue } => self.raise(cue, now),
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

    fn pass(&mut self, to: usize, message: ProbeMessage) -> Vec<PeerOrder> {
        if let ProbeMessage::Opened { number, core, .. } = message
            && let Some(slot) = self.slots.get_mut(core)
        {
            slot.opening.take_if(|opening| *opening == number);
        }
        let Some(slot) = self.slots.get_mut(to) else { return Vec::new() };
        if !slot.is_lost {
            if let ProbeMessage::Open(number) = message {
                slot.opening = Some(number);
            }
            return vec![PeerOrder::Probe { to, message }];
        }
        // It answers for a core that cannot.
        match message {
            ProbeMessage::Open(number) => {
                self.pass(PROBE_COORDINATOR, opened_by_no_core(number, to))
            }
            ProbeMessage::Send { number, tried } if tried + 1 < self.slots.len() => {
                let next = (to + 1) % self.slots.len();
                self.pass(next, ProbeMessage::Send { number, tried: tried + 1 })
            }
            _ => Vec::new(),
        }
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
        let mut waiting: u64 = self.slots.iter().map(SlotUsers::waiting).sum();
        self.waiting_most = self.waiting_most.max(waiting);
        let CueKind::Barrier { users } = self.kind else { return Vec::new() };
        let size = u64::from(users).max(1);
        let at_us = (now + OPENED_AHEAD).as_micros() as u64;
        let mut orders = Vec::new();
        while waiting >= size {
            let mut missing = size;
            for (to, slot) in self.slots.iter_mut().enumerate() {
                let users = slot.waiting().min(missing);
                if users > 0 {
                    slot.let_go += users;
                    missing -= users;
                    orders.push(PeerOrder::OpenCue { to, cue, users, at_us });
                }
            }
            waiting -= size;
            self.opened += 1;
        }
        orders
    }
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

    fn come(
        hub: &mut PeerHub,
        from: usize,
        come: u64,
        left: u64,
        absent: u64,
    ) -> Vec<(usize, u64)> {
        let count = CueCount { come, left, absent, gone_on: 0 };
        let orders = hub.take(PeerMessage::CueCount { from, cue: 0, count }, Duration::ZERO);
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
        assert_eq!(come(&mut hub, 2, 7, 0, 0), [(0, 2), (1, 2), (2, 1), (2, 5)]);
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
        assert_eq!(hub.take(raise.clone(), Duration::from_secs(7)), [order(0), order(1)]);
        assert_eq!(hub.take(raise, Duration::from_secs(8)), []);
    }

    #[test]
    fn a_lost_machine_opens_no_probe_and_sends_none() {
        let mut hub = hub(CueKind::Signal, 4);
        let to = |to, message| PeerMessage::Probe { to, message };
        let passed = |to, message| PeerOrder::Probe { to, message };
        let open = ProbeMessage::Open(1);
        assert_eq!(hub.take(to(1, open), Duration::ZERO), [passed(1, open)]);
        assert_eq!(hub.take(to(2, open), Duration::ZERO), [passed(2, open)]);
        let opened = ProbeMessage::Opened { number: 1, core: 2, subscribers: 5 };
        assert_eq!(hub.take(to(0, opened), Duration::ZERO), [passed(0, opened)]);
        // One of its cores has answered, the other has not.
        let unopened = |number, core| passed(0, opened_by_no_core(number, core));
        assert_eq!(hub.lose(1..3), [unopened(1, 1)]);
        assert_eq!(hub.take(to(2, ProbeMessage::Open(2)), Duration::ZERO), [unopened(2, 2)]);
        let send = |tried| ProbeMessage::Send { number: 2, tried };
        assert_eq!(hub.take(to(1, send(0)), Duration::ZERO), [passed(3, send(2))]);
    }
}
