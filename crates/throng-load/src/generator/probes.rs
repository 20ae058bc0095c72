//! Probes on one core, and how they are sent exactly when they are due, across cores.
//!
//! Core 0 coordinates. [`OPEN_AHEAD`] before a probe is due it asks every core to open it. When all
//! have done so, it tells a core that has a subscriber to send the probe at its due moment. A core
//! that is too busy to answer delays the probe; that delay is the generator's lag.
//!
//! The probes stand beside the users: a user does not know them. After each of a user's inputs,
//! [`Probes::on_user`] looks at whether the user receives probes now.

use std::time::Duration;

use throng_base::Instant;
use throng_driver::CoreId;
use throng_proto::phoenix::client;
use throng_proto::phoenix::{Decimal, PhoenixPayload};

use super::config::GeneratorConfig;
use super::core_stats::CoreStats;
use super::probe_ledger::{ProbeLedger, ProbeOrder};
use super::probe_message::ProbeMessage;
use crate::program::{Broadcast, Program, VariableScope};
use crate::protocols::MessageForm;
use crate::user::{AnswerTiming, Encoder, Receipts, User, UserSession, as_text};

/// The probes of one core.
pub(super) struct Probes {
    ledger: ProbeLedger,
    /// Coordinator, on one core only.
    coordinator: Option<Coordinator>,
    /// User that pushed the last probe, and the ref of that push.
    pushed: Option<(u64, u32)>,
    /// Time between opening a probe and its due moment.
    open_ahead: Duration,
    core: CoreId,
    cores: usize,
    /// Messages to other cores, which the caller sends.
    pub(super) outbox: Vec<(CoreId, ProbeMessage)>,
}

/// State of core 0 about the probe that is about to be sent.
#[derive(Debug)]
struct Coordinator {
    /// The next probe to open; `None` once the schedule is over.
    next: Option<u32>,
    opening: Option<Opening>,
}

#[derive(Debug)]
struct Opening {
    number: u32,
    /// Cores that have not opened it yet. At 0 the coordinator waits for [`ProbeMessage::Done`].
    cores_pending: usize,
    /// Whether each core has opened it: one that was lost answers again when it is back.
    has_opened: Vec<bool>,
    /// A core that has a user to send it.
    sender: Option<CoreId>,
}

/// A user that sends a probe, and where it writes.
pub(super) struct ProbeSender<'a> {
    pub(super) program: &'a Program,
    pub(super) user: &'a mut User,
    pub(super) session: &'a mut UserSession,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) encoder: &'a mut Encoder,
}

impl Probes {
    /// Creates the probes of core `core` of `cores`, those of all machines; `None` if the scenario
    /// has no probe.
    pub(super) fn new(config: &GeneratorConfig, core: CoreId, cores: usize) -> Option<Self> {
        let coordinator = Coordinator { next: Some(1), opening: None };
        Some(Self {
            ledger: ProbeLedger::new(config)?,
            coordinator: (core == COORDINATOR_CORE).then_some(coordinator),
            pushed: None,
            open_ahead: match config.peers {
                None => OPEN_AHEAD,
                Some(_) => OPEN_AHEAD_OF_MACHINES,
            },
            core,
            cores,
            outbox: Vec::new(),
        })
    }

    /// Returns the moment at which probes need this core.
    pub(super) fn due(&self) -> Instant {
        let next = self.coordinator.as_ref().and_then(|coordinator| coordinator.next);
        let opens = next.map_or(Instant::FAR, |number| {
            self.ledger.due_at(number).saturating_sub(self.open_ahead)
        });
        let sends = self.ledger.to_send.front();
        let sends = sends.map_or(Instant::FAR, |order| self.ledger.due_at(order.number));
        opens.min(sends).min(self.ledger.expires())
    }

    /// Returns the due moment of probe `number`.
    pub(super) fn due_at(&self, number: u32) -> Instant {
        self.ledger.due_at(number)
    }

    /// Reports whether no probe is in progress on this core.
    pub(super) fn is_idle(&self) -> bool {
        let is_opening = |coordinator: &Coordinator| coordinator.opening.is_some();
        self.ledger.is_idle() && !self.coordinator.as_ref().is_some_and(is_opening)
    }

    /// Reports whether users of this core have deliveries to come.
    pub(super) fn awaits_deliveries(&self) -> bool {
        self.ledger.awaits_deliveries()
    }

    /// Returns the table index of the user that sent the last probe.
    pub(super) fn last_sender(&self) -> Option<u32> {
        self.ledger.sender
    }

    /// Notes the table index of the user that sends the next probe.
    pub(super) fn set_sender(&mut self, index: Option<u32>) {
        self.ledger.sender = index;
    }

    /// Expires the probes that are due. Returns the order to send a probe, if it is due.
    pub(super) fn on_due(&mut self, now: Instant, stats: &mut CoreStats) -> Option<ProbeOrder> {
        self.ledger.expire(now, stats);
        self.ledger.next_to_send(now)
    }

    /// Requests all cores to open the next probe, if it is due soon.
    pub(super) fn open_next(&mut self, now: Instant, stats: &mut CoreStats) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let Some(number) = coordinator.next else { return };
        if self.ledger.due_at(number) > now + self.open_ahead {
            return;
        }
        coordinator.next = number.checked_add(1);
        let has_opened = vec![false; self.cores];
        let opening = Opening { number, cores_pending: self.cores, has_opened, sender: None };
        let overtaken = coordinator.opening.replace(opening);
        stats.probe(number).counters.intended += 1;
        let subscribers = self.ledger.open(number, stats);
        if let Some(Opening { number, cores_pending: 1.., .. }) = overtaken {
            // A core did not answer for a whole period.
            self.drop_everywhere(number, stats);
        }
        self.tell_others(ProbeMessage::Open(number));
        self.on_opened(number, COORDINATOR_CORE, subscribers, stats);
    }

    /// Handles a message from another core. Returns an order that this core cannot carry out
    /// because its users leave: another core may have a user that stays.
    pub(super) fn on_message(
        &mut self,
        message: ProbeMessage,
        is_leaving: bool,
        stats: &mut CoreStats,
    ) -> Option<ProbeOrder> {
        match message {
            ProbeMessage::Open(number) => {
                // Deliveries to users that are leaving are not expected.
                let subscribers = if is_leaving { 0 } else { self.ledger.open(number, stats) };
                let opened = ProbeMessage::Opened { number, core: self.core, subscribers };
                self.outbox.push((COORDINATOR_CORE, opened));
            }
            ProbeMessage::Opened { number, core, subscribers } => {
                self.on_opened(number, core, subscribers, stats);
            }
            ProbeMessage::Send { number, tried } if is_leaving => {
                return Some(ProbeOrder { number, tried });
            }
            ProbeMessage::Send { number, tried } => {
                self.ledger.to_send.push_back(ProbeOrder { number, tried });
            }
            ProbeMessage::Done(number) => self.on_done(number),
            ProbeMessage::Drop(number) => self.ledger.drop_probe(number, stats),
        }
        None
    }

    /// Notes that core `core` has opened probe `number`. After the last core, the probe is sent. A
    /// core counts once: one that was lost may answer when others have answered for it.
    fn on_opened(&mut self, number: u32, core: CoreId, subscribers: u64, stats: &mut CoreStats) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let Some(opening) = coordinator.opening.as_mut().filter(|opening| opening.number == number)
        else {
            return;
        };
        match opening.has_opened.get_mut(core) {
            Some(has_opened) if !*has_opened => *has_opened = true,
            _ => return,
        }
        opening.cores_pending -= 1;
        if subscribers > 0 {
            opening.sender.get_or_insert(core);
        }
        if opening.cores_pending > 0 {
            return;
        }
        let order = ProbeOrder { number, tried: 0 };
        match opening.sender {
            None => {
                stats.probe(number).counters.skipped += 1;
                self.on_done(number);
            }
            Some(COORDINATOR_CORE) => self.ledger.to_send.push_back(order),
            Some(core) => self.outbox.push((core, ProbeMessage::Send { number, tried: 0 })),
        }
    }

    /// Notes that a user of this core has sent probe `number`.
    pub(super) fn on_sent(&mut self, number: u32, stats: &mut CoreStats) {
        stats.probe(number).counters.sent += 1;
        self.report_done(number);
    }

    /// Passes an order on to the next core, because this one has no user to send the probe.
    pub(super) fn on_not_sent(&mut self, order: ProbeOrder, stats: &mut CoreStats) {
        let ProbeOrder { number, tried } = order;
        if tried + 1 < self.cores {
            let next = (self.core + 1) % self.cores;
            self.outbox.push((next, ProbeMessage::Send { number, tried: tried + 1 }));
        } else {
            // All users have left since it was opened.
            stats.probe(number).counters.skipped += 1;
            self.drop_everywhere(number, stats);
            self.report_done(number);
        }
    }

    fn report_done(&mut self, number: u32) {
        match self.core {
            COORDINATOR_CORE => self.on_done(number),
            _ => self.outbox.push((COORDINATOR_CORE, ProbeMessage::Done(number))),
        }
    }

    fn on_done(&mut self, number: u32) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.opening.take_if(|opening| opening.number == number);
        }
    }

    /// Drops a probe that no user can send: no delivery is expected.
    fn drop_everywhere(&mut self, number: u32, stats: &mut CoreStats) {
        self.ledger.drop_probe(number, stats);
        self.tell_others(ProbeMessage::Drop(number));
    }

    fn tell_others(&mut self, message: ProbeMessage) {
        let others = (0..self.cores).filter(|core| *core != self.core);
        self.outbox.extend(others.map(|core| (core, message)));
    }

    /// Opens no more probes: the schedule is over.
    pub(super) fn on_schedule_over(&mut self) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.next = None;
        }
    }

    /// Closes all probes when all users leave: no further delivery is expected and no probe is
    /// sent.
    pub(super) fn on_leaving(&mut self, stats: &mut CoreStats) {
        self.ledger.close(stats);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.next = None;
            // If a core already has the order to send it, that core counts it.
            if let Some(Opening { number, cores_pending: 1.., .. }) = coordinator.opening.take() {
                stats.probe(number).counters.skipped += 1;
            }
        }
    }

    /// Subscribes or unsubscribes a user at `index` of the core's table, as its connection and the
    /// condition of the probe's members say. Uses `scratch` to write variables out.
    pub(super) fn on_user(
        &mut self,
        user: &mut User,
        index: u32,
        program: &Program,
        scratch: &mut Vec<u8>,
        stats: &mut CoreStats,
    ) {
        let is_connected = match program.protocol().messages {
            MessageForm::Bytes | MessageForm::Answers => false,
            MessageForm::Messages => user.is_connected(),
            MessageForm::Events => user.channels.with_probe().is_some(),
        };
        let members = program.probe().and_then(|probe| probe.members.as_ref());
        let receives = is_connected
            && members.is_none_or(|members| members.holds(&mut user.scope(program), scratch));
        if receives {
            self.ledger.join(&mut user.receipts, index);
        } else {
            self.ledger.leave(&mut user.receipts, stats);
        }
    }

    /// Counts `message` if it is a delivery of a probe, and reports whether it is.
    pub(super) fn on_delivery(
        &mut self,
        message: &[u8],
        receipts: &mut Receipts,
        timing: AnswerTiming,
        stats: &mut CoreStats,
    ) -> bool {
        let Some(number) = self.ledger.marker.find(message) else { return false };
        self.ledger.receive(receipts, number, timing, stats);
        true
    }

    /// Reports whether request `number` of user `id` was the push of a probe, which is answered.
    pub(super) fn on_reply(&mut self, id: u64, number: u32) -> bool {
        self.pushed.take_if(|pushed| *pushed == (id, number)).is_some()
    }

    /// Writes probe `number` to the sender's connection. Returns false if the user cannot send it.
    pub(super) fn write(
        &mut self,
        number: u32,
        sender: ProbeSender<'_>,
        stats: &mut CoreStats,
    ) -> bool {
        let ProbeSender { program, user, session, out, encoder } = sender;
        let Some(probe) = program.probe() else { return false };
        encoder.payload.clear();
        self.ledger.marker.mark(number, &mut encoder.payload);
        let places_mark = probe.places_mark();
        let mut scope = VariableScope { probe: &encoder.payload, ..user.scope(program) };
        let (Broadcast::Text(template)
        | Broadcast::Json(template)
        | Broadcast::Push { payload: template, .. }) = &probe.broadcast;
        encoder.text.clear();
        template.render(&mut scope, &mut encoder.text);
        let (counter, prng) = (scope.counter, scope.prng);
        user.prng = prng;
        encoder.payload.clear();
        let marker = &self.ledger.marker;
        match &probe.broadcast {
            _ if places_mark => encoder.payload.extend_from_slice(&encoder.text),
            Broadcast::Text(_) => marker.mark_text(&encoder.text, number, &mut encoder.payload),
            _ => marker.mark_object(&encoder.text, number, &mut encoder.payload),
        }
        if !probe.to_sender {
            self.ledger.exclude_sender(&mut user.receipts, number, stats);
        }
        encoder.text.clear();
        if let Broadcast::Push { topic, event, .. } = &probe.broadcast {
            encoder.event.clear();
            let mut scope = VariableScope { counter, prng, ..user.scope(program) };
            event.render(&mut scope, &mut encoder.event);
            let Some(channel) = user.channels.with_probe() else { return false };
            let join_ref = Decimal::new(channel.join_ref.into());
            let number = user.next_ref();
            self.pushed = Some((user.id(), number));
            // Every protocol version can carry JSON.
            let _ = client::push(
                program.handshake(user.handshake.into()).vsn,
                Some(join_ref.as_str()),
                Decimal::new(number.into()).as_str(),
                topic,
                as_text(&encoder.event),
                PhoenixPayload::Json(as_text(&encoder.payload)),
                &mut encoder.text,
            );
        } else {
            std::mem::swap(&mut encoder.text, &mut encoder.payload);
        }
        encoder.write_text(session, user.mask(), out);
        true
    }
}

/// The core that coordinates probes.
const COORDINATOR_CORE: CoreId = 0;
/// Time between opening a probe and its due moment, among the cores of one machine.
const OPEN_AHEAD: Duration = Duration::from_millis(20);
/// The same among several machines, which hear of it over a bus.
const OPEN_AHEAD_OF_MACHINES: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::super::probe_ledger::tests::config;
    use super::*;

    /// Core 0 of three, which has asked the others to open the first probe, and its tallies.
    fn opening() -> (Probes, CoreStats) {
        let mut probes = Probes::new(&config(), COORDINATOR_CORE, 3).unwrap();
        let mut stats = CoreStats::new(COORDINATOR_CORE, 1);
        probes.open_next(probes.due(), &mut stats);
        probes.outbox.clear();
        (probes, stats)
    }

    fn opened(core: CoreId, subscribers: u64) -> ProbeMessage {
        ProbeMessage::Opened { number: 1, core, subscribers }
    }

    #[test]
    fn a_core_counts_once_even_if_others_have_answered_for_it() {
        let (mut probes, mut stats) = opening();
        for _ in 0..5 {
            probes.on_message(opened(1, 7), false, &mut stats);
        }
        assert!(probes.outbox.is_empty(), "core 2 has not opened it: {:?}", probes.outbox);
        for core in [3, CoreId::MAX] {
            probes.on_message(opened(core, 7), false, &mut stats);
        }
        assert!(probes.outbox.is_empty(), "there is no such core");
        probes.on_message(opened(2, 0), false, &mut stats);
        let sends = |probes: &Probes| format!("{:?}", probes.outbox);
        assert_eq!(sends(&probes), "[(1, Send { number: 1, tried: 0 })]");
        for core in 0..3 {
            probes.on_message(opened(core, 7), false, &mut stats);
        }
        assert_eq!(sends(&probes), "[(1, Send { number: 1, tried: 0 })]", "it is sent once");
    }
}
