//! How the cores send a probe together, exactly when it is due.
//!
//! Core 0 leads. [`LEAD`] before a probe is due it has every core open it; when all have said so, a core that has
//! somebody to send it is told to, at the moment at which it is due. A core that is too busy to answer delays the
//! probe, and that delay is the generator's lag.

use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{CoreId, Driver, MailKind};
use throng_engine::{Conn, Desk};

use super::prober::Order;
use super::{Generator, Mail, Stage};
use crate::program::{Broadcast, TemplateVars};

/// What cores tell one another about probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeMail {
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
pub(super) struct Lead {
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

impl Lead {
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
        let Some(prober) = &self.prober else { return Instant::FAR };
        let next = self.lead.as_ref().and_then(|lead| lead.next);
        let opens = next.map_or(Instant::FAR, |number| prober.due_at(number).saturating_sub(LEAD));
        let sends = prober.to_send.front();
        let sends = sends.map_or(Instant::FAR, |order| prober.due_at(order.number));
        opens.min(sends).min(prober.expires())
    }

    /// Does what is due.
    pub(super) fn run_probes<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>) {
        let now = desk.now();
        let Some(prober) = &mut self.prober else { return };
        prober.expire(now, &mut self.slate);
        if let Some(order) = prober.next_to_send(now) {
            self.send_probe(desk, order);
        }
        let (Some(prober), Some(lead)) = (&self.prober, &self.lead) else { return };
        if let Some(number) = lead.next.filter(|number| prober.due_at(*number) <= now + LEAD) {
            self.lead_probe(desk, number);
        }
    }

    /// Whether nothing of the probes is under way on this core.
    pub(super) fn probes_are_idle(&self) -> bool {
        self.prober.as_ref().is_none_or(super::prober::Prober::is_idle)
            && self.lead.as_ref().is_none_or(Lead::is_idle)
    }

    /// Something about probes has come from another core.
    pub(super) fn probe_mail<D: Driver<Mail = Mail>>(
        &mut self,
        desk: &mut Desk<D, Self>,
        mail: ProbeMail,
    ) {
        let Some(prober) = &mut self.prober else { return };
        match mail {
            ProbeMail::Open(number) => {
                // Who is leaving is not counted on.
                let hearers = match self.stage {
                    Stage::Leaving => 0,
                    Stage::Running | Stage::Finishing(_) => prober.open(number, &mut self.slate),
                };
                let core = desk.core();
                tell(desk, LEADER, ProbeMail::Opened { number, core, hearers });
            }
            ProbeMail::Opened { number, core, hearers } => {
                self.probe_opened(desk, number, core, hearers);
            }
            // Another core may have somebody to send it who stays.
            ProbeMail::Send { number, tried } if self.stage == Stage::Leaving => {
                self.send_probe(desk, Order { number, tried });
            }
            ProbeMail::Send { number, tried } => {
                prober.to_send.push_back(Order { number, tried });
            }
            ProbeMail::Done(number) => self.probe_done(number),
            ProbeMail::Drop(number) => prober.drop_probe(number, &mut self.slate),
        }
    }

    /// Has every core open probe `number`.
    fn lead_probe<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>, number: u32) {
        let (Some(lead), Some(prober)) = (&mut self.lead, &mut self.prober) else { return };
        lead.next = number.checked_add(1);
        let overtaken = lead.opening.take();
        let cores = self.cores;
        lead.opening = Some(Opening { number, waits_for: cores, speaker: None });
        self.slate.probe(number).counters.intended += 1;
        let hearers = prober.open(number, &mut self.slate);
        if let Some(Opening { number, waits_for: 1.., .. }) = overtaken {
            // A core did not answer for a whole period.
            self.drop_probe(desk, number);
        }
        (0..cores).filter(|core| *core != LEADER).for_each(|core| {
            tell(desk, core, ProbeMail::Open(number));
        });
        self.probe_opened(desk, number, LEADER, hearers);
    }

    /// Core `core` has opened probe `number`; when it was the last one, the probe is sent.
    fn probe_opened<D: Driver<Mail = Mail>>(
        &mut self,
        desk: &mut Desk<D, Self>,
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
                self.slate.probe(number).counters.skipped += 1;
                self.probe_done(number);
            }
            Some(LEADER) => {
                if let Some(prober) = &mut self.prober {
                    prober.to_send.push_back(Order { number, tried: 0 });
                }
            }
            Some(core) => tell(desk, core, ProbeMail::Send { number, tried: 0 }),
        }
    }

    /// Has somebody send a probe that is due. Where nobody is left on this core who could, the next core is asked.
    fn send_probe<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>, order: Order) {
        let Order { number, tried } = order;
        let speaker = if self.stage == Stage::Leaving { None } else { self.speaker(desk) };
        let sent = speaker.and_then(|key| desk.with(key, |conn| self.say_probe(conn, number)));
        if sent == Some(true) {
            let Some(prober) = &self.prober else { return };
            let late_us = desk.driver().now().micros_since(prober.due_at(number));
            self.slate.lag.record_us(late_us);
            self.slate.probe(number).counters.sent += 1;
            self.tell_done(desk, number);
        } else if tried + 1 < self.cores {
            let next = (desk.core() + 1) % self.cores;
            tell(desk, next, ProbeMail::Send { number, tried: tried + 1 });
        } else {
            // Everybody has left since it was opened.
            self.slate.probe(number).counters.skipped += 1;
            self.drop_probe(desk, number);
            self.tell_done(desk, number);
        }
    }

    fn tell_done<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>, number: u32) {
        match desk.core() {
            LEADER => self.probe_done(number),
            _ => tell(desk, LEADER, ProbeMail::Done(number)),
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
        if let Some(prober) = &mut self.prober {
            prober.close(&mut self.slate);
        }
        if let Some(lead) = &mut self.lead {
            lead.next = None;
            // Whoever was told to send one counts it.
            if let Some(Opening { number, waits_for: 1.., .. }) = lead.opening.take() {
                self.slate.probe(number).counters.skipped += 1;
            }
        }
    }

    /// Nobody can send it: nobody is to wait for it.
    fn drop_probe<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>, number: u32) {
        if let Some(prober) = &mut self.prober {
            prober.drop_probe(number, &mut self.slate);
        }
        let own = desk.core();
        (0..self.cores).filter(|core| *core != own).for_each(|core| {
            tell(desk, core, ProbeMail::Drop(number));
        });
    }

    /// A user that can send a probe: the one who sent the last one, if it still can.
    fn speaker<D: Driver<Mail = Mail>>(&mut self, desk: &mut Desk<D, Self>) -> Option<Key> {
        let prober = self.prober.as_mut()?;
        let noted = prober.speaker.and_then(|place| desk.key_at(place));
        let mut may_speak = |key: &Key| desk.state(*key).is_some_and(|user| user.may_speak());
        if let Some(key) = noted.filter(&mut may_speak) {
            return Some(key);
        }
        let keys = desk.keys();
        let found =
            keys.into_iter().find(|key| desk.state(*key).is_some_and(|user| user.may_speak()));
        prober.speaker = found.map(Key::index);
        found
    }

    /// The user sends probe `number`. False when it cannot.
    fn say_probe<D: Driver<Mail = Mail>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        number: u32,
    ) -> bool {
        let config = std::sync::Arc::clone(&self.config);
        let (Some(probe), Some(prober)) = (config.program.probe(), &mut self.prober) else {
            return false;
        };
        if !conn.is_open() {
            return false;
        }
        let user = conn.state();
        let mut vars =
            TemplateVars { user_id: user.id, counter: user.counter.into(), prng: user.prng };
        let pens = &mut self.pens;
        let template = match &probe.broadcast {
            Broadcast::Text(template) | Broadcast::Json(template) => template,
            Broadcast::Push { payload, .. } => payload,
        };
        pens.text.clear();
        template.render(&mut vars, &mut pens.text);
        pens.payload.clear();
        match &probe.broadcast {
            Broadcast::Text(_) => prober.marker.mark_text(&pens.text, number, &mut pens.payload),
            _ => prober.marker.mark_object(&pens.text, number, &mut pens.payload),
        }
        if !probe.to_sender {
            prober.excuse(user, number, &mut self.slate);
        }
        user.prng = vars.prng;
        match &probe.broadcast {
            Broadcast::Text(_) | Broadcast::Json(_) => {
                std::mem::swap(&mut self.pens.text, &mut self.pens.payload);
                self.write_text(conn);
                true
            }
            Broadcast::Push { topic, event, .. } => {
                self.pens.event.clear();
                event.render(&mut vars, &mut self.pens.event);
                self.push_probe(conn, topic)
            }
        }
    }
}

fn tell<D: Driver<Mail = Mail>>(desk: &mut Desk<D, Generator>, core: CoreId, mail: ProbeMail) {
    // Control mail is never refused.
    let _ = desk.post(core, Mail::Probe(mail), MailKind::Control);
}

/// The core that leads.
const LEADER: CoreId = 0;
/// How long before a probe is due it is opened.
const LEAD: Duration = Duration::from_millis(20);
