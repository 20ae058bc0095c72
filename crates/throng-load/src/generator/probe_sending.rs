//! Sending the probes of a core through one of its users.

use throng_base::Key;
use throng_driver::MessagePriority;
use throng_engine::{Conn, CoreContext};

use super::config::RunPhase;
use super::probe_ledger::ProbeOrder;
use super::probes::ProbeSender;
use super::{Generator, GeneratorDriver, GeneratorMessage};
use crate::peers::PeerMessage;
use crate::program::IncomingMessage;
use crate::user::{Payload, TraceEvent};

impl Generator {
    /// Expires, sends and opens the probes that are due.
    pub(super) fn run_probes<D: GeneratorDriver>(&mut self, cx: &mut CoreContext<D, Self>) {
        let now = cx.now();
        let Some(probes) = &mut self.probes else { return };
        if let Some(order) = probes.on_due(now, &mut self.stats) {
            self.send_probe(cx, order);
        }
        if let Some(probes) = &mut self.probes {
            probes.open_next(now, &mut self.stats);
        }
        self.send_probe_messages(cx);
    }

    /// Sends a probe that is due through a user of this core. If this core has none, asks the next
    /// core.
    pub(super) fn send_probe<D: GeneratorDriver>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
        order: ProbeOrder,
    ) {
        let sender = match self.run.phase {
            RunPhase::Leaving => None,
            RunPhase::Running | RunPhase::Finishing(_) => self.probe_sender(cx),
        };
        let is_sent = sender.and_then(|key| {
            cx.with(key, |conn| {
                let is_open = conn.is_open();
                let (user, session, out) = conn.parts();
                let (program, encoder) = (&self.run.config.program, &mut self.encoder);
                let sender = ProbeSender { program, user, session, out, encoder };
                let probes = self.probes.as_mut().filter(|_| is_open);
                let is_sent = probes
                    .is_some_and(|probes| probes.write(order.number, sender, &mut self.stats));
                if is_sent && self.tracer.is_some() {
                    self.trace_probe(conn);
                }
                is_sent
            })
        });
        let Some(probes) = &mut self.probes else { return };
        if is_sent == Some(true) {
            let late_us = cx.driver().now().micros_since(probes.due_at(order.number));
            self.stats.lag.record_us(late_us);
            probes.on_sent(order.number, &mut self.stats);
        } else {
            probes.on_not_sent(order, &mut self.stats);
        }
        self.send_probe_messages(cx);
    }

    /// Returns a user that can send a probe: the sender of the last one, if it still can.
    fn probe_sender<D: GeneratorDriver>(&mut self, cx: &mut CoreContext<D, Self>) -> Option<Key> {
        let probes = self.probes.as_mut()?;
        let last_sender = probes.last_sender().and_then(|index| cx.key_at(index));
        let can_send = |cx: &mut CoreContext<D, Self>, key: Key| {
            cx.state(key).is_some_and(|user| user.receipts.are_expected() && user.may_send())
        };
        if let Some(key) = last_sender.filter(|key| can_send(cx, *key)) {
            return Some(key);
        }
        let found = cx.keys().into_iter().find(|key| can_send(cx, *key));
        probes.set_sender(found.map(Key::index));
        found
    }

    /// Sends what the probes of this core have for other cores.
    pub(super) fn send_probe_messages<D: GeneratorDriver>(
        &mut self,
        cx: &mut CoreContext<D, Self>,
    ) {
        for (slot, message) in self.probes.iter_mut().flat_map(|probes| probes.outbox.drain(..)) {
            match self.run.core_at(slot) {
                Some(core) => {
                    // Control messages are never refused.
                    let message = GeneratorMessage::Probe(message);
                    let _ = cx.send_message(core, message, MessagePriority::Control);
                }
                None => self.run.tell_peers(PeerMessage::Probe { to: slot, message }),
            }
        }
    }

    /// Shows a probe that a user has sent, which the encoder still has, if the user is watched.
    fn trace_probe<D: GeneratorDriver>(&mut self, conn: &mut Conn<'_, D, Self>) {
        let text = String::from_utf8_lossy(&self.encoder.text).into_owned();
        let probe = Payload::Message(IncomingMessage::Text(&text));
        self.trace(conn, TraceEvent::Sent(probe));
    }
}
