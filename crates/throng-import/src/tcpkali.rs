//! tcpkali: a file with its command line.
//!
//! [`options`] sorts the words of the command, [`message`] reads the expressions in messages, and
//! this module makes a scenario of both.

mod message;
mod options;
mod units;

use std::time::Duration;

use throng_base::units::{show_count, show_duration, show_rate};
use throng_load::scenario::HeaderPlace;

use crate::call::calls;
use crate::command_line::first_command;
use crate::draft::{Draft, DraftClass};
use crate::headers::Headers;
use crate::importer::{Importer, Program};
use crate::pace::{constant, rest_after_last_turn};
use crate::phase;
use crate::step;
use crate::tls::{self, TlsDraft};
use crate::translator::Translator;
use crate::yaml::Yaml;
use message::Message;
use options::Options;

pub(crate) const TCPKALI: Importer = Importer {
    tool: "tcpkali",
    reads: "a file with its command line",
    program: Some(Program {
        name: PROGRAM,
        advice: "expected this command first: write it alone into a file, with its variables \
                 filled in",
    }),
    recognises: |source| calls(source.text, PROGRAM),
    read,
};

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let command = translator.accept(first_command(translator.source.text))?;
    let options = Options::read(translator, &command.words)?;
    let (destination, span) = options.destinations.first().cloned()?;
    if destination.contains("\\{") {
        let remedy = "a path of a target has no variables: write the path into `connect`";
        translator.not_supported(&span, "expression in the path", remedy);
    }
    let scheme = if options.is_websocket { "ws" } else { "tcp" };
    let scheme = tls::scheme(scheme, options.ssl.is_some());
    let target = translator.target(&span, &format!("{scheme}://{destination}"), "");
    let load = options.load(translator);
    let steps = options.steps(translator);
    options.report_numbers(translator);
    options.report_frames(translator);
    let class = DraftClass { name: "connection".to_owned(), weight: 1, steps, on_error: None };
    Some(Draft {
        comments: command.comments,
        target,
        tls: options.tls(translator),
        load,
        limits: options.limits(),
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
        vec![phase::ramp(*count, ramp), phase::hold_for(hold)]
    }

    /// Returns what `--ssl` means: OpenSSL without any check, and a context of its own for each
    /// connection, so that no session is resumed (`ssl_setup`).
    fn tls(&self, translator: &mut Translator<'_>) -> TlsDraft {
        let is_secure = translator.is_secure(self.ssl.is_some());
        match &self.ssl {
            Some(span) if is_secure => {
                let how = "tcpkali names no server in its handshake (SNI); the scenario sends the \
                           name of its target, unless that is an address";
                translator.approximated(span, "--ssl", how);
                TlsDraft { is_unverified: true, is_always_full: true, ..TlsDraft::default() }
            }
            Some(span) => translator.skip(span, "--ssl", tls::PLAIN),
            None => TlsDraft::default(),
        }
    }

    /// Returns the rate of connects of each user. `--connect-rate` holds for those that connect
    /// again, too, and they do so evenly.
    fn limits(&self) -> Option<Yaml> {
        let rate = self.connect_rate.0 / self.connections.0 as f64;
        self.lifetime.filter(|lifetime| lifetime.as_secs_f64() * rate < 1.0)?;
        let limits = Yaml::entry("connect", Yaml::plain(show_rate(rate)));
        Some(Yaml::entry("user", limits))
    }

    /// Reports the numbers of connections in messages.
    fn report_numbers(&self, translator: &mut Translator<'_>) {
        for message in self.first_messages.iter().chain(&self.messages) {
            for construct in &message.of_connection {
                if self.lifetime.is_none() {
                    translator.translated(&message.span, construct);
                } else {
                    let how = "tcpkali numbers the connections, and the scenario the users: one \
                               that connects again keeps its number";
                    translator.approximated(&message.span, construct, how);
                }
            }
        }
    }

    /// Returns what each connection does.
    fn steps(&self, translator: &mut Translator<'_>) -> Vec<Yaml> {
        let mut steps = vec![self.connect(translator)];
        let delay = self.delay_send.unwrap_or_default();
        let turn = self.turn(translator);
        let rate = self.rate(translator);
        if let Some(lifetime) = self.lifetime.filter(|lifetime| *lifetime <= delay) {
            steps.extend(step::rest(lifetime));
            steps.push(Yaml::text("close"));
            return steps;
        }
        let left = self.lifetime.map(|lifetime| lifetime - delay);
        steps.extend(step::rest(delay));
        steps.extend(self.first_messages.iter().map(|message| self.send(message, false)));
        let rest = match turn {
            None => left,
            Some(turn) => {
                let turns_a_second = rate.map(|rate| rate / self.messages.len() as f64);
                steps.push(self.messages_again(turn, turns_a_second, left));
                let pace = turns_a_second.map(constant);
                pace.zip(left).map(|(pace, left)| rest_after_last_turn(pace, left))
            }
        };
        steps.extend(rest.and_then(step::rest));
        match self.lifetime {
            Some(_) => steps.push(Yaml::text("close")),
            None if self.messages.is_empty() => steps.push(Yaml::text("stay")),
            None => {}
        }
        steps
    }

    /// Returns the loop that sends the messages, for `length` if it has an end.
    fn messages_again(
        &self,
        turn: Vec<Yaml>,
        turns_a_second: Option<f64>,
        length: Option<Duration>,
    ) -> Yaml {
        match turns_a_second {
            Some(rate) => {
                let rate = ("rate", Yaml::plain(show_rate(rate)));
                step::every(rate, length.map(show_duration), turn)
            }
            None => step::repeat_for(show_duration(length.unwrap_or(LONGEST_RUN)), turn),
        }
    }

    fn connect(&self, translator: &mut Translator<'_>) -> Yaml {
        let mut entries = vec![step::timeout(self.connect_timeout)];
        let headers = self.handshake(translator);
        entries.extend(headers.write().map(|headers| ("headers", headers)));
        step::connect(entries)
    }

    /// Returns the headers of the handshake, and reports each of them.
    fn handshake(&self, translator: &mut Translator<'_>) -> Headers {
        let mut headers = Headers::default();
        for (name, value, span) in &self.headers {
            let place = HeaderPlace::Upgrade;
            if !self.is_websocket {
                let label = "expected --ws, too: tcpkali refuses a header without it";
                translator.mistake(span, "only the handshake of a WebSocket has headers", label);
            } else if translator.may_have_header(span, HEADER, name, place) {
                if headers.add(name, &**value) {
                    translator.translated(span, HEADER);
                } else {
                    let remedy = "a handshake has each header once: join the two";
                    translator.not_supported(span, HEADER, remedy);
                }
            }
        }
        headers
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

    /// Reports messages whose frame is another one.
    fn report_frames(&self, translator: &mut Translator<'_>) {
        for message in self.first_messages.iter().chain(&self.messages) {
            if self.is_websocket && message.is_binary() {
                let how = "tcpkali sends all messages in frames of text; the scenario sends these \
                           bytes, which are no text, in a binary frame";
                translator.approximated(&message.span, "--message", how);
            }
        }
    }

    fn send(&self, message: &Message, is_answered: bool) -> Yaml {
        step::send(message.payload(self.is_websocket), is_answered)
    }
}

const PROGRAM: &str = "tcpkali";

/// The option of a header, as the report calls it.
const HEADER: &str = "--header";

/// How long the scenario runs where tcpkali runs until it is stopped.
const HOLD: &str = "1h";

/// How long a loop without a rate goes on: longer than any run.
const LONGEST_RUN: Duration = Duration::from_secs(30 * 24 * 3600);
