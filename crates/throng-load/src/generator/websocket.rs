//! Users that speak WebSocket: the upgrade, messages out and in, the close.

use std::time::Duration;

use throng_driver::Driver;
use throng_engine::{Conn, Deadline};
use throng_proto::websocket::{ClientEvent, ClientHandshake, Violation};

use super::core_stats::ConnectFailure;
use super::encode_buffers::as_text;
use super::steps::StepOutcome;
use super::timing::AnswerTiming;
use super::user::{ConnStatus, UserState};
use super::{ErrorKind, Generator, GeneratorMessage, shown};
use crate::program::{MessageTemplate, Op, Protocol, TemplateVars};

impl Generator {
    /// TCP is established: the user asks for the upgrade.
    pub(super) fn ask_for_upgrade<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let dialed_at = conn.state().message_from;
        let timing =
            AnswerTiming { seen_at: conn.now(), arrival: conn.handshake_arrival(dialed_at) };
        let user = conn.state();
        user.doing = UserState::Upgrading;
        let stats = &mut self.stats;
        stats.counters.upgrades_started += 1;
        timing.record(user.intended, &mut stats.tcp, &mut stats.arrival.tcp);
        let handshake = self.config.program.handshake(user.handshake.into());
        let mut vars =
            TemplateVars { user_id: user.id, counter: user.counter.into(), prng: user.prng };
        let text = &mut self.buffers.text;
        text.clear();
        handshake.path.render(&mut vars, text);
        let path_end = text.len();
        // The values of the headers stand behind the path, one after another.
        let ends: Vec<usize> = handshake
            .headers
            .iter()
            .map(|(_, value)| {
                value.render(&mut vars, text);
                text.len()
            })
            .collect();
        let mut key = [0; 16];
        vars.prng.fill(&mut key);
        user.prng = vars.prng;
        user.counter = vars.counter as u32;
        let written = as_text(text);
        let begins = std::iter::once(path_end).chain(ends.iter().copied());
        let values = begins.zip(&ends).map(|(begin, end)| &written[begin..*end]);
        let names = handshake.headers.iter().map(|(name, _)| name.as_str());
        let headers: Vec<_> = names.zip(values).collect();
        let subprotocols: Vec<_> = handshake.subprotocols.iter().map(String::as_str).collect();
        let request = ClientHandshake {
            host: &handshake.host,
            path_and_query: &written[..path_end],
            headers: &headers,
            subprotocols: &subprotocols,
            deflate: handshake.deflate,
            key,
        };
        let (session, out) = conn.session();
        if let Some(client) = session.client() {
            client.begin(&request, out);
        }
    }

    /// The server has said something.
    pub(super) fn websocket_event<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        event: ClientEvent<'_>,
    ) {
        if matches!(
            conn.state().doing,
            UserState::GivingUp | UserState::Failing | UserState::Stopping
        ) {
            return;
        }
        if conn.state().is_settled() {
            return self.event_while_leaving(conn, event);
        }
        match event {
            ClientEvent::Opened { .. } => self.upgraded(conn),
            ClientEvent::Refused(answer) => {
                self.refused(conn, ConnectFailure::Http(answer.status));
            }
            ClientEvent::Text(text) => self.message(conn, MessageTemplate::Text(text)),
            ClientEvent::Binary(bytes) => self.message(conn, MessageTemplate::Binary(bytes)),
            ClientEvent::Ping(_) | ClientEvent::Pong(_) => {}
            ClientEvent::Closed { code, reason } => {
                if conn.state().doing == UserState::Closing {
                    return conn.close();
                }
                self.stats.incidents.lost(conn.now());
                self.show_close(code, reason);
                self.stats.count_close(code);
                self.break_off(conn);
            }
            ClientEvent::Failed(violation) => match conn.state().doing {
                UserState::Upgrading => self.refused(conn, ConnectFailure::Violation),
                UserState::Closing => conn.close(),
                _ => {
                    let kind = ErrorKind::WebSocketViolation;
                    let got = || violation.description().to_owned();
                    self.show(kind.name(), || "a WebSocket".to_owned(), got);
                    self.count_error(kind);
                    self.break_off(conn);
                }
            },
        }
    }

    /// The server has said something to a user that was stopped and still has its connection.
    fn event_while_leaving<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        event: ClientEvent<'_>,
    ) {
        match event {
            ClientEvent::Text(text) => self.message(conn, MessageTemplate::Text(text)),
            ClientEvent::Binary(bytes) => self.message(conn, MessageTemplate::Binary(bytes)),
            ClientEvent::Closed { .. } | ClientEvent::Failed(_) | ClientEvent::Refused(_) => {
                conn.close();
            }
            ClientEvent::Opened { .. } | ClientEvent::Ping(_) | ClientEvent::Pong(_) => {}
        }
    }

    /// What the server answers is no upgrade; it begins with `head`.
    pub(super) fn upgrade_broken<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        violation: Violation,
        head: &[u8],
    ) {
        if conn.state().doing == UserState::Upgrading {
            let expected = || "101 Switching Protocols".to_owned();
            let got = || format!("{}: {}", shown(head), violation.description());
            self.show(&ConnectFailure::Violation.to_string(), expected, got);
        }
        self.websocket_event(conn, ClientEvent::Failed(violation));
    }

    /// The upgrade is done: the connect has succeeded.
    fn upgraded<D: Driver<Mail = GeneratorMessage>>(&mut self, conn: &mut Conn<'_, D, Self>) {
        let now = conn.now();
        let handshake = self.config.program.handshake(conn.state().handshake.into());
        if let Some(heartbeat) = handshake.heartbeat {
            conn.session().0.set_heartbeat(now + heartbeat);
        }
        let is_heard = self.config.program.protocol() == Protocol::Ws;
        if let Some(probes) = self.probes.as_mut().filter(|_| is_heard) {
            let place = conn.key().index();
            probes.join(conn.state(), place);
        }
        let timing = AnswerTiming::of(conn);
        self.established(conn, timing);
    }

    /// The connect has failed although TCP was established.
    fn refused<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        why: ConnectFailure,
    ) {
        let now = conn.now();
        let user = conn.state();
        self.connect_failed(user, now, why);
        user.standing = ConnStatus::Refused;
        conn.set_deadline(Deadline::Never);
        conn.close();
    }

    /// Ends an upgraded connection that is of no use any more, for a reason that has been counted.
    pub(super) fn break_off<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        conn.state().standing = ConnStatus::BrokenOff;
        self.hang_up(conn);
    }

    /// Closes the connection, and says so to a WebSocket's server.
    pub(super) fn hang_up<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        self.say_goodbye(conn);
        conn.close();
    }

    /// Sends a close frame where there is a WebSocket; true when its answer is to be waited for.
    pub(super) fn say_goodbye<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) -> bool {
        let mask = conn.state().mask();
        let (session, out) = conn.session();
        match session.client() {
            Some(client) if client.is_open() => {
                client.close(NORMAL_CLOSURE, "", mask, out);
                true
            }
            _ => false,
        }
    }

    /// Appends what the pen has written as a text message.
    pub(super) fn write_text<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let mask = conn.state().mask();
        let (session, out) = conn.session();
        if let Some(client) = session.client() {
            client.text(as_text(&self.buffers.text), mask, Some(&mut self.deflater), out);
        }
    }

    /// Appends what the pen has written as a binary message.
    pub(super) fn write_binary<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let mask = conn.state().mask();
        let (session, out) = conn.session();
        if let Some(client) = session.client() {
            client.binary(&self.buffers.text, mask, Some(&mut self.deflater), out);
        }
    }

    fn message<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: MessageTemplate<'_>,
    ) {
        self.stats.counters.messages_received += 1;
        if self.config.program.protocol() == Protocol::Phoenix {
            return self.phoenix_message(conn, message);
        }
        if self.take_probe(conn, message.bytes()) {
            return;
        }
        let timing = AnswerTiming::of(conn);
        let user = conn.state();
        if user.doing == UserState::Expecting
            && let Op::Await { pattern, .. } = self.config.program.op(user.pc)
        {
            let pattern = self.config.program.pattern(pattern);
            if user.asked_after(timing.came_at()) {
                // It came before the question and was only read after it.
                self.throw_away(user, message, timing.came_at());
            } else if pattern.matches(message) {
                if !self.sets_aside(user, timing) {
                    self.answered(conn, timing);
                    self.advance(conn);
                }
            } else if pattern.skips_others() {
                self.stats.counters.messages_unasked += 1;
                self.stats.incidents.heard(conn.now());
                self.samples.pass_over(message.bytes());
            } else {
                self.show_mismatch(conn, message.bytes());
                self.fail(conn, ErrorKind::ExpectMismatch);
            }
            return;
        }
        self.unasked_message(conn, message);
    }

    /// Whether `message` is a delivery of a probe; it is counted then.
    pub(super) fn take_probe<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: &[u8],
    ) -> bool {
        let Some(probes) = &mut self.probes else { return false };
        let Some(number) = probes.marker.find(message) else { return false };
        let timing = AnswerTiming::of(conn);
        self.stats.incidents.heard(timing.came_at());
        probes.receive(conn.state(), number, timing, &mut self.stats);
        true
    }

    /// The step `expect` of a WebSocket begins. What came early is looked at first.
    pub(super) fn await_message<D: Driver<Mail = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        pattern: u32,
        timeout: Duration,
    ) -> StepOutcome {
        let now = conn.now();
        let is_open = conn.is_open();
        let user = conn.state();
        user.doing = UserState::Expecting;
        match self.kept_answer(user, pattern) {
            Ok(Some(timing)) => {
                self.answered(conn, timing);
                StepOutcome::Next
            }
            Ok(None) if is_open => {
                conn.set_deadline(Deadline::Coarse(now + timeout));
                StepOutcome::Wait
            }
            Ok(None) => self.not_connected(conn),
            Err(kind) => {
                self.fail(conn, kind);
                StepOutcome::Wait
            }
        }
    }
}

/// The close code of an end that was meant (RFC 6455 section 7.4.1).
const NORMAL_CLOSURE: u16 = 1000;
