//! Sending a probe exactly when it is due, across cores.
//!
//! Core 0 coordinates. [`OPEN_AHEAD`] before a probe is due it asks every core to open it. When all
//! have done so, it tells a core that has a subscriber to send the probe at its due moment. A core
//! that is too busy to answer delays the probe; that delay is the generator's lag.

use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Driver, MessagePriority};
use throng_engine::{Conn, CoreContext};

use super::probe_ledger::ProbeOrder;
use super::{Generator, GeneratorMessage, RunPhase};
use crate::program::{Broadcast, TemplateVars};

/// Messages about probes between cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeMessage {
    /// Requests to open this probe: its present subscribers' deliveries become expected.
    Open(u32),
    /// Confirms that a core has opened the probe.
    Opened {
        /// The probe.
        number: u32,
        /// The core that has opened it.
        core: CoreId,
        /// Subscribers of that core, whose deliveries are expected.
        subscribers: u64,
    },
    /// Requests to send the probe when it is due.
    Send {
        /// The probe.
        number: u32,
        /// Cores that had no user to send it.
        tried: usize,
    },
    /// Reports that the probe was sent, or that no user can send it.
    Done(u32),
    /// Reports that the probe is not sent: no delivery is expected.
    Drop(u32),
}

/// State of core 0 about the probe that is about to be sent.
#[derive(Debug)]
pub(super) struct ProbeCoordinator {
    /// The next probe to open; `None` once the schedule is over.
    next: Option<u32>,
    opening: Option<Opening>,
}

#[derive(Debug)]
struct Opening {
    number: u32,
    /// Cores that have not opened it yet. At 0 the coordinator waits for [`ProbeMessage::Done`].
    cores_pending: usize,
    /// A core that has a user to send it.
    sender: Option<CoreId>,
}

impl ProbeCoordinator {
    pub(super) fn new() -> Self {
        Self { next: Some(1), opening: None }
    }

    /// Stops opening probes.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.opening.is_none()
    }
}

impl Generator {
    /// Returns the moment at which probes need this core.
    pub(super) fn probes_due(&self) -> Instant {
        let Some(probes) = &self.probes else { return Instant::FAR };
        let next = self.coordinator.as_ref().and_then(|coordinator| coordinator.next);
        let opens =
            next.map_or(Instant::FAR, |number| probes.due_at(number).saturating_sub(OPEN_AHEAD));
        let sends = probes.to_send.front();
        let sends = sends.map_or(Instant::FAR, |order| probes.due_at(order.number));
        opens.min(sends).min(probes.expires())
    }

    /// Opens, sends and expires the probes that are due.
    pub(super) fn run_probes<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
    ) {
        let now = cx.now();
        let Some(probes) = &mut self.probes else { return };
        probes.expire(now, &mut self.stats);
        if let Some(order) = probes.next_to_send(now) {
            self.send_probe(cx, order);
        }
        let (Some(probes), Some(coordinator)) = (&self.probes, &self.coordinator) else { return };
        if let Some(number) =
            coordinator.next.filter(|number| probes.due_at(*number) <= now + OPEN_AHEAD)
        {
            self.begin_probe(cx, number);
        }
    }

    /// Reports whether no probe is in progress on this core.
    pub(super) fn probes_are_idle(&self) -> bool {
        self.probes.as_ref().is_none_or(super::probe_ledger::ProbeLedger::is_idle)
            && self.coordinator.as_ref().is_none_or(ProbeCoordinator::is_idle)
    }

    /// Handles a message about probes from another core.
    pub(super) fn probe_message_received<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        message: ProbeMessage,
    ) {
        let Some(probes) = &mut self.probes else { return };
        match message {
            ProbeMessage::Open(number) => {
                // Deliveries to users that are leaving are not expected.
                let subscribers = match self.run_phase {
                    RunPhase::Leaving => 0,
                    RunPhase::Running | RunPhase::Finishing(_) => {
                        probes.open(number, &mut self.stats)
                    }
                };
                let core = cx.core();
                send_to_core(
                    cx,
                    COORDINATOR_CORE,
                    ProbeMessage::Opened { number, core, subscribers },
                );
            }
            ProbeMessage::Opened { number, core, subscribers } => {
                self.probe_opened(cx, number, core, subscribers);
            }
            // Another core may have a user that stays and can send it.
            ProbeMessage::Send { number, tried } if self.run_phase == RunPhase::Leaving => {
                self.send_probe(cx, ProbeOrder { number, tried });
            }
            ProbeMessage::Send { number, tried } => {
                probes.to_send.push_back(ProbeOrder { number, tried });
            }
            ProbeMessage::Done(number) => self.probe_done(number),
            ProbeMessage::Drop(number) => probes.drop_probe(number, &mut self.stats),
        }
    }

    /// Requests all cores to open probe `number`.
    fn begin_probe<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
    ) {
        let (Some(coordinator), Some(probes)) = (&mut self.coordinator, &mut self.probes) else {
            return;
        };
        coordinator.next = number.checked_add(1);
        let overtaken = coordinator.opening.take();
        let cores = self.cores;
        coordinator.opening = Some(Opening { number, cores_pending: cores, sender: None });
        self.stats.probe(number).counters.intended += 1;
        let subscribers = probes.open(number, &mut self.stats);
        if let Some(Opening { number, cores_pending: 1.., .. }) = overtaken {
            // A core did not answer for a whole period.
            self.drop_probe(cx, number);
        }
        (0..cores).filter(|core| *core != COORDINATOR_CORE).for_each(|core| {
            send_to_core(cx, core, ProbeMessage::Open(number));
        });
        self.probe_opened(cx, number, COORDINATOR_CORE, subscribers);
    }

    /// Notes that core `core` has opened probe `number`. After the last core, the probe is sent.
    fn probe_opened<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
        core: CoreId,
        subscribers: u64,
    ) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let Some(opening) = coordinator.opening.as_mut().filter(|opening| opening.number == number)
        else {
            return;
        };
        opening.cores_pending -= 1;
        if subscribers > 0 {
            opening.sender.get_or_insert(core);
        }
        if opening.cores_pending > 0 {
            return;
        }
        match opening.sender {
            None => {
                self.stats.probe(number).counters.skipped += 1;
                self.probe_done(number);
            }
            Some(COORDINATOR_CORE) => {
                if let Some(probes) = &mut self.probes {
                    probes.to_send.push_back(ProbeOrder { number, tried: 0 });
                }
            }
            Some(core) => send_to_core(cx, core, ProbeMessage::Send { number, tried: 0 }),
        }
    }

    /// Sends a probe that is due through a user of this core. If this core has none, asks the next
    /// core.
    fn send_probe<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        order: ProbeOrder,
    ) {
        let ProbeOrder { number, tried } = order;
        let sender = if self.run_phase == RunPhase::Leaving { None } else { self.probe_sender(cx) };
        let sent = sender.and_then(|key| cx.with(key, |conn| self.write_probe(conn, number)));
        if sent == Some(true) {
            let Some(probes) = &self.probes else { return };
            let late_us = cx.driver().now().micros_since(probes.due_at(number));
            self.stats.lag.record_us(late_us);
            self.stats.probe(number).counters.sent += 1;
            self.report_probe_done(cx, number);
        } else if tried + 1 < self.cores {
            let next = (cx.core() + 1) % self.cores;
            send_to_core(cx, next, ProbeMessage::Send { number, tried: tried + 1 });
        } else {
            // All users have left since it was opened.
            self.stats.probe(number).counters.skipped += 1;
            self.drop_probe(cx, number);
            self.report_probe_done(cx, number);
        }
    }

    fn report_probe_done<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
    ) {
        match cx.core() {
            COORDINATOR_CORE => self.probe_done(number),
            _ => send_to_core(cx, COORDINATOR_CORE, ProbeMessage::Done(number)),
        }
    }

    fn probe_done(&mut self, number: u32) {
        if let Some(coordinator) = &mut self.coordinator
            && coordinator.opening.as_ref().is_some_and(|opening| opening.number == number)
        {
            coordinator.opening = None;
        }
    }

    /// Closes all probes when all users leave: no further delivery is expected and no probe is
    /// sent.
    pub(super) fn close_probes(&mut self) {
        if let Some(probes) = &mut self.probes {
            probes.close(&mut self.stats);
        }
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.next = None;
            // If a core already has the order to send it, that core counts it.
            if let Some(Opening { number, cores_pending: 1.., .. }) = coordinator.opening.take() {
                self.stats.probe(number).counters.skipped += 1;
            }
        }
    }

    /// Drops a probe that no user can send: no delivery is expected.
    fn drop_probe<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
    ) {
        if let Some(probes) = &mut self.probes {
            probes.drop_probe(number, &mut self.stats);
        }
        let own = cx.core();
        (0..self.cores).filter(|core| *core != own).for_each(|core| {
            send_to_core(cx, core, ProbeMessage::Drop(number));
        });
    }

    /// Returns a user that can send a probe: the sender of the last one, if it still can.
    fn probe_sender<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
    ) -> Option<Key> {
        let probes = self.probes.as_mut()?;
        let last_sender = probes.sender.and_then(|index| cx.key_at(index));
        let mut can_send = |key: &Key| cx.state(*key).is_some_and(|user| user.can_send_probe());
        if let Some(key) = last_sender.filter(&mut can_send) {
            return Some(key);
        }
        let keys = cx.keys();
        let found =
            keys.into_iter().find(|key| cx.state(*key).is_some_and(|user| user.can_send_probe()));
        probes.sender = found.map(Key::index);
        found
    }

    /// Writes probe `number` to the user's connection. Returns false if the user cannot send it.
    fn write_probe<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        number: u32,
    ) -> bool {
        let config = std::sync::Arc::clone(&self.config);
        let (Some(probe), Some(probes)) = (config.program.probe(), &mut self.probes) else {
            return false;
        };
        if !conn.is_open() {
            return false;
        }
        let user = conn.state();
        let mut vars =
            TemplateVars { user_id: user.id, counter: user.counter.into(), prng: user.prng };
        let buffers = &mut self.buffers;
        let template = match &probe.broadcast {
            Broadcast::Text(template) | Broadcast::Json(template) => template,
            Broadcast::Push { payload, .. } => payload,
        };
        buffers.text.clear();
        template.render(&mut vars, &mut buffers.text);
        buffers.payload.clear();
        match &probe.broadcast {
            Broadcast::Text(_) => {
                probes.marker.mark_text(&buffers.text, number, &mut buffers.payload)
            }
            _ => probes.marker.mark_object(&buffers.text, number, &mut buffers.payload),
        }
        if !probe.to_sender {
            probes.exclude_sender(user, number, &mut self.stats);
        }
        user.prng = vars.prng;
        match &probe.broadcast {
            Broadcast::Text(_) | Broadcast::Json(_) => {
                std::mem::swap(&mut self.buffers.text, &mut self.buffers.payload);
                self.write_text(conn);
                true
            }
            Broadcast::Push { topic, event, .. } => {
                self.buffers.event.clear();
                event.render(&mut vars, &mut self.buffers.event);
                self.push_probe(conn, topic)
            }
        }
    }
}

fn send_to_core<D: Driver<Message = GeneratorMessage>>(
    cx: &mut CoreContext<D, Generator>,
    core: CoreId,
    message: ProbeMessage,
) {
    // Control messages are never refused.
    let _ = cx.send_message(core, GeneratorMessage::Probe(message), MessagePriority::Control);
}

/// The core that coordinates probes.
const COORDINATOR_CORE: CoreId = 0;
/// Time between opening a probe and its due moment.
const OPEN_AHEAD: Duration = Duration::from_millis(20);
