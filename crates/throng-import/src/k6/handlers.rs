//! The functions that a WebSocket session calls: on its events, and by its timers.

use std::time::Duration;

use throng_load::scenario::Diagnostic;

use crate::source::Span;

use super::effects::{may_send, stops_timer};
use super::parser::program;
use super::script::{Item, Script};
use super::session::{Outgoing, Session, Timer};
use super::syntax::{Expression, ExpressionKind, Statement, StatementKind};

type Done<T> = Result<T, Diagnostic>;

impl Script<'_, '_> {
    /// Translates the function that `ws.connect` gets, or that of the event `open`.
    pub(super) fn session(&mut self, body: &[Statement]) -> Done<()> {
        for statement in body {
            match &statement.kind {
                StatementKind::Constant(name, value) => match value.call() {
                    Some((function, arguments)) if self.is_timer(&function) => {
                        self.action(&function, arguments, &value.span, Some(name))?;
                    }
                    _ => self.values.define(name, value),
                },
                StatementKind::Expression(value) | StatementKind::Return(Some(value)) => {
                    if let ExpressionKind::Binary(left, "=", right) = &value.kind {
                        self.assignment(left, right)?;
                        continue;
                    }
                    let (name, arguments) = value.call().ok_or_else(|| program(&value.span))?;
                    self.action(&name, arguments, &value.span, None)?;
                }
                _ => return Err(program(&statement.span)),
            }
        }
        Ok(())
    }

    /// Translates the function of an event.
    pub(super) fn handler(&mut self, event: &str, handler: &Expression, span: &Span) -> Done<()> {
        let function = handler.function().ok_or_else(|| program(&handler.span))?;
        let construct = format!("on {event}");
        if event == "open" {
            self.translator.translated(span, construct);
            return self.session(function.statements()?);
        }
        if !EVENTS.contains(&event) {
            let label = "expected open, message, binaryMessage, close, error, ping or pong";
            let title = format!("a session has no event `{event}`");
            return Err(Diagnostic::new(span.clone(), title, label));
        }
        let calls = function.statements().and_then(calls).ok();
        let mut others = calls.iter().flatten().filter(|(_, name, _)| !is_beside(name, true));
        match (event, others.next(), others.next()) {
            ("message", Some((_, name, _)), None) if self.method(name) == Some("close") => {
                self.last_session(span)?.closes_on_message = true;
                let why = "the first message ends the session, whatever it says; expect what only \
                           the answer has";
                self.translator.suspicious(span, construct, why);
            }
            _ => self.handler_beside(event, handler, span, calls.as_deref()),
        }
        Ok(())
    }

    /// Reports the function of an event for which the scenario has no step.
    fn handler_beside(
        &mut self,
        event: &str,
        handler: &Expression,
        span: &Span,
        calls: Option<&[SessionCall<'_>]>,
    ) {
        let construct = format!("on {event}");
        let is_end = ["close", "error"].contains(&event);
        if calls.is_some_and(|calls| calls.iter().all(|(_, name, _)| is_beside(name, is_end))) {
            let why = "what a user receives is counted";
            self.translator.not_needed(span, construct, why);
        } else if self.may_send(handler, is_end) {
            self.translator.not_supported(span, construct, WRITE_STEPS);
        } else if is_end {
            let why = "it sends nothing, and ends and errors are counted";
            self.translator.not_needed(span, construct, why);
        } else {
            let remedy = "it sends nothing: the traffic is the same without it; what it checks, \
                          write as `expect` or `receive`";
            self.translator.not_checked(span, construct, remedy);
        }
    }

    /// Reports whether a function may send or close. At the end of a session it may stop timers.
    fn may_send(&self, function: &Expression, is_end: bool) -> bool {
        let socket = self.socket.as_deref().unwrap_or_default();
        may_send(&self.translator.source, &function.span, socket, is_end)
    }

    /// Translates a call in an open session. `variable` is the name of its value.
    fn action(
        &mut self,
        name: &str,
        arguments: &[Expression],
        span: &Span,
        variable: Option<&str>,
    ) -> Done<()> {
        let method = self.method(name).unwrap_or(name).to_owned();
        match (&*method, arguments) {
            ("on" | "addEventListener", [event, handler]) if method != name => {
                let event = event.text().ok_or_else(|| program(span))?;
                self.handler(event, handler, span)?;
            }
            ("send", [message]) => {
                let message = self.values.payload(message)?;
                self.last_session(span)?.first.push(Outgoing::Message(message));
                self.translator.translated(span, "send");
            }
            ("close", _) => {
                self.last_session(span)?.closes_at_once = true;
                self.translator.translated(span, "close");
            }
            ("setTimeout" | "setInterval", [function, time]) => {
                self.add_timer(&method, (function, time), span, variable)?;
            }
            ("ping", _) => {
                self.last_session(span)?.first.push(Outgoing::Ping);
                self.note_ping(span);
            }
            _ if name.starts_with("console.") => {}
            _ => return Err(program(span)),
        }
        Ok(())
    }

    fn note_ping(&mut self, span: &Span) {
        let how = "k6 waits for no pong, and its payload is a number; a user waits up to 5s for \
                   the pong, and one that does not arrive is an error";
        self.translator.approximated(span, "ping", how);
    }

    /// Reports whether it is a function that makes a timer.
    fn is_timer(&self, function: &str) -> bool {
        let name = self.method(function).unwrap_or(function);
        ["setTimeout", "setInterval"].contains(&name)
    }

    /// Translates `setTimeout` or `setInterval`, whose value is `variable`.
    fn add_timer(
        &mut self,
        method: &str,
        (function, time): (&Expression, &Expression),
        span: &Span,
        variable: Option<&str>,
    ) -> Done<()> {
        let begin = self.translator.entries.len();
        let timer = self.timer(function, time, span)?;
        if timer.does_nothing() {
            if self.translator.entries.len() == begin {
                self.translator.not_needed(span, method, "it sends nothing");
            }
            let session = self.last_session(span)?;
            if method == "setInterval" && session.interval.is_none() {
                session.interval_name = variable.map(str::to_owned);
            }
            return Ok(());
        }
        let session = self.last_session(span)?;
        if method == "setTimeout" || timer.ends_interval() {
            session.timeouts.push(timer);
        } else if session.interval.is_some() {
            return Err(program(span));
        } else {
            session.interval = Some(timer);
            session.interval_name = variable.map(str::to_owned);
        }
        self.translator.translated(span, method);
        Ok(())
    }

    /// Returns what a timer does.
    fn timer(&mut self, function: &Expression, time: &Expression, span: &Span) -> Done<Timer> {
        let (source, time) = (function, self.values.resolved(time, 0));
        let function = function.function().ok_or_else(|| program(&function.span))?;
        let bounds = bounds(&time).filter(|(least, most)| *least >= 1.0 && *most <= TIME_MAX_MS);
        let (least, most) = bounds.ok_or_else(|| {
            let label = "expected a number of milliseconds, from 1 to a day";
            Diagnostic::new(time.span.clone(), "this time cannot be read", label)
        })?;
        let after = f64::midpoint(least, most);
        let mut timer =
            Timer { after: Duration::from_micros((after * 1e3) as u64), ..Timer::default() };
        if !self.may_send(source, false) {
            return Ok(timer);
        }
        for (value, name, arguments) in calls(function.statements()?)? {
            match (self.method(&name), arguments) {
                (Some("send"), [message]) => {
                    timer.messages.push(Outgoing::Message(self.values.payload(message)?));
                }
                (Some("close"), _) => timer.closes = true,
                (Some("ping"), _) => {
                    timer.messages.push(Outgoing::Ping);
                    self.note_ping(&value.span);
                }
                (None, [stopped]) if name == "clearInterval" => {
                    let session = self.last_session(span)?;
                    let is_its = session.interval_name.is_some()
                        && session.interval_name.as_deref() == stopped.name();
                    if !is_its {
                        return Err(program(&value.span));
                    }
                    timer.stops_interval = true;
                    self.translator.translated(&value.span, "clearInterval");
                }
                _ if name.starts_with("console.") => {}
                _ => return Err(program(&value.span)),
            }
        }
        if least < most && !timer.does_nothing() {
            let how = format!("each user's time is the middle one, {after}ms");
            self.translator.approximated(&time.span, "randomIntBetween", how);
        }
        Ok(timer)
    }

    /// Returns the method of the socket in `socket.send`.
    fn method<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (object, method) = name.split_once('.')?;
        (self.socket.as_deref() == Some(object)).then_some(method)
    }

    fn last_session(&mut self, span: &Span) -> Done<&mut Session> {
        let sessions = self.items.iter_mut().rev();
        let mut sessions = sessions.filter_map(|item| match item {
            Item::Session(session) => Some(session),
            _ => None,
        });
        sessions.next().ok_or_else(|| program(span))
    }
}

/// A call: the whole expression, the function's name, and its arguments.
type SessionCall<'e> = (&'e Expression, String, &'e [Expression]);

/// Reports whether a call only logs, or stops a timer where `may_stop_timers`.
fn is_beside(name: &str, may_stop_timers: bool) -> bool {
    name.starts_with("console.") || (may_stop_timers && stops_timer(name))
}

/// Returns the calls of a function that consists of nothing else.
fn calls(body: &[Statement]) -> Done<Vec<SessionCall<'_>>> {
    let calls = body.iter().map(|statement| {
        let call = match &statement.kind {
            StatementKind::Expression(value) | StatementKind::Return(Some(value)) => {
                value.call().map(|(name, arguments)| (value, name, arguments))
            }
            _ => None,
        };
        call.ok_or_else(|| program(&statement.span))
    });
    calls.collect()
}

/// Returns the least and the most that a number of milliseconds may be.
fn bounds(time: &Expression) -> Option<(f64, f64)> {
    if let Some(number) = time.number() {
        return Some((number, number));
    }
    if let Some((_, [least, most])) = time.call().filter(|(name, _)| name == RANDOM) {
        return least.number().zip(most.number()).filter(|(least, most)| least <= most);
    }
    let ExpressionKind::Binary(left, sign, right) = &time.kind else { return None };
    let (left, right) = (bounds(left)?, bounds(right)?);
    match *sign {
        "+" => Some((left.0 + right.0, left.1 + right.1)),
        "*" => Some((left.0 * right.0, left.1 * right.1)),
        _ => None,
    }
}

const RANDOM: &str = "randomIntBetween";

const EVENTS: [&str; 6] = ["message", "binaryMessage", "close", "error", "ping", "pong"];

/// What to do about a function that does more than to close the session.
const WRITE_STEPS: &str = "write what happens then as steps: `expect`, `receive` and `send`";

/// The longest time of a timer: a day.
const TIME_MAX_MS: f64 = 86_400_000.0;
