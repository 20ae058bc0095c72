//! How the cores send a probe together, exactly when it is due.
//!
//! Core 0 leads. [`LEAD`] before a probe is due it has every core open it; when all have said so, a core that has
//! somebody to send it is told to, at the moment at which it is due. A core that is too busy to answer delays the
//! probe, and that delay is the generator's lag.

use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Driver, MessagePriority};
use throng_engine::{Conn, CoreContext};

use super::probe_ledger::ProbeOrder;
use super::{Generator, GeneratorMessage, RunPhase};
use crate::program::{Broadcast, TemplateVars};

/// What cores tell one another about probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeMessage {
    /// Count on everybody who hears probes now, and say so.
    Open(u32),
    /// It is open on that core.
    Opened {
        /// Which probe.
        number: u32,
        /// Where.
        core: CoreId,
        /// How many are counted on there.
        hearers: u64,
    },
    /// Send it when it is due.
    Send {
        /// Which probe.
        number: u32,
        /// Cores that had nobody to send it.
        tried: usize,
    },
    /// It has been sent, or nobody is left who could.
    Done(u32),
    /// It is not sent: count on nobody.
    Drop(u32),
}

/// What core 0 knows of the probe that is about to be sent.
#[derive(Debug)]
pub(super) struct ProbeCoordinator {
    /// The next probe to be opened; nothing once the schedule is over.
    next: Option<u32>,
    opening: Option<Opening>,
}

#[derive(Debug)]
struct Opening {
    number: u32,
    /// Cores that have not opened it yet. When there is none, it waits to hear that the probe has been sent.
    waits_for: usize,
    /// A core with somebody to send it.
    speaker: Option<CoreId>,
}

impl ProbeCoordinator {
    pub(super) fn new() -> Self {
        Self { next: Some(1), opening: None }
    }

    /// No further probe is opened.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.opening.is_none()
    }
}

impl Generator {
    /// When probes need this core.
    pub(super) fn probes_due(&self) -> Instant {
        let Some(probes) = &self.probes else { return Instant::FAR };
        let next = self.lead.as_ref().and_then(|lead| lead.next);
        let opens = next.map_or(Instant::FAR, |number| probes.due_at(number).saturating_sub(LEAD));
        let sends = probes.to_send.front();
        let sends = sends.map_or(Instant::FAR, |order| probes.due_at(order.number));
        opens.min(sends).min(probes.expires())
    }

    /// Does what is due.
    pub(super) fn run_probes<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
    ) {
        let now = cx.now();
        let Some(probes) = &mut self.probes else { return };
        probes.expire(now, &mut self.stats);
        if let Some(order) = probes.next_to_send(now) {
            self.send_probe(cx, order);
        }
        let (Some(probes), Some(lead)) = (&self.probes, &self.lead) else { return };
        if let Some(number) = lead.next.filter(|number| probes.due_at(*number) <= now + LEAD) {
            self.lead_probe(cx, number);
        }
    }

    /// Whether nothing of the probes is under way on this core.
    pub(super) fn probes_are_idle(&self) -> bool {
        self.probes.as_ref().is_none_or(super::probe_ledger::ProbeLedger::is_idle)
            && self.lead.as_ref().is_none_or(ProbeCoordinator::is_idle)
    }

    /// Something about probes has come from another core.
    pub(super) fn probe_mail<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        mail: ProbeMessage,
    ) {
        let Some(probes) = &mut self.probes else { return };
        match mail {
            ProbeMessage::Open(number) => {
                // Who is leaving is not counted on.
                let hearers = match self.stage {
                    RunPhase::Leaving => 0,
                    RunPhase::Running | RunPhase::Finishing(_) => {
                        probes.open(number, &mut self.stats)
                    }
                };
                let core = cx.core();
                tell(cx, LEADER, ProbeMessage::Opened { number, core, hearers });
            }
            ProbeMessage::Opened { number, core, hearers } => {
                self.probe_opened(cx, number, core, hearers);
            }
            // Another core may have somebody to send it who stays.
            ProbeMessage::Send { number, tried } if self.stage == RunPhase::Leaving => {
                self.send_probe(cx, ProbeOrder { number, tried });
            }
            ProbeMessage::Send { number, tried } => {
                probes.to_send.push_back(ProbeOrder { number, tried });
            }
            ProbeMessage::Done(number) => self.probe_done(number),
            ProbeMessage::Drop(number) => probes.drop_probe(number, &mut self.stats),
        }
    }

    /// Has every core open probe `number`.
    fn lead_probe<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
    ) {
        let (Some(lead), Some(probes)) = (&mut self.lead, &mut self.probes) else { return };
        lead.next = number.checked_add(1);
        let overtaken = lead.opening.take();
        let cores = self.cores;
        lead.opening = Some(Opening { number, waits_for: cores, speaker: None });
        self.stats.probe(number).counters.intended += 1;
        let hearers = probes.open(number, &mut self.stats);
        if let Some(Opening { number, waits_for: 1.., .. }) = overtaken {
            // A core did not answer for a whole period.
            self.drop_probe(cx, number);
        }
        (0..cores).filter(|core| *core != LEADER).for_each(|core| {
            tell(cx, core, ProbeMessage::Open(number));
        });
        self.probe_opened(cx, number, LEADER, hearers);
    }

    /// Core `core` has opened probe `number`; when it was the last one, the probe is sent.
    fn probe_opened<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
        core: CoreId,
        hearers: u64,
    ) {
        let Some(lead) = &mut self.lead else { return };
        let Some(opening) = lead.opening.as_mut().filter(|opening| opening.number == number) else {
            return;
        };
        opening.waits_for -= 1;
        if hearers > 0 {
            opening.speaker.get_or_insert(core);
        }
        if opening.waits_for > 0 {
            return;
        }
        match opening.speaker {
            None => {
                self.stats.probe(number).counters.skipped += 1;
                self.probe_done(number);
            }
            Some(LEADER) => {
                if let Some(probes) = &mut self.probes {
                    probes.to_send.push_back(ProbeOrder { number, tried: 0 });
                }
            }
            Some(core) => tell(cx, core, ProbeMessage::Send { number, tried: 0 }),
        }
    }

    /// Has somebody send a probe that is due. Where nobody is left on this core who could, the next core is asked.
    fn send_probe<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        order: ProbeOrder,
    ) {
        let ProbeOrder { number, tried } = order;
        let speaker = if self.stage == RunPhase::Leaving { None } else { self.speaker(cx) };
        let sent = speaker.and_then(|key| cx.with(key, |conn| self.say_probe(conn, number)));
        if sent == Some(true) {
            let Some(probes) = &self.probes else { return };
            let late_us = cx.driver().now().micros_since(probes.due_at(number));
            self.stats.lag.record_us(late_us);
            self.stats.probe(number).counters.sent += 1;
            self.tell_done(cx, number);
        } else if tried + 1 < self.cores {
            let next = (cx.core() + 1) % self.cores;
            tell(cx, next, ProbeMessage::Send { number, tried: tried + 1 });
        } else {
            // Everybody has left since it was opened.
            self.stats.probe(number).counters.skipped += 1;
            self.drop_probe(cx, number);
            self.tell_done(cx, number);
        }
    }

    fn tell_done<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
    ) {
        match cx.core() {
            LEADER => self.probe_done(number),
            _ => tell(cx, LEADER, ProbeMessage::Done(number)),
        }
    }

    fn probe_done(&mut self, number: u32) {
        if let Some(lead) = &mut self.lead
            && lead.opening.as_ref().is_some_and(|opening| opening.number == number)
        {
            lead.opening = None;
        }
    }

    /// Everybody leaves: what was not delivered need not be, and what was not sent need not be sent.
    pub(super) fn close_probes(&mut self) {
        if let Some(probes) = &mut self.probes {
            probes.close(&mut self.stats);
        }
        if let Some(lead) = &mut self.lead {
            lead.next = None;
            // Whoever was told to send one counts it.
            if let Some(Opening { number, waits_for: 1.., .. }) = lead.opening.take() {
                self.stats.probe(number).counters.skipped += 1;
            }
        }
    }

    /// Nobody can send it: nobody is to wait for it.
    fn drop_probe<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        number: u32,
    ) {
        if let Some(probes) = &mut self.probes {
            probes.drop_probe(number, &mut self.stats);
        }
        let own = cx.core();
        (0..self.cores).filter(|core| *core != own).for_each(|core| {
            tell(cx, core, ProbeMessage::Drop(number));
        });
    }

    /// A user that can send a probe: the one who sent the last one, if it still can.
    fn speaker<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
    ) -> Option<Key> {
        let probes = self.probes.as_mut()?;
        let noted = probes.speaker.and_then(|place| cx.key_at(place));
        let mut may_speak = |key: &Key| cx.state(*key).is_some_and(|user| user.may_speak());
        if let Some(key) = noted.filter(&mut may_speak) {
            return Some(key);
        }
        let keys = cx.keys();
        let found =
            keys.into_iter().find(|key| cx.state(*key).is_some_and(|user| user.may_speak()));
        probes.speaker = found.map(Key::index);
        found
    }

    /// The user sends probe `number`. False when it cannot.
    fn say_probe<D: Driver<Mail = GeneratorMessage>>(
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
            probes.excuse(user, number, &mut self.stats);
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

fn tell<D: Driver<Mail = GeneratorMessage>>(
    cx: &mut CoreContext<D, Generator>,
    core: CoreId,
    mail: ProbeMessage,
) {
    // Control mail is never refused.
    let _ = cx.send_message(core, GeneratorMessage::Probe(mail), MessagePriority::Control);
}

/// The core that leads.
const LEADER: CoreId = 0;
/// How long before a probe is due it is opened.
const LEAD: Duration = Duration::from_millis(20);
