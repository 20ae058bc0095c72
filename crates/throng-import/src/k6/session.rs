//! A WebSocket session of a script: what it sends when it is open, and by its timers.

use std::time::Duration;

use throng_base::units::show_duration;
use throng_load::schedule::Pace;

use crate::headers::Headers;
use crate::pace::rest_after_last_turn;
use crate::source::Span;
use crate::step;
use crate::yaml::Yaml;

/// A session.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    pub(super) span: Span,
    pub(super) path: String,
    pub(super) headers: Headers,
    /// Whether it offers compression.
    pub(super) deflates: bool,
    /// What is sent at once.
    pub(super) first: Vec<Outgoing>,
    /// What is sent after a time, and whether the session is closed then.
    pub(super) timeouts: Vec<Timer>,
    /// What is sent again and again.
    pub(super) interval: Option<Timer>,
    /// The variable with which a timer stops the interval.
    pub(super) interval_name: Option<String>,
    /// Whether the first message closes it.
    pub(super) closes_on_message: bool,
    /// Whether it is closed as soon as all is sent.
    pub(super) closes_at_once: bool,
    pub(super) comments: Vec<String>,
}

/// What a session sends.
#[derive(Clone, Debug)]
pub(super) enum Outgoing {
    /// A message: the payload of `send`.
    Message((&'static str, Yaml)),
    /// A ping, whose pong answers it.
    Ping,
}

/// Messages that are sent after a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Timer {
    pub(super) after: Duration,
    pub(super) messages: Vec<Outgoing>,
    pub(super) closes: bool,
    /// Whether the interval ends.
    pub(super) stops_interval: bool,
}

impl Timer {
    /// Reports whether the session is the same without it.
    pub(super) fn does_nothing(&self) -> bool {
        self.messages.is_empty() && !self.ends_interval()
    }

    /// Reports whether the interval sends nothing after it.
    pub(super) fn ends_interval(&self) -> bool {
        self.closes || self.stops_interval
    }
}

impl Session {
    /// Returns the steps. `target_path` is the path that the target has already.
    pub(super) fn write(&self, target_path: &str) -> Vec<Yaml> {
        let mut entries = Vec::new();
        if self.path != target_path {
            entries.push(("path", Yaml::text(&*self.path)));
        }
        entries.extend(self.headers.write().map(|headers| ("headers", headers)));
        if self.deflates {
            entries.push(("deflate", Yaml::map(DEFLATE.map(|(key, on)| (key, Yaml::plain(on))))));
        }
        let mut steps = vec![step::connect(entries).comments(&self.comments)];
        if self.closes_on_message {
            self.write_dialogue(&mut steps);
            return steps;
        }
        steps.extend(self.first.iter().map(Outgoing::write));
        if self.closes_at_once {
            steps.push(Yaml::text("close"));
            return steps;
        }
        let mut timeouts = self.timeouts.clone();
        timeouts.sort_by_key(|timer| timer.after);
        let (mut now, mut rest) = (Duration::ZERO, &timeouts[..]);
        if let Some(interval) = &self.interval {
            let end = timeouts.iter().position(Timer::ends_interval);
            write_interval(interval, end.map(|end| timeouts[end].after), &mut steps);
            let Some(end) = end else { return steps };
            (now, rest) = (timeouts[end].after, &timeouts[end..]);
        }
        let closing = rest.iter().position(|timer| timer.closes);
        for timer in rest.iter().take(closing.map_or(rest.len(), |at| at + 1)) {
            steps.extend(step::rest(timer.after.saturating_sub(now)));
            now = now.max(timer.after);
            steps.extend(timer.messages.iter().map(Outgoing::write));
        }
        steps.push(Yaml::text(if closing.is_some() { "close" } else { "stay" }));
        steps
    }

    /// Returns what the steps leave out.
    pub(super) fn omits(&self) -> Option<&'static str> {
        let has_timers = self.interval.is_some() || !self.timeouts.is_empty();
        if self.closes_on_message && has_timers {
            return Some("timers beside a message that closes the session");
        }
        let ends = self.timeouts.iter().filter(|timer| timer.ends_interval());
        let end = ends.map(|timer| timer.after).min();
        let is_beside =
            |timer: &Timer| !timer.ends_interval() && end.is_none_or(|end| timer.after <= end);
        let sends_beside = self.interval.is_some() && self.timeouts.iter().any(is_beside);
        sends_beside.then_some("setTimeout beside setInterval")
    }

    /// Writes a session that the first message ends.
    fn write_dialogue(&self, steps: &mut Vec<Yaml>) {
        let any = Yaml::map([("regex", Yaml::text(".*"))]);
        // The answer follows the last message, so a ping behind it goes before.
        let last = self.first.iter().rposition(|sent| matches!(sent, Outgoing::Message(_)));
        let others = self.first.iter().enumerate().filter(|(at, _)| Some(*at) != last);
        steps.extend(others.map(|(_, sent)| sent.write()));
        if let Some(Outgoing::Message(last)) = last.map(|last| &self.first[last]) {
            steps.push(step::send(last.clone(), true));
            steps.push(Yaml::entry("expect", any));
        } else {
            steps.push(Yaml::entry("receive", any));
        }
        steps.push(Yaml::text("close"));
    }
}

impl Outgoing {
    /// Returns the step that sends it.
    fn write(&self) -> Yaml {
        match self {
            Self::Message(message) => step::send(message.clone(), false),
            Self::Ping => Yaml::text("ping"),
        }
    }
}

/// Writes a loop: its first turn comes after one period. It lasts until `end`, if it has one.
fn write_interval(interval: &Timer, end: Option<Duration>, steps: &mut Vec<Yaml>) {
    let period = interval.after;
    if let Some(end) = end.filter(|end| *end <= period) {
        steps.extend(step::rest(end));
        return;
    }
    steps.extend(step::rest(period));
    let length = end.map(|end| end - period);
    let messages = interval.messages.iter().map(Outgoing::write).collect();
    let pace = ("period", Yaml::plain(show_duration(period)));
    steps.push(step::every(pace, length.map(show_duration), messages));
    let rest = length.map(|length| rest_after_last_turn(Pace::Period(period), length));
    steps.extend(rest.and_then(step::rest));
}

/// The offer of k6's WebSockets: gorilla/websocket, `Dialer.DialContext` of client.go.
const DEFLATE: [(&str, bool); 3] = [
    ("server_no_context_takeover", true),
    ("client_no_context_takeover", true),
    ("client_max_window_bits", false),
];
