//! WebSocket users: the upgrade, messages in both directions, the close.

use std::time::Duration;

use throng_driver::Driver;
use throng_engine::{Conn, Deadline};
use throng_proto::websocket::{ClientEvent, ClientHandshake, Violation};

use super::core_stats::ConnectFailure;
use super::encode_buffers::as_text;
use super::steps::StepOutcome;
use super::timing::AnswerTiming;
use super::user::{ConnStatus, UserState};
use super::{ErrorKind, Generator, GeneratorMessage, printable};
use crate::program::{IncomingMessage, Op, Protocol, TemplateVars};

impl Generator {
    /// Sends the upgrade request once TCP is established.
    pub(super) fn send_upgrade_request<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let dialed_at = conn.state().message_from;
        let timing =
            AnswerTiming { seen_at: conn.now(), arrival: conn.handshake_arrival(dialed_at) };
        let user = conn.state();
        user.state = UserState::Upgrading;
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
        // The header values follow the path in the same buffer.
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

    /// Handles an event of the WebSocket.
    pub(super) fn websocket_event<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        event: ClientEvent<'_>,
    ) {
        if matches!(
            conn.state().state,
            UserState::ClosingFailedConnect | UserState::ClosingAfterError | UserState::Stopping
        ) {
            return;
        }
        if conn.state().is_between_iterations() {
            return self.event_while_leaving(conn, event);
        }
        match event {
            ClientEvent::Opened { .. } => self.upgraded(conn),
            ClientEvent::Refused(answer) => {
                self.fail_upgrade(conn, ConnectFailure::Http(answer.status));
            }
            ClientEvent::Text(text) => self.message_received(conn, IncomingMessage::Text(text)),
            ClientEvent::Binary(bytes) => {
                self.message_received(conn, IncomingMessage::Binary(bytes))
            }
            ClientEvent::Ping(_) | ClientEvent::Pong(_) => {}
            ClientEvent::Closed { code, reason } => {
                if conn.state().state == UserState::Closing {
                    return conn.close();
                }
                self.stats.incidents.count_lost_connection(conn.now());
                self.sample_close(code, reason);
                self.stats.count_close(code);
                self.close_after_error(conn);
            }
            ClientEvent::Failed(violation) => match conn.state().state {
                UserState::Upgrading => self.fail_upgrade(conn, ConnectFailure::Violation),
                UserState::Closing => conn.close(),
                _ => {
                    let kind = ErrorKind::WebSocketViolation;
                    let got = || violation.description().to_owned();
                    self.sample_error(kind.name(), || "a WebSocket".to_owned(), got);
                    self.count_error(kind);
                    self.close_after_error(conn);
                }
            },
        }
    }

    /// Handles an event for a stopped user whose connection is still open.
    fn event_while_leaving<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        event: ClientEvent<'_>,
    ) {
        match event {
            ClientEvent::Text(text) => self.message_received(conn, IncomingMessage::Text(text)),
            ClientEvent::Binary(bytes) => {
                self.message_received(conn, IncomingMessage::Binary(bytes))
            }
            ClientEvent::Closed { .. } | ClientEvent::Failed(_) | ClientEvent::Refused(_) => {
                conn.close();
            }
            ClientEvent::Opened { .. } | ClientEvent::Ping(_) | ClientEvent::Pong(_) => {}
        }
    }

    /// Handles an answer to the upgrade that violates the protocol. `head` is its beginning.
    pub(super) fn upgrade_violated<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        violation: Violation,
        head: &[u8],
    ) {
        if conn.state().state == UserState::Upgrading {
            let expected = || "101 Switching Protocols".to_owned();
            let got = || format!("{}: {}", printable(head), violation.description());
            self.sample_error(&ConnectFailure::Violation.to_string(), expected, got);
        }
        self.websocket_event(conn, ClientEvent::Failed(violation));
    }

    /// Completes the connect after a successful upgrade.
    fn upgraded<D: Driver<Message = GeneratorMessage>>(&mut self, conn: &mut Conn<'_, D, Self>) {
        let now = conn.now();
        let handshake = self.config.program.handshake(conn.state().handshake.into());
        if let Some(heartbeat) = handshake.heartbeat {
            conn.session().0.set_heartbeat(now + heartbeat);
        }
        let is_heard = self.config.program.protocol() == Protocol::Ws;
        if let Some(probes) = self.probes.as_mut().filter(|_| is_heard) {
            let user_index = conn.key().index();
            probes.join(conn.state(), user_index);
        }
        let timing = AnswerTiming::of(conn);
        self.connect_succeeded(conn, timing);
    }

    /// Fails a connect after TCP was established: the server refused the upgrade or violated the
    /// protocol.
    fn fail_upgrade<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        why: ConnectFailure,
    ) {
        let now = conn.now();
        let user = conn.state();
        self.fail_connect(user, now, why);
        user.conn_status = ConnStatus::ConnectFailed;
        conn.set_deadline(Deadline::Never);
        conn.close();
    }

    /// Closes an upgraded connection after an error that has been counted.
    pub(super) fn close_after_error<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        conn.state().conn_status = ConnStatus::ErrorCounted;
        self.close_connection(conn);
    }

    /// Closes the connection. On a WebSocket, sends a close frame first.
    pub(super) fn close_connection<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        self.send_close_frame(conn);
        conn.close();
    }

    /// Sends a close frame on an open WebSocket. Returns true if the server's answer must be waited
    /// for.
    pub(super) fn send_close_frame<D: Driver<Message = GeneratorMessage>>(
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

    /// Appends the encoded text of the buffers to the output as a text message.
    pub(super) fn write_text<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let mask = conn.state().mask();
        let (session, out) = conn.session();
        if let Some(client) = session.client() {
            client.text(as_text(&self.buffers.text), mask, Some(&mut self.deflater), out);
        }
    }

    /// Appends the encoded text of the buffers to the output as a binary message.
    pub(super) fn write_binary<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
    ) {
        let mask = conn.state().mask();
        let (session, out) = conn.session();
        if let Some(client) = session.client() {
            client.binary(&self.buffers.text, mask, Some(&mut self.deflater), out);
        }
    }

    fn message_received<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: IncomingMessage<'_>,
    ) {
        self.stats.counters.messages_received += 1;
        if self.config.program.protocol() == Protocol::Phoenix {
            return self.phoenix_message_received(conn, message);
        }
        if self.receive_probe(conn, message.bytes()) {
            return;
        }
        let timing = AnswerTiming::of(conn);
        let user = conn.state();
        if user.state == UserState::Expecting
            && let Op::ExpectMessage { pattern, .. } = self.config.program.op(user.pc)
        {
            let pattern = self.config.program.pattern(pattern);
            if user.has_asked_after(timing.arrived_at()) {
                // It arrived before the request was sent and was only read after it.
                self.discard_message(user, message, timing.arrived_at());
            } else if pattern.matches(message) {
                if !self.set_aside_if_late(user, timing) {
                    self.answered(conn, timing);
                    self.advance(conn);
                }
            } else if pattern.skips_others() {
                self.stats.counters.messages_unasked += 1;
                self.stats.incidents.unasked_received(conn.now());
                self.samples.note_skipped(message.bytes());
            } else {
                self.sample_mismatch(conn, message.bytes());
                self.fail_step(conn, ErrorKind::ExpectMismatch);
            }
            return;
        }
        self.unasked_message_received(conn, message);
    }

    /// Counts `message` if it is a delivery of a probe, and reports whether it is.
    pub(super) fn receive_probe<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        message: &[u8],
    ) -> bool {
        let Some(probes) = &mut self.probes else { return false };
        let Some(number) = probes.marker.find(message) else { return false };
        let timing = AnswerTiming::of(conn);
        self.stats.incidents.unasked_received(timing.arrived_at());
        probes.receive(conn.state(), number, timing, &mut self.stats);
        true
    }

    /// Begins an `expect` step on a WebSocket. Looks at messages that arrived early first.
    pub(super) fn expect_message<D: Driver<Message = GeneratorMessage>>(
        &mut self,
        conn: &mut Conn<'_, D, Self>,
        pattern: u32,
        timeout: Duration,
    ) -> StepOutcome {
        let now = conn.now();
        let is_open = conn.is_open();
        let user = conn.state();
        user.state = UserState::Expecting;
        match self.take_kept_answer(user, pattern) {
            Ok(Some(timing)) => {
                self.answered(conn, timing);
                StepOutcome::Next
            }
            Ok(None) if is_open => {
                conn.set_deadline(Deadline::Coarse(now + timeout));
                StepOutcome::Wait
            }
            Ok(None) => self.skip_unconnected_step(conn),
            Err(kind) => {
                self.fail_step(conn, kind);
                StepOutcome::Wait
            }
        }
    }
}

/// Close code of a normal closure (RFC 6455 section 7.4.1).
const NORMAL_CLOSURE: u16 = 1000;
