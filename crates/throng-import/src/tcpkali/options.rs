//! The options of tcpkali's command line.

use std::time::Duration;

use throng_base::units::nearest;
use throng_load::scenario::is_token;

use super::message::Message;
use super::units;
use crate::command_line::Word;
use crate::source::Span;
use crate::translator::Translator;

/// A command line, sorted.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Servers, `host:port`.
    pub(super) destinations: Vec<(String, Span)>,
    pub(super) is_websocket: bool,
    /// Place of `--ssl`.
    pub(super) ssl: Option<Span>,
    pub(super) headers: Vec<(String, String, Span)>,
    pub(super) connections: (u64, Span),
    /// New connections a second.
    pub(super) connect_rate: (f64, Span),
    pub(super) connect_timeout: Duration,
    /// How long a connection lives.
    pub(super) lifetime: Option<Duration>,
    /// Bytes a second that a connection sends.
    pub(super) upstream: Option<(f64, Span)>,
    /// How long the load lasts; `None` for as long as it is not stopped.
    pub(super) duration: (Option<Duration>, Span),
    pub(super) delay_send: Option<Duration>,
    pub(super) first_messages: Vec<Message>,
    pub(super) messages: Vec<Message>,
    /// Messages a second that a connection sends.
    pub(super) message_rate: Option<f64>,
    /// Text that ends an answer.
    pub(super) marker: Option<(String, Span)>,
    /// True if a text before any -e has a backslash.
    has_backslashes: bool,
}

/// An option: its letter, its name, whether it has a value, and what becomes of it.
struct OptionRow {
    letter: Option<char>,
    name: &'static str,
    has_value: bool,
    meaning: Meaning,
}

#[derive(Clone, Copy)]
enum Meaning {
    /// [`Options::set`] stores the value.
    Sets,
    NotNeeded(&'static str),
    NotSupported(&'static str),
}

impl Options {
    /// Reads the words of a command line. `None` if it has no destination.
    pub(super) fn read(translator: &mut Translator<'_>, words: &[Word]) -> Option<Self> {
        let mut options = Self {
            connections: (1, 0..0),
            connect_rate: (100.0, 0..0),
            connect_timeout: Duration::from_secs(1),
            duration: (Some(Duration::from_secs(10)), 0..0),
            ..Self::default()
        };
        let mut given: Vec<(&OptionRow, String, Span)> = Vec::new();
        let mut words = words.iter().skip(1);
        while let Some(word) = words.next() {
            if !word.text.starts_with('-') || word.text == "-" {
                options.destination(translator, word);
                continue;
            }
            let Some((flags, row, attached)) = find(&word.text) else {
                unknown(translator, word);
                continue;
            };
            let mut span = word.span.clone();
            given.extend(flags.into_iter().map(|row| (row, String::new(), span.clone())));
            let value = match (row.has_value, attached) {
                (false, None) => String::new(),
                (true, Some(value)) => value,
                (true, None) => match words.next() {
                    Some(next) => {
                        span.end = next.span.end;
                        next.text.clone()
                    }
                    None => {
                        let title = format!("--{} has no value", row.name);
                        translator.mistake(&span, title, "expected its value after it");
                        continue;
                    }
                },
                (false, Some(_)) => {
                    let title = format!("--{} has no value", row.name);
                    translator.mistake(&span, title, "expected nothing after it");
                    continue;
                }
            };
            given.push((row, value, span));
        }
        // tcpkali reads its options in their order: -e holds for those behind it.
        let mut has_escapes = false;
        for (row, value, span) in given {
            has_escapes |= row.letter == Some('e');
            if row.letter == Some('e') && options.has_backslashes {
                let why = "tcpkali reads `\\n` and the like only in messages behind this option; \
                           those before it are sent as they stand, and so they are here";
                translator.suspicious(&span, "--unescape-message-args", why);
            }
            options.has_backslashes |=
                !has_escapes && TEXTS.contains(&row.name) && value.contains('\\');
            options.take(translator, row, (&value, span), has_escapes);
        }
        options.check(translator);
        (!options.destinations.is_empty()).then_some(options)
    }

    fn take(
        &mut self,
        translator: &mut Translator<'_>,
        row: &OptionRow,
        (value, span): (&str, Span),
        has_escapes: bool,
    ) {
        let construct = format!("--{}", row.name);
        match row.meaning {
            Meaning::NotNeeded(why) => translator.not_needed(&span, construct, why),
            Meaning::NotSupported(remedy) => translator.not_supported(&span, construct, remedy),
            Meaning::Sets => {
                let message = |translator: &mut Translator<'_>, text: &str| {
                    Message::read(translator, text, &span, has_escapes)
                };
                match self.set(translator, row.name, (value, &span), &message) {
                    // What becomes of it is said where the handshake and the target are known.
                    Ok(()) if ["header", "ssl"].contains(&row.name) => {}
                    Ok(()) => translator.translated(&span, construct),
                    Err(expected) => {
                        let title = format!("{construct} cannot be read");
                        translator.mistake(&span, title, format!("expected {expected}"));
                    }
                }
            }
        }
    }

    /// Stores the value of an option, or says what was expected in its place. `message` reads the
    /// text of a message.
    fn set(
        &mut self,
        translator: &mut Translator<'_>,
        name: &str,
        (value, span): (&str, &Span),
        message: &dyn Fn(&mut Translator<'_>, &str) -> Message,
    ) -> Result<(), &'static str> {
        let number = |least: f64| {
            units::number(value, 1000.0).filter(|number| (least..=1e8).contains(number))
        };
        let time = || units::time(value).ok_or("a time such as 500ms, 10s or 1m");
        let above_zero = || {
            let time = units::time(value).filter(|time| !time.is_zero());
            time.ok_or("a time above zero, such as 500ms or 10s")
        };
        match name {
            "ws" | "websocket" => self.is_websocket = true,
            "ssl" => self.ssl = Some(span.clone()),
            "header" => {
                let expected = "a header field, `name: value`";
                let (name, value) = value.split_once(':').ok_or(expected)?;
                if !is_token(name) || value.contains(char::is_control) {
                    return Err(expected);
                }
                let value = match value.trim() {
                    "" => String::new(),
                    value => message(translator, value).text().ok_or(expected)?,
                };
                self.headers.push((name.to_ascii_lowercase(), value, span.clone()));
            }
            "connections" => {
                let count = number(1.0).ok_or("a number of connections, from 1 to 100m")?;
                self.connections = (count as u64, span.clone());
            }
            "connect-rate" => self.connect_rate = (number(0.01).ok_or(A_RATE)?, span.clone()),
            "connect-timeout" => self.connect_timeout = above_zero()?,
            "channel-lifetime" => self.lifetime = Some(time()?),
            "channel-bandwidth-upstream" => {
                let bandwidth = units::bandwidth(value).filter(|bandwidth| *bandwidth >= 1.0);
                let bandwidth = bandwidth.ok_or("a bandwidth such as 100kbps or 1MBps")?;
                self.upstream = Some((bandwidth, span.clone()));
            }
            "duration" => {
                let length = if value == "-1" { None } else { Some(above_zero()?) };
                self.duration = (length, span.clone());
            }
            "delay-send" => self.delay_send = Some(time()?).filter(|delay| !delay.is_zero()),
            "first-message" => self.first_messages.push(message(translator, value)),
            "message" => self.messages.push(message(translator, value)),
            "message-rate" if value.starts_with('@') => {
                let remedy = "`throng find` searches for the rate with this latency; the scenario \
                              sends 100 messages a second, as tcpkali does at first";
                translator.not_supported(span, "--message-rate @", remedy);
                self.message_rate = Some(100.0);
            }
            "message-rate" => self.message_rate = Some(number(0.001).ok_or(A_RATE)?),
            "latency-marker" if value.is_empty() => return Err("a text"),
            "latency-marker" => {
                let marker = message(translator, value).text();
                self.marker = Some((marker.ok_or("a text, without other bytes")?, span.clone()));
            }
            _ => {}
        }
        Ok(())
    }

    fn destination(&mut self, translator: &mut Translator<'_>, word: &Word) {
        if self.destinations.is_empty() {
            translator.translated(&word.span, "destination");
        }
        if self.destinations.len() == 1 {
            let remedy = "a scenario has one target; run one scenario for each server";
            translator.not_supported(&word.span, "several destinations", remedy);
        }
        self.destinations.push((word.text.clone(), word.span.clone()));
    }

    fn check(&self, translator: &mut Translator<'_>) {
        let end = translator.source.text.trim_end().len();
        if self.destinations.is_empty() {
            let label = "expected a destination, `host:port`; for a server see `throng serve`";
            translator.mistake(&(end..end), "this command connects to no server", label);
        }
        if let (Some((_, span)), Some(_)) = (&self.upstream, self.message_rate) {
            let label = "tcpkali takes either a rate of messages or a bandwidth";
            translator.mistake(span, "two options for one rate", label);
        }
        if let (Some((_, span)), true) = (&self.marker, self.messages.is_empty()) {
            let label = "expected --message, too: nothing is sent that could be answered";
            translator.mistake(span, "--latency-marker without a message", label);
        }
    }
}

/// What tcpkali does without options.
/// Returns the option that a word ends with, the flags before it, and the value in the same word:
/// `-c10`, `--connections=10`, `-em`.
fn find(word: &str) -> Option<(Vec<&'static OptionRow>, &'static OptionRow, Option<String>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        return Some((Vec::new(), OPTIONS.iter().find(|row| row.name == name)?, value));
    }
    let mut flags: Vec<&OptionRow> = Vec::new();
    let mut letters = word.chars().skip(1);
    loop {
        let letter = letters.next()?;
        let row = OPTIONS.iter().find(|row| row.letter == Some(letter))?;
        let rest: String = letters.clone().collect();
        // A flag that is written several times is one.
        flags.retain(|flag| flag.letter != row.letter);
        if row.has_value || rest.is_empty() {
            return Some((flags, row, (!rest.is_empty()).then_some(rest)));
        }
        flags.push(row);
    }
}

fn unknown(translator: &mut Translator<'_>, word: &Word) {
    let name = word.text.trim_start_matches('-').split('=').next().unwrap_or_default();
    let label = match nearest(name, OPTIONS.iter().map(|row| row.name)) {
        Some(near) => format!("did you mean --{near}?"),
        None => "expected an option of tcpkali 1.1".to_owned(),
    };
    translator.mistake(&word.span, format!("tcpkali has no option {}", word.text), label);
}

macro_rules! options {
    ($( [$($letter:literal)?] $name:literal $takes:ident $meaning:ident $($note:expr)?; )+) => {
        &[$( OptionRow {
            letter: options!(@letter $($letter)?),
            name: $name,
            has_value: options!(@ $takes),
            meaning: Meaning::$meaning $(($note))?,
        } ),+]
    };
    (@letter) => { None };
    (@letter $letter:literal) => { Some($letter) };
    (@ flag) => { false };
    (@ value) => { true };
}

/// All options of tcpkali 1.1: letter, name, what stands behind it, and what becomes of it.
const OPTIONS: &[OptionRow] = options! {
    [] "ws" flag Sets;
    [] "websocket" flag Sets;
    ['H'] "header" value Sets;
    ['c'] "connections" value Sets;
    [] "connect-rate" value Sets;
    [] "connect-timeout" value Sets;
    [] "channel-lifetime" value Sets;
    [] "channel-bandwidth-upstream" value Sets;
    [] "channel-bandwidth-downstream" value NotSupported
        "users of a scenario read as fast as they can; leave it out";
    ['T'] "duration" value Sets;
    [] "delay-send" value Sets;
    ['e'] "unescape-message-args" flag Sets;
    ['1'] "first-message" value Sets;
    ['m'] "message" value Sets;
    [] "first-message-file" value NotSupported MESSAGE_FILE;
    ['f'] "message-file" value NotSupported MESSAGE_FILE;
    ['r'] "message-rate" value Sets;
    [] "message-stop" value NotSupported
        "a run does not end at a message; its length is in the load";
    [] "latency-marker" value Sets;
    [] "latency-marker-skip" value NotSupported
        "leave the first answers out by hand: an `expect` before the loop";
    [] "latency-connect" flag NotNeeded "throng always measures it";
    [] "latency-first-byte" flag NotSupported
        "add an `expect: {bytes: 1}` with a name after the first message";
    [] "latency-percentiles" value NotNeeded "the report has all percentiles";
    [] "message-marker" flag NotSupported "add a `probe`: it times a message at all users";
    [] "ssl" flag Sets;
    [] "ssl-cert" value NotNeeded OF_SERVER;
    [] "ssl-key" value NotNeeded OF_SERVER;
    [] "nagle" value NotNeeded "throng writes each message at once";
    [] "write-combine" value NotNeeded "throng writes each message at once";
    [] "rcvbuf" value NotSupported "set net.ipv4.tcp_rmem on this machine";
    [] "sndbuf" value NotSupported "set net.ipv4.tcp_wmem on this machine";
    [] "source-ip" value NotNeeded "pass --source ADDR to `throng run`";
    ['w'] "workers" value NotNeeded "pass --cores N to `throng run`";
    ['l'] "listen-port" value NotSupported
        "start a server beside it, for example `throng serve echo --port N`";
    [] "listen-mode" value NotSupported "see `throng serve --help`";
    [] "server" value NotSupported "steer the run with `throng ctl`";
    [] "statsd" flag NotNeeded METRICS;
    [] "statsd-host" value NotNeeded METRICS;
    [] "statsd-port" value NotNeeded METRICS;
    [] "statsd-namespace" value NotNeeded METRICS;
    [] "statsd-latency-window" value NotNeeded METRICS;
    ['d'] "dump-one" flag NotNeeded TRACE;
    [] "dump-one-in" flag NotNeeded TRACE;
    [] "dump-one-out" flag NotNeeded TRACE;
    [] "dump-all" flag NotNeeded TRACE;
    [] "dump-all-in" flag NotNeeded TRACE;
    [] "dump-all-out" flag NotNeeded TRACE;
    [] "verbose" value NotNeeded "see `throng run --help`";
    ['v'] "verbose" flag NotNeeded "see `throng run --help`";
    ['h'] "help" flag NotNeeded "see `throng run --help`";
    [] "version" flag NotNeeded "see `throng --version`";
};

/// Options whose texts have escape sequences behind -e.
const TEXTS: [&str; 4] = ["message", "first-message", "latency-marker", "header"];

/// A client of tcpkali shows no certificate (`ssl_setup`).
const OF_SERVER: &str =
    "tcpkali shows it to clients of its own port; see `throng serve --tls-cert`";

const A_RATE: &str = "a rate above zero, such as 100 or 10k";
const MESSAGE_FILE: &str = "an import opens no file; put its text into --message";
const METRICS: &str = "pass --metrics to `throng run`, for Prometheus";
const TRACE: &str = "pass --trace-user N to `throng run`, or use `throng try`";
