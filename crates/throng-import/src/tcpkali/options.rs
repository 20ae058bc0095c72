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
#[derive(Debug)]
pub(super) struct Options {
    /// Servers, `host:port`.
    pub(super) destinations: Vec<(String, Span)>,
    pub(super) is_websocket: bool,
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
    /// Stores the value, or says what was expected in its place.
    Sets(fn(&mut Reading<'_, '_>, &str) -> Result<(), &'static str>),
    NotNeeded(&'static str),
    NotSupported(&'static str),
}

/// An option that is being read.
struct Reading<'a, 'b> {
    options: &'a mut Options,
    translator: &'a mut Translator<'b>,
    /// Where the option stands, its value included.
    span: Span,
    /// Whether messages have escape sequences.
    has_escapes: bool,
}

impl Options {
    /// Reads the words of a command line. `None` if it has no destination.
    pub(super) fn read(translator: &mut Translator<'_>, words: &[Word]) -> Option<Self> {
        let mut options = Self::default();
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
            Meaning::Sets(set) => {
                let place = span.clone();
                let reading = &mut Reading { options: self, translator, span, has_escapes };
                match set(reading, value) {
                    // What becomes of it is said where the handshake is known.
                    Ok(()) if row.name == "header" => {}
                    Ok(()) => translator.translated(&place, construct),
                    Err(expected) => {
                        let title = format!("{construct} cannot be read");
                        translator.mistake(&place, title, format!("expected {expected}"));
                    }
                }
            }
        }
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
impl Default for Options {
    fn default() -> Self {
        Self {
            destinations: Vec::new(),
            is_websocket: false,
            headers: Vec::new(),
            connections: (1, 0..0),
            connect_rate: (100.0, 0..0),
            connect_timeout: Duration::from_secs(1),
            lifetime: None,
            upstream: None,
            duration: (Some(Duration::from_secs(10)), 0..0),
            delay_send: None,
            first_messages: Vec::new(),
            messages: Vec::new(),
            message_rate: None,
            marker: None,
            has_backslashes: false,
        }
    }
}

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

const fn option(letter: Option<char>, name: &'static str, meaning: Meaning) -> OptionRow {
    OptionRow { letter, name, has_value: true, meaning }
}

const fn flag(letter: Option<char>, name: &'static str, meaning: Meaning) -> OptionRow {
    OptionRow { letter, name, has_value: false, meaning }
}

/// Every option of tcpkali.
const OPTIONS: &[OptionRow] = &[
    flag(
        None,
        "ws",
        Meaning::Sets(|reading, _| {
            reading.options.is_websocket = true;
            Ok(())
        }),
    ),
    flag(
        None,
        "websocket",
        Meaning::Sets(|reading, _| {
            reading.options.is_websocket = true;
            Ok(())
        }),
    ),
    option(
        Some('H'),
        "header",
        Meaning::Sets(|reading, value| {
            let (name, value) = value.split_once(':').ok_or("a header field, `name: value`")?;
            if !is_token(name) || value.contains(char::is_control) {
                return Err("a header field, `name: value`");
            }
            let value = match value.trim() {
                "" => String::new(),
                value => reading.message(value).text().ok_or("a header field, `name: value`")?,
            };
            let span = reading.span.clone();
            reading.options.headers.push((name.to_ascii_lowercase(), value, span));
            Ok(())
        }),
    ),
    option(
        Some('c'),
        "connections",
        Meaning::Sets(|reading, value| {
            let count = units::number(value, 1000.0).filter(|count| (1.0..=1e8).contains(count));
            let count = count.ok_or("a number of connections, from 1 to 100m")?;
            reading.options.connections = (count as u64, reading.span.clone());
            Ok(())
        }),
    ),
    option(
        None,
        "connect-rate",
        Meaning::Sets(|reading, value| {
            let rate = units::number(value, 1000.0).filter(|rate| (0.01..=1e8).contains(rate));
            reading.options.connect_rate = (rate.ok_or(A_RATE)?, reading.span.clone());
            Ok(())
        }),
    ),
    option(
        None,
        "connect-timeout",
        Meaning::Sets(|reading, value| {
            reading.options.connect_timeout = positive_time(value)?;
            Ok(())
        }),
    ),
    option(
        None,
        "channel-lifetime",
        Meaning::Sets(|reading, value| {
            reading.options.lifetime = Some(units::time(value).ok_or(A_TIME)?);
            Ok(())
        }),
    ),
    option(
        None,
        "channel-bandwidth-upstream",
        Meaning::Sets(|reading, value| {
            let bandwidth = units::bandwidth(value).filter(|bandwidth| *bandwidth >= 1.0);
            let bandwidth = bandwidth.ok_or("a bandwidth such as 100kbps or 1MBps")?;
            reading.options.upstream = Some((bandwidth, reading.span.clone()));
            Ok(())
        }),
    ),
    option(
        None,
        "channel-bandwidth-downstream",
        Meaning::NotSupported("users of a scenario read as fast as they can; leave it out"),
    ),
    option(
        Some('T'),
        "duration",
        Meaning::Sets(|reading, value| {
            let span = match value {
                "-1" => None,
                _ => Some(positive_time(value)?),
            };
            reading.options.duration = (span, reading.span.clone());
            Ok(())
        }),
    ),
    option(
        None,
        "delay-send",
        Meaning::Sets(|reading, value| {
            let delay = units::time(value).ok_or(A_TIME)?;
            reading.options.delay_send = (!delay.is_zero()).then_some(delay);
            Ok(())
        }),
    ),
    flag(Some('e'), "unescape-message-args", Meaning::Sets(|_, _| Ok(()))),
    option(
        Some('1'),
        "first-message",
        Meaning::Sets(|reading, value| {
            let message = reading.message(value);
            reading.options.first_messages.push(message);
            Ok(())
        }),
    ),
    option(
        Some('m'),
        "message",
        Meaning::Sets(|reading, value| {
            let message = reading.message(value);
            reading.options.messages.push(message);
            Ok(())
        }),
    ),
    option(None, "first-message-file", Meaning::NotSupported(MESSAGE_FILE)),
    option(Some('f'), "message-file", Meaning::NotSupported(MESSAGE_FILE)),
    option(
        Some('r'),
        "message-rate",
        Meaning::Sets(|reading, value| {
            if value.starts_with('@') {
                let remedy = "`throng find` searches for the rate with this latency; the scenario \
                              sends 100 messages a second, as tcpkali does at first";
                let span = reading.span.clone();
                reading.translator.not_supported(&span, "--message-rate @", remedy);
                reading.options.message_rate = Some(100.0);
                return Ok(());
            }
            let rate = units::number(value, 1000.0).filter(|rate| (0.001..=1e8).contains(rate));
            reading.options.message_rate = Some(rate.ok_or(A_RATE)?);
            Ok(())
        }),
    ),
    option(
        None,
        "message-stop",
        Meaning::NotSupported("a run does not end at a message; its length is in the load"),
    ),
    option(
        None,
        "latency-marker",
        Meaning::Sets(|reading, value| {
            if value.is_empty() {
                return Err("a text");
            }
            let marker = reading.message(value).text().ok_or("a text, without other bytes")?;
            reading.options.marker = Some((marker, reading.span.clone()));
            Ok(())
        }),
    ),
    option(
        None,
        "latency-marker-skip",
        Meaning::NotSupported("leave the first answers out by hand: an `expect` before the loop"),
    ),
    flag(None, "latency-connect", Meaning::NotNeeded("throng always measures it")),
    flag(
        None,
        "latency-first-byte",
        Meaning::NotSupported("add an `expect: {bytes: 1}` with a name after the first message"),
    ),
    option(None, "latency-percentiles", Meaning::NotNeeded("the report has all percentiles")),
    flag(
        None,
        "message-marker",
        Meaning::NotSupported("add a `probe`: it times a message at all users"),
    ),
    flag(None, "ssl", Meaning::NotSupported("this version has no TLS; use a proxy before it")),
    option(None, "ssl-cert", Meaning::NotSupported("this version has no TLS")),
    option(None, "ssl-key", Meaning::NotSupported("this version has no TLS")),
    option(None, "nagle", Meaning::NotNeeded("throng writes each message at once")),
    option(None, "write-combine", Meaning::NotNeeded("throng writes each message at once")),
    option(None, "rcvbuf", Meaning::NotSupported("set net.ipv4.tcp_rmem on this machine")),
    option(None, "sndbuf", Meaning::NotSupported("set net.ipv4.tcp_wmem on this machine")),
    option(None, "source-ip", Meaning::NotNeeded("pass --source ADDR to `throng run`")),
    option(Some('w'), "workers", Meaning::NotNeeded("pass --cores N to `throng run`")),
    option(
        Some('l'),
        "listen-port",
        Meaning::NotSupported("start a server beside it, for example `throng serve echo --port N`"),
    ),
    option(None, "listen-mode", Meaning::NotSupported("see `throng serve --help`")),
    option(None, "server", Meaning::NotSupported("steer the run with `throng ctl`")),
    flag(None, "statsd", Meaning::NotNeeded(METRICS)),
    option(None, "statsd-host", Meaning::NotNeeded(METRICS)),
    option(None, "statsd-port", Meaning::NotNeeded(METRICS)),
    option(None, "statsd-namespace", Meaning::NotNeeded(METRICS)),
    option(None, "statsd-latency-window", Meaning::NotNeeded(METRICS)),
    flag(Some('d'), "dump-one", Meaning::NotNeeded(TRACE)),
    flag(None, "dump-one-in", Meaning::NotNeeded(TRACE)),
    flag(None, "dump-one-out", Meaning::NotNeeded(TRACE)),
    flag(None, "dump-all", Meaning::NotNeeded(TRACE)),
    flag(None, "dump-all-in", Meaning::NotNeeded(TRACE)),
    flag(None, "dump-all-out", Meaning::NotNeeded(TRACE)),
    option(None, "verbose", Meaning::NotNeeded("see `throng run --help`")),
    // Without a level: each `v` raises it by one.
    flag(Some('v'), "verbose", Meaning::NotNeeded("see `throng run --help`")),
    flag(Some('h'), "help", Meaning::NotNeeded("see `throng run --help`")),
    flag(None, "version", Meaning::NotNeeded("see `throng --version`")),
];

impl Reading<'_, '_> {
    fn message(&mut self, text: &str) -> Message {
        Message::read(self.translator, text, &self.span, self.has_escapes)
    }
}

fn positive_time(value: &str) -> Result<Duration, &'static str> {
    units::time(value)
        .filter(|time| !time.is_zero())
        .ok_or("a time above zero, such as 500ms or 10s")
}

/// Options whose texts have escape sequences behind -e.
const TEXTS: [&str; 4] = ["message", "first-message", "latency-marker", "header"];

const A_TIME: &str = "a time such as 500ms, 10s or 1m";
const A_RATE: &str = "a rate above zero, such as 100 or 10k";
const MESSAGE_FILE: &str = "an import opens no file; put its text into --message";
const METRICS: &str = "pass --metrics to `throng run`, for Prometheus";
const TRACE: &str = "pass --trace-user N to `throng run`, or use `throng try`";
