//! The functions that a WebSocket session calls: on its events, and by its timers.

use std::time::Duration;

use throng_load::scenario::Diagnostic;

use crate::source::Span;

use super::parser::program;
use super::script::{Item, Script};
use super::session::{Session, Timer};
use super::syntax::{Expression, ExpressionKind, Function, Statement, StatementKind};

type Done<T> = Result<T, Diagnostic>;

impl Script<'_, '_> {
    /// Translates the function that `ws.connect` gets.
    pub(super) fn session(&mut self, body: &[Statement]) -> Done<()> {
        for statement in body {
            let StatementKind::Expression(value) = &statement.kind else {
                if let StatementKind::Constant(name, value) = &statement.kind {
                    self.values.define(name, value);
                    continue;
                }
                return Err(program(&statement.span));
            };
            let (name, arguments) = value.call().ok_or_else(|| program(&value.span))?;
            match (self.method(&name), arguments) {
                (Some("on"), [event, handler]) => {
                    let handler = event.text().zip(handler.function());
                    let (event, handler) = handler.ok_or_else(|| program(&value.span))?;
                    self.handler(event, handler, &value.span)?;
                }
                _ => self.action(&name, arguments, &value.span)?,
            }
        }
        Ok(())
    }

    /// Translates the function of an event.
    pub(super) fn handler(&mut self, event: &str, function: &Function, span: &Span) -> Done<()> {
        let construct = format!("on {event}");
        if event == "open" {
            self.translator.translated(span, construct);
            for (value, name, arguments) in calls(function.statements()?)? {
                self.action(&name, arguments, &value.span)?;
            }
            return Ok(());
        }
        if !EVENTS.contains(&event) {
            let label = "expected open, message, binaryMessage, close, error, ping or pong";
            let title = format!("a session has no event `{event}`");
            return Err(Diagnostic::new(span.clone(), title, label));
        }
        let Ok(calls) = function.statements().and_then(calls) else {
            self.translator.not_supported(span, construct, WRITE_STEPS);
            return Ok(());
        };
        let mut others = calls.iter().filter(|(_, name, _)| !name.starts_with("console."));
        match (event, others.next(), others.next()) {
            (_, None, _) => {
                let why = "what a user receives is counted";
                self.translator.not_needed(span, construct, why);
            }
            ("message", Some((_, name, _)), None) if self.method(name) == Some("close") => {
                self.last_session(span)?.closes_on_message = true;
                let why = "the first message ends the session, whatever it says; expect what only \
                           the answer has";
                self.translator.suspicious(span, construct, why);
            }
            _ => self.translator.not_supported(span, construct, WRITE_STEPS),
        }
        Ok(())
    }

    /// Translates a call in an open session.
    fn action(&mut self, name: &str, arguments: &[Expression], span: &Span) -> Done<()> {
        let method = self.method(name).unwrap_or(name).to_owned();
        match (&*method, arguments) {
            ("send", [message]) => {
                let message = self.message(message)?;
                self.last_session(span)?.first.push(message);
                self.translator.translated(span, "send");
            }
            ("close", _) => {
                self.last_session(span)?.closes_at_once = true;
                self.translator.translated(span, "close");
            }
            ("setTimeout" | "setInterval", [function, time]) => {
                let timer = self.timer(function, time)?;
                let session = self.last_session(span)?;
                if method == "setTimeout" {
                    session.timeouts.push(timer);
                } else if session.interval.is_some() {
                    return Err(program(span));
                } else if timer.closes {
                    session.timeouts.push(timer);
                } else {
                    session.interval = Some(timer);
                }
                self.translator.translated(span, method);
            }
            ("ping", _) => {
                let remedy = "users answer pings, and send none; send a message";
                self.translator.not_supported(span, "ping", remedy);
            }
            _ if name.starts_with("console.") => {}
            _ => return Err(program(span)),
        }
        Ok(())
    }

    /// Returns what a timer does.
    fn timer(&mut self, function: &Expression, time: &Expression) -> Done<Timer> {
        let function = function.function().ok_or_else(|| program(&function.span))?;
        let body = function.statements()?;
        let time = self.values.resolved(time, 0);
        let bounds = bounds(&time).filter(|(least, most)| *least >= 1.0 && *most <= TIME_MAX_MS);
        let (least, most) = bounds.ok_or_else(|| {
            let label = "expected a number of milliseconds, from 1 to a day";
            Diagnostic::new(time.span.clone(), "this time cannot be read", label)
        })?;
        let after = f64::midpoint(least, most);
        if least < most {
            let how = format!("each user's time is the middle one, {after}ms");
            self.translator.approximated(&time.span, "randomIntBetween", how);
        }
        let after = Duration::from_micros((after * 1e3) as u64);
        let mut timer = Timer { after, ..Timer::default() };
        for (value, name, arguments) in calls(body)? {
            match (self.method(&name), arguments) {
                (Some("send"), [message]) => timer.messages.push(self.message(message)?),
                (Some("close"), _) => timer.closes = true,
                _ if name.starts_with("console.") => {}
                _ => return Err(program(&value.span)),
            }
        }
        Ok(timer)
    }

    /// Returns a message: JSON, or a text.
    fn message(&mut self, message: &Expression) -> Done<crate::yaml::Yaml> {
        Ok(match self.values.payload(message)? {
            ("text", text) => text,
            json => crate::yaml::Yaml::map([json]),
        })
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

/// Returns the calls of a function that consists of nothing else.
fn calls(body: &[Statement]) -> Done<Vec<(&Expression, String, &[Expression])>> {
    let call = |statement: &'_ Statement| -> Done<()> {
        match &statement.kind {
            StatementKind::Expression(value) | StatementKind::Return(Some(value))
                if value.call().is_some() =>
            {
                Ok(())
            }
            _ => Err(program(&statement.span)),
        }
    };
    body.iter().try_for_each(call)?;
    let calls = body.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Expression(value) | StatementKind::Return(Some(value)) => {
            value.call().map(|(name, arguments)| (value, name, arguments))
        }
        _ => None,
    });
    Ok(calls.collect())
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
