//! tcpkali: a file with its command line.
//!
//! [`options`] sorts the words of the command, [`message`] reads the expressions in messages, and
//! this module makes a scenario of both.

mod message;
mod options;
mod units;

use std::time::Duration;

use throng_base::units::{show_count, show_duration, show_rate};

use crate::command_line::{calls, first_command};
use crate::draft::{Draft, DraftClass};
use crate::importer::Importer;
use crate::translator::Translator;
use crate::yaml::Yaml;
use message::Message;
use options::Options;

pub(crate) const TCPKALI: Importer = Importer {
    tool: "tcpkali",
    reads: "a file with its command line",
    recognises: |source| calls(source.text, "tcpkali"),
    read,
};

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let command = match first_command(translator.source.text) {
        Ok(command) => command,
        Err(mistake) => {
            translator.mistakes.push(mistake);
            return None;
        }
    };
    let options = Options::read(translator, &command.words)?;
    let (destination, span) = options.destinations.first().cloned()?;
    let scheme = if options.is_websocket { "ws" } else { "tcp" };
    let target = translator.target(&span, &format!("{scheme}://{destination}"), "");
    let load = options.load(translator);
    let steps = options.steps(translator);
    let class = DraftClass { name: "connection".to_owned(), weight: 1, steps, on_error: None };
    Some(Draft {
        comments: command.comments,
        target,
        load,
        classes: vec![class],
        ..Draft::default()
    })
}

impl Options {
    /// Returns the phases: all connections are opened at their rate, and then kept.
    fn load(&self, translator: &mut Translator<'_>) -> Vec<Yaml> {
        let (count, span) = &self.connections;
        let ramp = Duration::from_secs_f64(*count as f64 / self.connect_rate.0);
        let ramp = Duration::from_millis(ramp.as_millis().max(1) as u64);
        let connections = (Yaml::plain(show_count(*count)), Yaml::plain(show_duration(ramp)));
        if self.duration.0.is_some_and(|duration| duration < ramp) {
            let why = format!(
                "tcpkali gives up: {} connections at {} take {}, longer than --duration",
                show_count(*count),
                show_rate(self.connect_rate.0),
                show_duration(ramp)
            );
            translator.suspicious(span, "--connections", why);
        }
        if self.duration.0.is_none() {
            let how = format!("tcpkali runs until it is stopped, the scenario {HOLD}");
            translator.approximated(&self.duration.1, "--duration", how);
        }
        let hold = self.duration.0.map_or(HOLD.to_owned(), show_duration);
        vec![
            Yaml::entry("ramp", Yaml::map([("to", connections.0), ("over", connections.1)])),
            Yaml::entry("hold", Yaml::map([("for", Yaml::plain(hold))])),
        ]
    }

    /// Returns what each connection does.
    fn steps(&self, translator: &mut Translator<'_>) -> Vec<Yaml> {
        let mut steps = vec![self.connect()];
        if let Some(delay) = self.delay_send {
            steps.push(Yaml::entry("wait", duration(delay)));
        }
        steps.extend(self.first_messages.iter().map(|message| self.send(message, false)));
        let Some(turn) = self.turn(translator) else {
            steps.extend(match self.lifetime {
                None => vec![Yaml::text("stay")],
                Some(lifetime) if lifetime.is_zero() => vec![Yaml::text("close")],
                Some(lifetime) => {
                    vec![Yaml::entry("wait", duration(lifetime)), Yaml::text("close")]
                }
            });
            return steps;
        };
        let turns_a_second = self.rate(translator).map(|rate| rate / self.messages.len() as f64);
        let mut entries: Vec<(&str, Yaml)> = Vec::new();
        let name = match turns_a_second {
            Some(rate) => {
                entries.push(("rate", Yaml::plain(show_rate(rate))));
                "every"
            }
            None => "repeat",
        };
        let span = match (self.lifetime, name) {
            (Some(lifetime), _) => Some(lifetime),
            (None, "repeat") => Some(LONGEST_RUN),
            _ => None,
        };
        entries.extend(span.map(|span| ("for", duration(span))));
        entries.push(("do", Yaml::list(turn)));
        steps.push(Yaml::entry(name, Yaml::map(entries)));
        if self.lifetime.is_some() {
            steps.push(Yaml::text("close"));
        }
        steps
    }

    fn connect(&self) -> Yaml {
        let mut entries = vec![("timeout", duration(self.connect_timeout))];
        if self.is_websocket && !self.headers.is_empty() {
            let header = |(name, value): &(String, String)| (name.clone(), Yaml::text(value));
            entries.push(("headers", Yaml::map(self.headers.iter().map(header))));
        }
        Yaml::entry("connect", Yaml::map(entries))
    }

    /// Returns the steps that a connection repeats; `None` if it sends nothing.
    fn turn(&self, translator: &mut Translator<'_>) -> Option<Vec<Yaml>> {
        let (last, others) = self.messages.split_last()?;
        let mut turn: Vec<_> = others.iter().map(|message| self.send(message, false)).collect();
        turn.push(self.send(last, self.marker.is_some()));
        if let Some((marker, span)) = &self.marker {
            let answer = if self.is_websocket {
                [("contains", Yaml::text(marker)), ("skip_others", Yaml::plain("true"))].to_vec()
            } else {
                [("until", Yaml::text(marker))].to_vec()
            };
            turn.push(Yaml::entry("expect", Yaml::map(answer)));
            let how = "tcpkali sends on while it waits for the marker; the scenario sends the \
                       next message after it";
            translator.approximated(span, "--latency-marker", how);
        }
        if !others.is_empty() && self.message_rate.is_some() {
            let how = format!(
                "tcpkali spaces its {} messages evenly; the scenario sends them together, as \
                 often",
                self.messages.len()
            );
            translator.approximated(&last.span, "--message", how);
        }
        Some(turn)
    }

    /// Returns the messages a second of one connection.
    fn rate(&self, translator: &mut Translator<'_>) -> Option<f64> {
        let bytes: usize = self.messages.iter().map(|message| message.bytes_about).sum();
        let (bandwidth, span) = match (self.message_rate, &self.upstream) {
            (Some(rate), _) => return Some(rate),
            (None, None) => return None,
            (None, Some(upstream)) => upstream,
        };
        let rate = bandwidth * self.messages.len() as f64 / bytes.max(1) as f64;
        let rate = ((rate * 100.0).round() / 100.0).clamp(0.01, 1e9);
        let how = format!("the bandwidth is that of {} messages a second", rate);
        translator.approximated(span, "--channel-bandwidth-upstream", how);
        Some(rate)
    }

    fn send(&self, message: &Message, is_answered: bool) -> Yaml {
        let mut payload = message.payload(self.is_websocket);
        if !is_answered {
            payload.push(("reply", Yaml::plain("false")));
        }
        let is_text = payload.len() == 1 && payload[0].0 == "text";
        let value = if is_text { payload.remove(0).1 } else { Yaml::map(payload) };
        Yaml::entry("send", value)
    }
}

fn duration(span: Duration) -> Yaml {
    Yaml::plain(show_duration(span))
}

/// How long the scenario runs where tcpkali runs until it is stopped.
const HOLD: &str = "1h";

/// How long a loop without a rate goes on: longer than any run.
const LONGEST_RUN: Duration = Duration::from_secs(30 * 24 * 3600);
